"""The command line: nn-manual train | check | plot | sample. Every heavy import waits until a command needs it."""

from __future__ import annotations

import argparse
import io
import itertools
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from types import FrameType
from typing import NoReturn

from nn_manual.errors import ConfigError, DataError, GradientMismatch, NNManualError, NotReproducedError

#: What a shell reports for a program that a signal ended: 128 plus the signal's number.
INTERRUPTED, BROKEN_PIPE, TERMINATED = 130, 141, 143


class _Terminated(KeyboardInterrupt):
    """SIGTERM, which ends a run as Ctrl-C does: whatever is half-written is cleaned up on the way out."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command. Returns the exit status: 0 done, 2 usage or config, 3 gradient mismatch or a tensor that was
    zero wherever it was compared, 4 not finite, 5 data, 6 a replay that doesn't reproduce the recorded step, 130 and
    143 for SIGINT and SIGTERM, 141 if the reader of a pipe has gone.

    An error is one or a few lines on standard error, never a traceback. Bad usage raises SystemExit(2), as argparse
    does.
    """
    signal.signal(signal.SIGTERM, _terminate)
    options = _parse(arguments)
    try:
        status = int(options.command(options))
        sys.stdout.flush()
    except NNManualError as error:
        return _end(error, str(error), error.exit_status)
    except _Terminated as end:
        return _end(end, "terminated", TERMINATED)
    except KeyboardInterrupt as end:
        return _end(end, "interrupted", INTERRUPTED)
    except MemoryError as error:
        return _end(error, f"not enough memory: {error}", ConfigError.exit_status)
    except OSError as error:  # the errors of files have become DataErrors: this is one of standard output
        sys.stdout = None  # keeps Python from writing again, and failing again, at exit
        if isinstance(error, BrokenPipeError):
            return BROKEN_PIPE
        return _end(error, f"{error.filename or 'standard output'}: {error.strerror or error}", DataError.exit_status)
    return status


def _end(error: BaseException, message: str, status: int) -> int:
    """Say what ended the command, with the notes that were added on the way; returns `status`."""
    print("\n".join([f"nn-manual: {message}", *getattr(error, "__notes__", [])]), file=sys.stderr)
    return status


def _terminate(signum: int, frame: FrameType | None) -> NoReturn:  # noqa: ARG001 - a signal handler's signature
    raise _Terminated


def _train(options: argparse.Namespace) -> int:
    from nn_manual.config import load_config, reported
    from nn_manual.running.progress import describe
    from nn_manual.running.run import default_run_directory, run

    config = load_config(options.config, options.overrides)
    directory = options.run_dir or default_run_directory(options.config)
    every_step = config.gradient_check.every == 1
    with reported(config.named_layers().values(), config.layer_folder, checked=every_step):
        summary = run(config, directory)
    print(describe(summary, directory))
    return GradientMismatch.exit_status if summary["gradient_check"]["unproven"] else 0


def _check(options: argparse.Namespace) -> int:
    if options.replay is not None and options.config is not None:  # what looks like CONFIG is the first override
        options.config, options.overrides = None, [str(options.config), *options.overrides]
    if (options.config is not None) + (options.replay is not None) + options.catalogue + options.ops != 1:
        raise ConfigError("check takes one of these: CONFIG, --replay BUNDLE, --catalogue, --ops")
    if options.replay is not None:
        from nn_manual.running.replay import replay

        replayed = replay(options.replay, options.overrides)
        if replayed.not_reproduced is not None:
            print(replayed)
            raise NotReproducedError(f"step {replayed.bundle.step} is not reproduced: {replayed.not_reproduced}")
        return _report(replayed)
    if options.catalogue:
        from nn_manual.check.catalogue.catalogue import catalogue

        return _report(catalogue())
    if options.ops:
        from nn_manual.check.catalogue.operations import check_operations

        return _report(check_operations())
    from nn_manual.config import load_config, reported
    from nn_manual.running.run import check

    config = load_config(options.config, options.overrides)
    with reported(config.named_layers().values(), config.layer_folder, checked=True):
        return _report(check(config))


