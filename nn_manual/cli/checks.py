"""What the commands that check do with their options. Every heavy import waits until a command needs it."""

from __future__ import annotations

import argparse
import sys

from nn_manual.errors import ConfigError, NotReproducedError


def check(options: argparse.Namespace) -> int:
    """Compare a batch, a recorded step, the classes in a file, or the catalogue with torch. Returns the exit status."""
    if options.replay is not None and options.config is not None:  # what looks like CONFIG is the first override
        options.config, options.overrides = None, [str(options.config), *options.overrides]
    if (options.config is not None) + (options.replay is not None) + options.catalogue + options.ops != 1:
        raise ConfigError("check takes one of these: CONFIG, FILE.py, --replay BUNDLE, --catalogue, --ops")
    if options.replay is not None:
        from nn_manual.use.replay import replay

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
    from nn_manual.config import load_config, names_classes, reported
    from nn_manual.run.loading import check as check_config

    if names_classes(str(options.config)):
        return _check_classes(options)
    config = load_config(options.config, options.overrides)
    with reported(config, checked=True):
        report = check_config(config)
    return _report(report)


def _check_classes(options: argparse.Namespace) -> int:
    """Check the components that a Python file defines, or the one that is named behind it."""
    from nn_manual.check.catalogue.catalogue import check_classes
    from nn_manual.config import classes_in
    from nn_manual.config.users_code import kept_streams

    if options.overrides:
        raise ConfigError(f"override {options.overrides[0]!r}: a file of classes takes none")
    with kept_streams():
        report = check_classes(classes_in(str(options.config)))
    return _report(report)


def check_function(options: argparse.Namespace) -> int:
    """Check a function against its definition. Returns the exit status."""
    if sys.platform == "win32":
        if options.timeout is not None:
            raise ConfigError("--timeout: on Windows the check has no process of its own, which could be ended")
        from nn_manual.functions.from_text import check_named_function as check_named
    else:
        from nn_manual.cli.own_process import check_in_own_process as check_named

    from nn_manual.functions.request import request_of

    return _report(check_named(request_of(options)))


def _report(report: object) -> int:
    print(report)
    return 0 if report.passed else 3  # type: ignore[attr-defined]  # each of the five kinds of reports has it
