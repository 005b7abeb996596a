"""Completion in the shell: commands, options, choices, files, and the keys of a config that can be overridden."""

from __future__ import annotations

import argparse
import os
from pathlib import Path


def complete(parser: argparse.ArgumentParser) -> None:
    """Answer the shell and end the process, if the shell asks what could follow. No other start loads argcomplete."""
    if "_ARGCOMPLETE" in os.environ:
        import argcomplete

        argcomplete.autocomplete(parser, always_complete_options=False)  # only where the word begins with a hyphen


def override_keys(parsed_args: argparse.Namespace, **_: object) -> list[str]:
    """What could stand as KEY=VALUE behind a CONFIG, in argcomplete's form of a completer."""
    config: Path | None = getattr(parsed_args, "config", None)
    if config is None:
        return []
    from nn_manual.config.override_keys import override_keys as keys_of

    return [f"{key}=" for key in keys_of(config) if key.isprintable()]
