"""The options of each command."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from nn_manual.cli import checks, commands
from nn_manual.cli.arguments import add_config, add_overrides, add_run, path
from nn_manual.cli.completion import complete
from nn_manual.cli.exercise import add_exercise_commands
from nn_manual.cli.function_options import EXIT_STATUSES_OF_A_FUNCTION, add_function_options
from nn_manual.messages.text import one_line

if TYPE_CHECKING:
    from _typeshed import SupportsWrite

#: The kinds of components, as in config.listing, which is loaded only when it is needed.
KINDS = ("layers", "losses", "optimizers", "schedules", "data", "initializers")

EXIT_STATUSES = """\
exit status:
  0    done
  2    usage, a config that is wrong, or too little memory
  3    a gradient mismatch, or a tensor that was zero wherever it was compared
  4    a value that is not finite
  5    data, a run or a checkpoint that is missing, unreadable or corrupt
  6    a replay that doesn't reproduce the recorded step
  7    one of several processes was lost
  129  hung up: the terminal was closed (SIGHUP)
  130  interrupted, by Ctrl-C (SIGINT)
  141  the reader of a pipe has gone
  143  terminated (SIGTERM)
"""


class _Version(argparse.Action):
    """Prints the version of the installed package: only if it is asked for, since it takes a moment to find."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> NoReturn:
        from importlib.metadata import PackageNotFoundError, version

        try:
            print(f"nn-manual {version('nn_manual')}")
        except PackageNotFoundError:
            print("nn-manual, not installed: run from its folder")
        parser.exit()


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """The options of one command. Their `command` is the function that runs it. Raises SystemExit(2) for bad usage, as
    argparse does.
    """
    parser = new_parser()
    complete(parser)
    options, others = parser.parse_known_args(arguments)
    # argparse doesn't recognize overrides if an option stands between them and CONFIG.
    if others and (not hasattr(options, "overrides") or any(other.startswith("-") for other in others)):
        parser.error(f"unrecognized arguments: {' '.join(others)}")
    if others:
        options.overrides += others
    return options


class _Parser(argparse.ArgumentParser):
    """Reports what is wrong on the command line as one printable line."""

    def print_help(self, file: SupportsWrite[str] | None = None) -> None:
        """Print the help. argparse's own method says nothing if that fails."""
        print(self.format_help(), end="", file=file)

    def error(self, message: str) -> NoReturn:
        """Print the usage and the message, and exit with status 2. If there are several processes, all have the same
        command line: only the first on each machine prints.
        """
        if "RANK" in os.environ and os.environ.get("LOCAL_RANK", "0") != "0":
            self.exit(2)
        super().error(one_line(message))


