"""What a right solution computes: of an exercise of the package, and of one that a teacher has made."""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from nn_manual.errors import ConfigError, DataError
from nn_manual.exercises.files.statement import order
from nn_manual.exercises.kinds.exercise import Case, Exercise, Results
from nn_manual.exercises.running.answer import Answer
from nn_manual.exercises.running.request import Request
from nn_manual.exercises.running.solving import cases_of
from nn_manual.layers import Layer
from nn_manual.messages.text import one_line
from nn_manual.opening import open_file

#: The ending of the file that a teacher's exercise is in, beside its text.
ENDING = ".exercise"


@dataclass(frozen=True)
class Reference:
    """The results of a right solution.

    `inputs` say of each case its setting and what is special about its input. `names` are the tensors, in the order in
    which the docstring has them. An exercise of the package has its `exercise` and its `cases`: with them a mistake
    can be found. Of one that a teacher has made, `made` has what a process needs to run the reader's class.
    """

    name: str
    title: str
    inputs: Sequence[tuple[str, str]]
    expected: Sequence[Results]
    names: Sequence[str]
    exercise: Exercise | None = None
    cases: Sequence[Case] = ()
    made: Mapping[str, Any] = field(default_factory=dict)

    @property
    def owner(self) -> Any:
        """The component of the package; of a teacher's exercise, Layer for a layer, or None."""
        if self.exercise is not None:
            return self.exercise.owner
        return Layer if self.made.get("kind") == "Layer" else None

    @property
    def taken_out(self) -> tuple[str, ...]:
        """The names of the methods that the reader writes."""
        own: tuple[str, ...] = self.made["taken_out"] if self.exercise is None else self.exercise.taken_out
        return own

    def request(self, file: str) -> Request:
        """What a process is to run for a file."""
        return Request(file, self.name, "", **self.made)

    def to_bytes(self, exercise: Exercise, kind: str) -> bytes:
        """The file of a teacher's exercise: a line about it, and the results."""
        made = {"title": exercise.title, "kind": kind, "taken_out": exercise.taken_out}
        head = {"name": self.name, "inputs": self.inputs, "names": self.names, "made": made}
        return json.dumps(head).encode() + b"\n" + Answer(self.expected).to_bytes()


@functools.cache
def reference(exercise: Exercise) -> Reference:
    """The results of the package's own class."""
    return made_reference(exercise, cases_of(exercise, is_made=False))


def made_reference(exercise: Exercise, cases: Sequence[Case]) -> Reference:
    """The results of an exercise's own class on some of its cases."""
    with np.errstate(all="ignore"):
        expected = [case.run(exercise.owner) for case in cases]
    inputs = [(case.setting, case.kind) for case in cases]
    names = in_order(dict.fromkeys(name for results in expected for name in results), order(exercise))
    return Reference(exercise.name, exercise.title, inputs, expected, names, exercise, cases)


def in_order(names: Mapping[str, Any], stated: Sequence[str]) -> list[str]:
    """The names in the order in which formulas state them, with the others where they were."""
    outputs = [name for name in names if not name.startswith("grad_")]
    grads = [name for name in names if name.startswith("grad_")]
    return outputs + sorted(grads, key=lambda name: stated.index(name) if name in stated else len(stated))


def read_reference(path: Path) -> Reference:
    """The results in the file of a teacher's exercise. Raises DataError for a file that has none."""
    try:
        with open_file(path) as file:
            head, _, rest = file.read().partition(b"\n")
    except (OSError, ValueError) as error:
        raise DataError(one_line(f"{path}: {getattr(error, 'strerror', None) or error}")) from None
    try:
        told = json.loads(head)
        made = dict(told["made"], taken_out=tuple(told["made"]["taken_out"]))
        inputs = [(str(setting), str(kind)) for setting, kind in told["inputs"]]
        expected: Any = Answer.from_bytes(rest).results
        return Reference(told["name"], made["title"], inputs, expected, told["names"], made=made)
    except (LookupError, TypeError, ValueError):
        raise DataError(one_line(f"{path}: is no exercise that nn-manual exercise make has written")) from None


def refuse_existing(path: Path) -> None:
    """Raise ConfigError for a file that is there: nothing is overwritten."""
    if path.exists() or path.is_symlink():
        raise ConfigError(one_line(f"{path} is there already, and nothing is overwritten: choose another name with -o"))
