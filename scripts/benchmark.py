"""`python scripts/benchmark.py step` times a training step, `python scripts/benchmark.py check` tries the check."""

from __future__ import annotations

import argparse
import importlib
import sys


def main() -> int:
    """Run one benchmark; 1 if a figure that it promises is missed."""
    parser = argparse.ArgumentParser(prog="benchmark.py")
    parser.add_argument("benchmark", choices=("step", "check"), help="step: minutes; check: up to an hour")
    # Imported when chosen: the benchmark of the step sets the environment up before anything loads numpy.
    return int(importlib.import_module(f"benchmark_{parser.parse_args().benchmark}").main())


if __name__ == "__main__":
    sys.exit(main())