def new_parser() -> argparse.ArgumentParser:
    """The parser of the command line, with those of all commands."""
    parser = _Parser(
        prog="nn-manual",
        description="Neural networks whose every gradient is derived by hand\nand proven against PyTorch.",
        epilog=EXIT_STATUSES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action=_Version, nargs=0, help="show the version and exit")
    names = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    new = names.add_parser("new", help="a config that trains on a table, on arrays or on a text of your own")
    new.add_argument("file", type=path, metavar="FILE", help="the data: .csv, .csv.gz, .npz or .txt")
    new.add_argument(
        "--target",
        action="append",
        default=[],
        metavar="NAME",
        help="the column or the array to predict; give it again for another column",
    )
    new.add_argument(
        "--task", choices=["classification", "regression"], help="what to predict (default: what it looks like)"
    )
    new.add_argument("-o", "--output", type=path, metavar="FILE", help="the config (default: standard output)")
    new.set_defaults(command=commands.new)
    train = names.add_parser("train", help="train from a YAML config, every gradient compared with torch's")
    add_config(train, nargs="?")
    train.add_argument("--resume", type=path, metavar="RUN", help="go on with a run, or from RUN/checkpoints/step-N")
    train.add_argument(
        "--run-dir", type=path, metavar="DIR", help="the new run directory (default: runs/<config name>/<time>)"
    )
    train.add_argument(
        "--log", choices=["tensorboard"], help="write the curves for TensorBoard, too, into the run directory"
    )
    train.set_defaults(command=commands.train)
    check = names.add_parser("check", help="compare every tensor of one batch with torch's, without training")
    add_config(check, nargs="?", also="; or FILE.py or FILE.py:Class, components of your own")
    check.add_argument("--catalogue", action="store_true", help="check the package's components: a minute")
    check.add_argument(
        "--replay", type=path, metavar="BUNDLE", help="run a recorded step again that differed from torch's"
    )
    check.add_argument("--ops", action="store_true", help="check every operation of nn_manual.ops")
    check.set_defaults(command=checks.check)
    add_function_options(
        names.add_parser(
            "check-function",
            help="check an autograd.Function or a kernel against its definition",
            epilog=EXIT_STATUSES_OF_A_FUNCTION,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
    )
    plot = names.add_parser("plot", help="draw the curves of one or more runs")
    plot.add_argument("runs", type=path, nargs="+", metavar="RUN", help="a run directory")
    plot.add_argument(
        "-o",
        "--output",
        type=path,
        default=Path("loss.png"),
        metavar="FILE",
        help="the figure: PNG, SVG or PDF (default: loss.png)",
    )
    plot.add_argument(
        "--smoothing",
        type=float,
        default=0.0,
        metavar="WEIGHT",
        help="smooth losses and accuracies: from 0 (none, the default) to below 1, as in TensorBoard",
    )
    plot.add_argument("--log-y", action="store_true", help="draw the losses on a logarithmic axis")
    plot.set_defaults(command=commands.plot)
    evaluate = names.add_parser("evaluate", help="how good a trained model is: loss, scores, and a figure")
    add_run(evaluate)
    add_overrides(evaluate, "other data or loss, as in data.Arrays.file=other.csv")
    evaluate.add_argument(
        "-o",
        "--output",
        type=path,
        metavar="FILE",
        help="the figure: PNG, SVG or PDF (default: RUN/confusion.png, of a regression RUN/predictions.png)",
    )
    evaluate.set_defaults(command=commands.evaluate)
    predict = names.add_parser("predict", help="a trained model's predictions for the examples in a file")
    add_run(predict)
    predict.add_argument(
        "--input",
        type=path,
        required=True,
        metavar="FILE",
        help="the examples: .csv, .csv.gz or .npz, or - for a CSV on standard input",
    )
    predict.add_argument(
        "--output",
        type=path,
        metavar="FILE",
        help="the predictions: .csv or .npz; a file of that name is replaced (default: printed as a CSV)",
    )
    predict.set_defaults(command=commands.predict)
    summary = names.add_parser("summary", help="a config's layers: shapes, parameters, multiplications, check")
    summary.add_argument(
        "--measure", action="store_true", help="make a step also of a large model, and say what it takes"
    )
    add_config(summary)
    summary.set_defaults(command=commands.summary)
    unroll = names.add_parser("unroll", help="a config's training step as a script of NumPy, to read and to run")
    add_config(unroll)
    unroll.add_argument("-o", "--output", type=path, metavar="FILE", help="the script (default: standard output)")
    unroll.add_argument(
        "--run", action="store_true", help="unroll the whole run: FILE, with its data beside it as .npz"
    )
    unroll.add_argument(
        "--values", action="store_true", help="beside each line its shape and first numbers, and torch's gradients"
    )
    unroll.set_defaults(command=commands.unroll)
    listing = names.add_parser("list", help="what a config can name, each with its keys, types and defaults")
    listing.add_argument("kind", nargs="?", choices=KINDS, metavar="KIND", help=f"{', '.join(KINDS)} (default: all)")
    listing.set_defaults(command=commands.list_components)
    schema = names.add_parser("schema", help="the JSON Schema of a config, for editors that complete and check it")
    schema.add_argument(
        "-o",
        "--output",
        type=path,
        metavar="FILE",
        help="the schema; a file of that name is replaced (default: standard output)",
    )
    schema.set_defaults(command=commands.schema)
    _add_sample(names.add_parser("sample", help="text that a model trained on Text writes"))
    add_exercise_commands(names.add_parser("exercise", help="gradients to derive yourself, and their check"))
    return parser


def _add_sample(parser: argparse.ArgumentParser) -> None:
    add_run(parser)
    parser.add_argument("--prompt", required=True, metavar="TEXT", help="what the text begins with")
    parser.add_argument("--length", type=int, default=500, metavar="COUNT", help="characters to write (default: 500)")
    parser.add_argument(
        "--temperature",
        type=float,
        default=1.0,
        help="below 1, likely characters become more likely; above 1, others do (default: 1)",
    )
    parser.add_argument(
        "--top-k", type=int, metavar="COUNT", help="draw only from so many of the likeliest characters (default: all)"
    )
    parser.add_argument("--seed", type=int, default=0, help="the seed of the random draws (default: 0)")
    parser.set_defaults(command=commands.sample)
