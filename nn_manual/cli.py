"""The command line: nn-manual train | check | plot. Every heavy import waits until a command needs it."""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from types import FrameType
from typing import NoReturn

from nn_manual.errors import NNManualError

#: What a shell reports for a program that SIGINT or SIGTERM ended: 128 plus the signal's number.
INTERRUPTED, TERMINATED = 130, 143


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command. Returns the exit status: 0 done, 2 usage or config, 3 gradient mismatch, 4 not finite, 5 data.

    An error is one or a few lines on standard error, never a traceback.
    """
    options = _parser().parse_args(arguments)
    signal.signal(signal.SIGTERM, _terminate)
    try:
        return int(options.command(options))
    except NNManualError as error:
        print(f"nn-manual: {error}", file=sys.stderr)
        return error.exit_status
    except KeyboardInterrupt:
        print("nn-manual: interrupted", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:
        # Whoever read our output has gone; keep Python from failing again when it flushes at exit.
        sys.stdout = None
        return 0


def _terminate(signum: int, frame: FrameType | None) -> NoReturn:  # noqa: ARG001 - a signal handler's signature
    print("nn-manual: terminated", file=sys.stderr)
    raise SystemExit(TERMINATED)


def _train(options: argparse.Namespace) -> int:
    from nn_manual.config import load_config
    from nn_manual.run import default_run_directory, describe, run

    config = load_config(options.config, options.overrides)
    directory = options.run_dir or default_run_directory(options.config)
    print(describe(run(config, directory), directory))
    return 0


def _check(options: argparse.Namespace) -> int:
    if options.catalogue:
        from nn_manual.check.catalogue import catalogue

        return _report(catalogue())
    if options.ops:
        from nn_manual.check.operations import check_operations

        return _report(check_operations())
    from nn_manual.check.checker import check_gradients
    from nn_manual.config import load_config
    from nn_manual.data import batches
    from nn_manual.run import load

    config = load_config(options.config, options.overrides)
    split, model = load(config)
    batch = next(iter(batches(split.train, config.batch_size, config.seed, 0)))
    return _report(check_gradients(model, config.loss, *batch))


def _report(report: object) -> int:
    print(report)
    return 0 if report.passed else 3  # type: ignore[attr-defined]  # each of the three kinds has it


def _plot(options: argparse.Namespace) -> int:
    from nn_manual.plotting import plot_runs

    print(plot_runs(options.runs, options.output, smoothing=options.smoothing, log_y=options.log_y))
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="nn-manual",
        description="Neural networks whose every gradient is derived by hand and proven against PyTorch.",
    )
    commands = parser.add_subparsers(title="commands", required=True, metavar="train | check | plot")
    train = commands.add_parser("train", help="train from a YAML config, every gradient compared with torch's")
    _add_config(train)
    train.add_argument("--run-dir", type=Path, metavar="DIR", help="default: runs/<config name>/<time>")
    train.set_defaults(command=_train)
    check = commands.add_parser("check", help="compare every tensor of one batch with torch's, without training")
    _add_config(check, nargs="?")
    check.add_argument("--catalogue", action="store_true", help="check every layer, loss and optimizer there is")
    check.add_argument("--ops", action="store_true", help="check every operation of nn_manual.ops")
    check.set_defaults(command=_check)
    plot = commands.add_parser("plot", help="draw the curves of one or more runs")
    plot.add_argument("runs", type=Path, nargs="+", metavar="RUN", help="a run directory")
    plot.add_argument("-o", "--output", type=Path, default=Path("loss.png"), metavar="FILE", help="PNG, SVG or PDF")
    plot.add_argument("--smoothing", type=float, default=0.0, metavar="WEIGHT", help="0 (none) to 1, as in TensorBoard")
    plot.add_argument("--log-y", action="store_true", help="logarithmic losses")
    plot.set_defaults(command=_plot)
    return parser


def _add_config(parser: argparse.ArgumentParser, nargs: str | None = None) -> None:
    parser.add_argument("config", type=Path, metavar="CONFIG", nargs=nargs, help="a YAML file, as in config/")
    parser.add_argument(
        "overrides", nargs="*", metavar="KEY=VALUE", help="instead of the config's, as in optimizer.SGD.lr=0.05"
    )
