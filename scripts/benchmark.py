"""The benchmarks: `python scripts/benchmark.py BENCHMARK`; `--help` lists them, CONTRIBUTING.md says when.

Some only measure, and end with 0. The others end with 1 where a figure is missed. Wrong usage is 2.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

from benchmarks.distributed import PARTS as DISTRIBUTED_PARTS
from benchmarks.reliability import PARTS

# Only the benchmark that runs is imported: imports, and their order, set up the threads that it times.

Options: TypeAlias = argparse.Namespace


def main() -> int:
    """Run one benchmark, and return its exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="BENCHMARK")

    def add(name: str, run: Callable[[Options], int], text: str) -> argparse.ArgumentParser:
        command = commands.add_parser(name, help=text)
        command.set_defaults(run=run)
        return command

    add("step", _step, "microseconds of a training step, beside torch's")
    add("models", _models, "time and memory of the nets in config/, beside torch's")
    threads = add("threads", _threads, "what a second thread gains, compiled and in torch, and what 8 and 16 would")
    threads.add_argument("nets", nargs="*", metavar="NET", help="gpt, lstm, convnet; default all")
    layers = add("layers", _layers, "forward and backward of each class, NumPy and compiled, beside torch's")
    layers.add_argument("classes", nargs="*", metavar="CLASS", help="ReLU, Conv2d, MSELoss, ...; default all")
    large = add("large", _large, "time and memory of large GPTs, plain, checked and compiled, beside torch's")
    large.add_argument("nets", nargs="*", metavar="NET", help="45M, gpt2; default both")
    large.add_argument("--threads", type=int, default=2, metavar="N", help="of each contestant; default 2")
    peers = add("peers", _peers, "microseconds of a training step, beside those of other trainers")
    peers.add_argument("nets", nargs="*", metavar="NET", help="2-16-16-2, ..., gpt, convnet, lstm; default all")
    peers.add_argument("--threads", type=int, default=1, metavar="N", help="of each contestant, on as many cores")
    peers.add_argument("--figure", type=Path, metavar="FILE", help="draw it, too")
    add("scaling", _scaling, "time and memory of a step as sizes grow tenfold and a hundredfold")
    bits = add("bits", _bits, "random nets on one thread and on several: the same bits?")
    bits.add_argument("--nets", type=_range, metavar="FIRST:STOP", help="only these nets, for example 0:50")
    startup = add("startup", _startup, "seconds from the start of a process to its first step and its 100th")
    startup.add_argument("nets", nargs="*", metavar="NET", help="digits, gpt; default both")
    add("fashion", _fashion, "a whole run on Fashion-MNIST, from start to end, beside torch's")
    against = add("against", _against, "the time of a step, against that of another commit")
    against.add_argument("commit", metavar="COMMIT", help="what git calls it: a hash, a branch, a tag")
    against.add_argument("--rounds", type=int, default=100, metavar="N", help="of three processes each; default 100")
    add("tables", _tables, "tables from `nn-manual new` to predictions, beside scikit-learn's MLPs")
    add("mask", _mask, "microseconds of a random mask, beside numpy's fastest generator")
    check = add("check", _check, "what the gradient check catches, and whether it raises false alarms")
    parts = "mutants, smallest, alarms, random, appeals, late, together, samples; or all"
    check.add_argument("parts", nargs="*", metavar="PART", help=parts)
    check.add_argument("--nets", type=_range, metavar="FIRST:STOP", help="of random, only these nets, for example 0:50")
    check.add_argument(
        "--classes",
        type=_names,
        default=(),
        metavar="CLASS,...",
        help="of mutants, smallest, together, samples, only these",
    )
    check.add_argument("--slices", action="store_true", help="of random, only the nets in slices")
    check.add_argument("--first", action="store_true", help="of mutants, each until it is caught once in each dtype")
    functions = add("functions", _functions, "which wrong functions check_function catches, and its peers")
    functions.add_argument(
        "part",
        nargs="?",
        choices=["kernels", "handwritten", "torch", "published"],
        default="kernels",
        help="default kernels",
    )
    functions.add_argument(
        "--operations", type=_range, metavar="FIRST:STOP", help="of torch, only these operations, for example 0:20"
    )
    functions.add_argument(
        "--packages", type=_names, default=(), metavar="PACKAGE,...", help="of published, only these: timm,entmax"
    )
    reliability = add("reliability", _reliability, "what runs and their files survive")
    reliability.add_argument("parts", nargs="*", metavar="PART", help=f"{', '.join(PARTS)}; or all")
    reliability.add_argument(
        "--cases", type=_range, metavar="FIRST:STOP", help="of directories, only these cases, for example 0:60"
    )
    distributed = add("distributed", _distributed, "many processes: their speed, their bytes, what they survive")
    distributed.add_argument("parts", nargs="*", metavar="PART", help=f"{', '.join(DISTRIBUTED_PARTS)}; or all")
    distributed.add_argument("--short", action="store_true", help="less of it, to see whether it runs")
    trace = add("trace", _trace, "random programs of operations, traced, and replayed or compiled")
    parts = "fuzz: whose replay gives other bits; compiled: whose kernels give other numbers"
    trace.add_argument("part", choices=["fuzz", "compiled"], help=parts)
    tests = add("tests", _tests, "one-line faults in the package: do the tests find them? It goes on where it was cut")
    tests.add_argument("--against", metavar="COMMIT", help="another state, in which the same lines get the same faults")
    tests.add_argument("--folder", type=Path, required=True, help="where clones and results stay")
    options = parser.parse_args()
    return int(options.run(options))


