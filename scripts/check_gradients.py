"""`nn-manual check`, from a checkout."""

import sys

from nn_manual.cli import main

sys.exit(main(["check", *sys.argv[1:]]))
