"""A student's solution of an exercise, and mistakes in it."""

from __future__ import annotations

import math
import sys
import textwrap
from typing import Any

import numpy as np

from nn_manual import ops
from nn_manual.exercises.kinds.exercise import Exercise


class Student:
    """The right code, and mistakes: what stands in it, what stands there instead, and what must be said of it; None
    where no cause is found.
    """

    def __init__(self, code: str, *mistakes: tuple[str, str, str | None]) -> None:
        self.code = textwrap.dedent(code)
        self.mistakes = mistakes

    def wrong(self, index: int) -> str:
        """The code with one mistake."""
        right, wrong, _ = self.mistakes[index]
        assert right in self.code, right
        return self.code.replace(right, wrong)


def solution(exercise: Exercise, code: str) -> Any:
    """What a file with this code has: the operation, the function, or a subclass of the exercise's class."""
    names: dict[str, Any] = {}
    if isinstance(exercise.owner, ops.Operation):
        names |= {**vars(sys.modules[exercise.owner.rule.__module__]), "np": np, "unbroadcast": ops.unbroadcast}
        exec(code, names)
        return ops.Operation(names[exercise.title], analytic=False)
    if exercise.is_function:
        exec(code, {"np": np}, names)
        return names[exercise.title]
    names |= {**vars(sys.modules[exercise.owner.__module__]), "np": np, "math": math}
    exec(f"class {exercise.title}(Base):\n{textwrap.indent(code, '    ')}", names | {"Base": exercise.owner}, names)
    return names[exercise.title]
