"""The arguments that several commands have."""

from __future__ import annotations

import argparse
from pathlib import Path

from nn_manual.cli.completion import override_keys


def path(text: str) -> Path:
    """A path of the command line. Raises ArgumentTypeError for an empty one: Path takes it for the current folder."""
    if not text:
        raise argparse.ArgumentTypeError("the path is empty; the current folder is .")
    return Path(text)


def add_config(parser: argparse.ArgumentParser, nargs: str | None = None, also: str = "") -> None:
    """Give a command its CONFIG and the overrides. `also` says what else CONFIG may be."""
    parser.add_argument("config", type=path, metavar="CONFIG", nargs=nargs, help=f"a YAML file, as in config/{also}")
    add_overrides(parser, "a value in the place of the config's, as in optimizer.SGD.lr=0.05")


def add_run(parser: argparse.ArgumentParser) -> None:
    """Give a command its RUN, and what says which of the run's models it is."""
    parser.add_argument("run", type=path, metavar="RUN", help="a run directory")
    parser.add_argument(
        "--checkpoint",
        choices=["best", "last"],
        help="which weights: the best on validation, or the last (default: the best, if there are any)",
    )
    parser.add_argument(
        "--layer-folder", type=path, metavar="FOLDER", help="where your own classes lie, if no longer where they lay"
    )


def add_overrides(parser: argparse.ArgumentParser, help: str) -> None:
    """Give a command its overrides."""
    # Without a default, argparse says that it is required.
    overrides = parser.add_argument("overrides", nargs="*", default=[], metavar="KEY=VALUE", help=help)
    overrides.completer = override_keys  # type: ignore[attr-defined]  # argcomplete asks for it
