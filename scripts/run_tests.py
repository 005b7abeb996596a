"""The tests on other processors, loads, users and versions: `python scripts/run_tests.py --help`."""

import sys

from benchmarks.settings.command import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