def _range(text: str) -> range:
    try:
        first, stop = map(int, text.split(":"))
    except ValueError:
        raise argparse.ArgumentTypeError(f"must be FIRST:STOP, such as 0:50, not {text}") from None
    return range(first, stop)


def _names(text: str) -> tuple[str, ...]:
    return tuple(text.split(","))


def _step(_: Options) -> int:
    from benchmarks.processes import ROOT, run_module

    return run_module("benchmarks.step", ROOT).returncode


def _models(_: Options) -> int:
    from benchmarks import models

    models.main()
    return 0


def _threads(options: Options) -> int:
    from benchmarks import second_thread

    return second_thread.main(options.nets)


def _layers(options: Options) -> int:
    from benchmarks.layers import table

    return table.main(options.classes)


def _large(options: Options) -> int:
    from benchmarks import large

    return large.main(options.nets, options.threads)


def _bits(options: Options) -> int:
    from benchmarks import bits

    return bits.main(options.nets)


def _peers(options: Options) -> int:
    from benchmarks.peers import rounds

    return rounds.main(options.nets, options.threads, options.figure)


def _scaling(_: Options) -> int:
    from benchmarks import scaling

    return scaling.main()


def _startup(options: Options) -> int:
    from benchmarks import startup

    return startup.main(options.nets)


def _fashion(_: Options) -> int:
    from benchmarks import fashion

    return fashion.main()


def _against(options: Options) -> int:
    from benchmarks import against

    return against.main(options.commit, options.rounds)


def _tables(_: Options) -> int:
    from benchmarks.tables import main

    return main()


def _mask(_: Options) -> int:
    from benchmarks.processes import ROOT, run_module

    return run_module("benchmarks.mask", ROOT).returncode


def _check(options: Options) -> int:
    from benchmarks import check as benchmark_check

    return benchmark_check.main(
        options.parts,
        nets=options.nets,
        only_slices=options.slices,
        classes=options.classes,
        only_first=options.first,
    )


def _functions(options: Options) -> int:
    from benchmarks.functions import by_hand, by_others, score, torch_operations

    if options.part == "torch":
        return torch_operations.main(options.operations)
    if options.part == "published":
        return by_others.main(options.packages)
    return by_hand.main() if options.part == "handwritten" else score.main()


def _reliability(options: Options) -> int:
    from benchmarks import reliability

    return reliability.main(options.parts, cases=options.cases)


def _distributed(options: Options) -> int:
    from benchmarks import distributed

    return distributed.main(options.parts, short=options.short)


def _trace(options: Options) -> int:
    from benchmarks.tracing import fuzz, interpreted

    return fuzz.main() if options.part == "fuzz" else interpreted.main()


def _tests(options: Options) -> int:
    from benchmarks import planted

    return planted.main(options.against, options.folder)


if __name__ == "__main__":
    sys.exit(main())
