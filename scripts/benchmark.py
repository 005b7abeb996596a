"""The benchmarks: `python scripts/benchmark.py step | models | against COMMIT | mask | check [PART ...]
| reliability [PART ...] | trace fuzz`.

CONTRIBUTING.md says when.
"""

from __future__ import annotations

import argparse
import sys

from benchmarks.reliability import PARTS

# Each benchmark is imported alone: what another one imports, and in which order, sets up the threads that it times.


def main() -> int:
    """Run one benchmark, and return its exit status.

    `step`, `models`, `against` and `mask` only measure: 0. `check`, `reliability` and `trace` are 1 where a figure is
    missed. Wrong usage is 2.
    """
    parser = argparse.ArgumentParser(description=__doc__)
    names = "step | models | against | mask | check | reliability | trace"
    commands = parser.add_subparsers(required=True, metavar=names)
    step = commands.add_parser("step", help="microseconds of a training step, beside torch's")
    step.set_defaults(run=_step)
    models = commands.add_parser("models", help="time and memory of the nets in config/, beside torch's")
    models.set_defaults(run=_models)
    against = commands.add_parser("against", help="the time of a step, against that of another commit")
    against.add_argument("commit", metavar="COMMIT", help="what git calls it: a hash, a branch, a tag")
    against.add_argument("--rounds", type=int, default=100, metavar="N", help="of three processes each; default 100")
    against.set_defaults(run=_against)
    mask = commands.add_parser("mask", help="microseconds of a random mask, beside numpy's fastest generator")
    mask.set_defaults(run=_mask)
    check = commands.add_parser("check", help="what the gradient check catches, and whether it raises false alarms")
    parts = "mutants, smallest, alarms, random, appeals, late, together; or all"
    check.add_argument("parts", nargs="*", metavar="PART", help=parts)
    check.set_defaults(run=_check)
    reliability = commands.add_parser("reliability", help="what runs and their files survive")
    reliability.add_argument("parts", nargs="*", metavar="PART", help=f"{', '.join(PARTS)}; or all")
    reliability.set_defaults(run=_reliability)
    trace = commands.add_parser("trace", help="random programs of operations, traced and replayed")
    trace.add_argument("part", choices=["fuzz"], help="programs whose replay gives other bits")
    trace.set_defaults(run=_trace)
    options = parser.parse_args()
    return int(options.run(options))


def _step(_: argparse.Namespace) -> int:
    from benchmarks.processes import ROOT, run_module

    return run_module("benchmarks.step", ROOT).returncode


def _models(_: argparse.Namespace) -> int:
    from benchmarks import models

    models.main()
    return 0


def _against(options: argparse.Namespace) -> int:
    from benchmarks import against

    return against.main(options.commit, options.rounds)


def _mask(_: argparse.Namespace) -> int:
    from benchmarks.processes import ROOT, run_module

    return run_module("benchmarks.mask", ROOT).returncode


def _check(options: argparse.Namespace) -> int:
    from benchmarks import check as benchmark_check

    return benchmark_check.main(options.parts)


def _reliability(options: argparse.Namespace) -> int:
    from benchmarks import reliability

    return reliability.main(options.parts)


def _trace(_: argparse.Namespace) -> int:
    from benchmarks.tracing import fuzz

    return fuzz.main()


if __name__ == "__main__":
    sys.exit(main())
