"""Errors in a run's components, some of which may be the user's own, as errors of the config."""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from contextlib import contextmanager

from nn_manual.config.run_config import RunConfig
from nn_manual.config.user_classes import class_of, import_path
from nn_manual.config.users_code import kept_streams, placed_words
from nn_manual.defaults import is_of_package
from nn_manual.errors import (
    ConfigError,
    NNManualError,
    NoReference,
    notes_of,
    out_of_memory,
    raise_if_nobodys_fault,
    text_of,
)
from nn_manual.messages.users_lines import last_line
from nn_manual.registry import kind_of


@contextmanager
def reported(config: RunConfig, *, checked: bool) -> Iterator[None]:
    """The context in which an error in a component of the config becomes a ConfigError that begins with file:line.

    Where the error is not raised in the user's own code, but in code that used what it returned, a note names the
    user's own components. `checked` says whether each step is compared with torch's, as this mostly names the layer. If
    memory is short, a note names the line of their code that asked for it. Where torch has nothing to compare a
    component with, the place is that in the config.
    """
    folder = config.layer_folder
    try:
        with kept_streams():
            yield
    except NNManualError:
        raise
    except BaseException as error:  # a component of the user's own may raise anything
        if out_of_memory(error) is not None and folder is not None and (place := last_line(error, folder)) is not None:
            error.add_note(f"asked for at {place}")
        raise_if_nobodys_fault(error)
        theirs = {path: own for path, own in _classes(config).items() if not is_of_package(own)}
        if isinstance(error, NoReference):
            raise _placed(error, config) from error
        # Python turns a StopIteration that leaves a generator into an error that says less.
        first = error.__cause__ if isinstance(error.__cause__, StopIteration) else error
        placed = ConfigError(placed_words(first, folder))
        if folder is None or last_line(first, folder) is None:
            if not theirs or isinstance(error, OSError):
                raise
            advice = "" if checked else ": gradient_check.every=1 names the layer"
            names = dict.fromkeys(own.__name__ for own in _running(first) & {*theirs.values()} or theirs.values())
            placed.add_note(f"{' or '.join(names)} may have returned it{advice}")
        for note in notes_of(error):
            placed.add_note(note)
        raise placed from error


def _running(error: BaseException) -> set[type]:
    """The classes of the objects that the line which raised the error has at hand, as `self` or by another name."""
    *_, (last, _) = traceback.walk_tb(error.__traceback__)
    return {type(thing) for thing in last.f_locals.values()}


def _placed(error: NoReference, config: RunConfig) -> ConfigError:
    """The error at the place of the component: the one that is of the same kind, or that holds it."""
    kind = kind_of(error.component)
    path = next(path for path, own in _classes(config).items() if kind_of(own) is kind)
    where = config.places.get(path, path)
    return ConfigError(f"{where}: {import_path(error.component)} can't be checked: {text_of(error)}")


def _classes(config: RunConfig) -> dict[str, type]:
    """The class of each component, by its path."""
    return {path: class_of(component) for path, component in config.components().items()}
