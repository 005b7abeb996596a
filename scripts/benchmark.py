"""The figures that README states, measured: `python scripts/benchmark.py step | check`."""

from __future__ import annotations

import argparse
import sys


def main() -> int:
    """Run one benchmark. Exit status 1 where a figure is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="step | check")
    step = commands.add_parser("step", help="microseconds per training step, beside torch's")
    step.set_defaults(run=_step)
    check = commands.add_parser("check", help="what the gradient check catches, and whether it ever cries wolf")
    check.add_argument("parts", nargs="*", metavar="PART", help="mutants, smallest, alarms, random; by default all")
    check.set_defaults(run=_check)
    options = parser.parse_args()
    return int(options.run(options))


# Each benchmark is imported alone: what the other one imports, and in which order, sets up the threads that it times.


def _step(_: argparse.Namespace) -> int:
    from benchmarks import step as benchmark_step

    return benchmark_step.main()


def _check(options: argparse.Namespace) -> int:
    from benchmarks import check as benchmark_check

    return benchmark_check.main(options.parts)


if __name__ == "__main__":
    sys.exit(main())