def _report(report: object) -> int:
    print(report)
    return 0 if report.passed else 3  # type: ignore[attr-defined]  # each of the four kinds has it


def _plot(options: argparse.Namespace) -> int:
    from nn_manual.plotting import plot_runs

    print(plot_runs(options.runs, options.output, smoothing=options.smoothing, log_y=options.log_y))
    return 0


def _sample(options: argparse.Namespace) -> int:
    from nn_manual.running.sample import sample

    texts = sample(
        options.run,
        options.prompt,
        options.length,
        temperature=options.temperature,
        top_k=options.top_k,
        seed=options.seed,
    )
    if isinstance(sys.stdout, io.TextIOWrapper):  # a text may have characters that the terminal lacks
        sys.stdout.reconfigure(errors="backslashreplace")
    first = next(texts)
    try:
        for text in itertools.chain([first], texts):
            print(text, end="", flush=True)
    finally:  # what ended it stands on a line of its own
        print()
    return 0


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = _parser()
    options, others = parser.parse_known_args(arguments)
    # argparse doesn't go back to the overrides once an option stood between them and CONFIG.
    if others and (not hasattr(options, "overrides") or any(other.startswith("-") for other in others)):
        parser.error(f"unrecognized arguments: {' '.join(others)}")
    if others:
        options.overrides += others
    return options


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="nn-manual",
        description="Neural networks whose every gradient is derived by hand and proven against PyTorch.",
    )
    commands = parser.add_subparsers(title="commands", required=True, metavar="train | check | plot | sample")
    train = commands.add_parser("train", help="train from a YAML config, every gradient compared with torch's")
    _add_config(train)
    train.add_argument("--run-dir", type=Path, metavar="DIR", help="default: runs/<config name>/<time>")
    train.set_defaults(command=_train)
    check = commands.add_parser("check", help="compare every tensor of one batch with torch's, without training")
    _add_config(check, nargs="?")
    check.add_argument("--catalogue", action="store_true", help="check every layer, loss and optimizer there is")
    check.add_argument("--replay", type=Path, metavar="BUNDLE", help="run a step again that differed in a training run")
    check.add_argument("--ops", action="store_true", help="check every operation of nn_manual.ops")
    check.set_defaults(command=_check)
    plot = commands.add_parser("plot", help="draw the curves of one or more runs")
    plot.add_argument("runs", type=Path, nargs="+", metavar="RUN", help="a run directory")
    plot.add_argument("-o", "--output", type=Path, default=Path("loss.png"), metavar="FILE", help="PNG, SVG or PDF")
    plot.add_argument(
        "--smoothing", type=float, default=0.0, metavar="WEIGHT", help="from 0 (none) to below 1, as in TensorBoard"
    )
    plot.add_argument("--log-y", action="store_true", help="logarithmic losses")
    plot.set_defaults(command=_plot)
    _add_sample(commands.add_parser("sample", help="let the model of a run on Text write"))
    return parser


def _add_sample(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", type=Path, metavar="RUN", help="a run directory")
    parser.add_argument("--prompt", required=True, metavar="TEXT", help="what the text begins with")
    parser.add_argument("--length", type=int, default=500, metavar="COUNT", help="characters to write (500)")
    parser.add_argument(
        "--temperature", type=float, default=1.0, help="below 1 likely characters become likelier, above 1 others (1)"
    )
    parser.add_argument("--top-k", type=int, metavar="COUNT", help="draw from this many of the likeliest (all)")
    parser.add_argument("--seed", type=int, default=0, help="of what is drawn (0)")
    parser.set_defaults(command=_sample)


def _add_config(parser: argparse.ArgumentParser, nargs: str | None = None) -> None:
    parser.add_argument("config", type=Path, metavar="CONFIG", nargs=nargs, help="a YAML file, as in config/")
    parser.add_argument(  # without a default, argparse calls it required
        "overrides",
        nargs="*",
        default=[],
        metavar="KEY=VALUE",
        help="instead of the config's, as in optimizer.SGD.lr=0.05",
    )
