"""gradients.jsonl, written: one JSON object a line for each checked step.

    {"step": 17, "tensors": 19, "worst": "2.grad_bias", "absolute": ..., "relative": ..., "tolerance": ..., "ulps": ...,
     "rounding": [names], "not_judged": [names], "errors": {tensor: [percent of the tolerance, ULPs], ...}}

`rounding` names the tensors that are beyond their tolerance by rounding alone, and `not_judged` the tensors for which
central differences are too coarse; both are left out where they would be empty. The errors are the ledger: every
tensor, in the order in which a mistake would spread.

In a long run a line stands for the worst of several steps in a row, and says so in `first_step`, `last_step` and
`num_steps`; `window` is the most steps of a line. A step with tensors beyond their tolerance has a line of its own. The
step that ended a run by a mismatch has `mismatch`, a list of what was wrong that begins where it was wrong first, or
`problem`, which says why it can't be compared. Some of its tensors may not have been compared.
"""

from __future__ import annotations

import functools
import json
import math
from pathlib import Path
from typing import Any

import numpy as np

from nn_manual.arrays import Array
from nn_manual.run_directory.files import JsonLines
from nn_manual.run_directory.step_line import (
    ERRORS,
    CheckedStep,
    MismatchReport,
    errors_of,
    errors_of_mismatch,
    errors_of_steps,
    line_of,
    record_of,
    record_of_mismatch,
)

GRADIENTS_FILE = "gradients.jsonl"

#: A run of up to MOST_STEPS checked steps has a line for each. A longer run has about MOST_LINES lines, each of equally
#: many steps. A line of config/gpt.yaml, with 333 tensors, has 11 KB: a million of its steps take 45 MB, which leaves
#: as much for steps with lines of their own. A figure is 1000 pixels wide.
MOST_STEPS, MOST_LINES = 100_000, 4_000

#: How many steps of a window wait before they are added up: many in a row find their code in the processor's cache.
GATHERED = 64


def window_size(num_steps: int) -> int:
    """How many checked steps a line stands for in a run that plans `num_steps` of them."""
    return 1 if num_steps <= MOST_STEPS else math.ceil(num_steps / MOST_LINES)


class LedgerLines(JsonLines):
    """gradients.jsonl of a run that is under way, in which a line stands for up to `window` steps.

    A window that isn't full waits for more steps, for a step with a line of its own, or for `close`: `flush` doesn't
    write it. `state` has the steps that wait. With `load_state`, a file that was cut back to the `size` that it had
    then goes on as if nothing had happened.
    """

    def __init__(self, path: Path, window: int = 1, size: int | None = None) -> None:
        super().__init__(path, size)
        self._window = Window(window)

    def append_step(self, step: int, check: CheckedStep) -> None:
        """Add a checked step. Its text is made when it is written: many lines in a row find their code in the
        processor's cache, and take a fraction of the time that each would take between two steps of a training.
        """
        if self._window.size > 1 and not check.rounding:
            self._window.add(step, check)
            if self._window.num_steps >= self._window.size:
                self._close_window()
            return
        if self._window.num_steps:
            self._close_window()
        self.append_later(functools.partial(_line_of_step, step, check))

    def append_mismatch(self, step: int, report: MismatchReport) -> None:
        """Add the step that ended the run by a mismatch. Some of its tensors may not have been compared."""
        self._close_window()
        tensors = tuple(tensor.name for tensor in report.comparisons)
        record, errors = record_of_mismatch(step, report), errors_of_mismatch(report)
        self.append_later(functools.partial(line_of, record, tensors, errors))

    def _close_window(self) -> None:
        if self._window.num_steps:
            self.append_later(functools.partial(line_of, *self._window.take()))

    def close(self) -> None:
        """Write all that waits, also a window that isn't full, and close the file."""
        self._close_window()
        super().close()

    def state(self) -> dict[str, Any]:
        """The window that waits for more steps, in values that JSON can hold; floats are exact."""
        return self._window.state()

    def load_state(self, state: dict[str, Any]) -> None:
        """Go on from what `state` returned. `window` is then what it was at that time, or larger."""
        self._window.load_state(state)


class Window:
    """The worst of up to `size` checked steps in a row, none of which has a tensor beyond its tolerance.

    For each tensor it keeps the largest percent and the largest ULPs, which may come from two steps. It also keeps the
    record of the step that came nearest to a tolerance, the first one if several came equally near.
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self._clear()

    def _clear(self) -> None:
        self.num_steps = self._first = self._last = 0
        self._record: dict[str, Any] = {}
        self._not_judged: set[str] = set()
        self._tensors: tuple[str, ...] = ()
        self._errors = np.zeros((2, 0))
        self._gathered: list[tuple[int, CheckedStep]] = []

    def add(self, step: int, check: CheckedStep) -> None:
        """Add one step."""
        if not self.num_steps:
            self._first, self._tensors, self._errors = step, check.tensors, np.zeros((2, len(check.tensors)))
        self.num_steps += 1
        self._last = step
        self._gathered.append((step, check))
        if len(self._gathered) == GATHERED:
            self._add_up()

    def _add_up(self) -> None:
        if not self._gathered:
            return
        errors = errors_of_steps([check for _, check in self._gathered])
        worst_of_each = errors[0].max(axis=1)
        worst = int(worst_of_each.argmax())
        if not self._record or worst_of_each[worst] > self._errors[0].max():
            self._record = record_of(*self._gathered[worst])
        self._errors = np.maximum(self._errors, errors.max(axis=1))
        self._not_judged.update(*(check.not_judged for _, check in self._gathered))
        self._gathered.clear()

    def take(self) -> tuple[dict[str, Any], tuple[str, ...], Array]:
        """The record of its line, the tensors, and their errors (2, tensors). The window is empty after it."""
        self._add_up()
        covered = {"first_step": self._first, "last_step": self._last, "num_steps": self.num_steps}
        names = {"not_judged": sorted(self._not_judged)} if self._not_judged else {}
        taken = self._record | covered | {"window": self.size} | names, self._tensors, self._errors
        self._clear()
        return taken

    def state(self) -> dict[str, Any]:
        """What it holds, in values that JSON can hold."""
        self._add_up()
        if not self.num_steps:
            return {"window": self.size}
        return {
            "window": self.size,
            "num_steps": self.num_steps,
            "first_step": self._first,
            "last_step": self._last,
            "record": json.loads(JsonLines.encode(self._record)),  # infinity is null there, as it will be in the line
            "not_judged": sorted(self._not_judged),
            ERRORS: dict(zip(self._tensors, self._errors.T.tolist(), strict=True)),
        }

    def load_state(self, state: dict[str, Any]) -> None:
        """Hold what `state` says. A run that goes on for longer than was planned needs a larger size."""
        self.size = max(self.size, state["window"])
        self._clear()
        if ERRORS in state:
            self.num_steps, self._first, self._last = (state[key] for key in ("num_steps", "first_step", "last_step"))
            self._record, self._not_judged = state["record"], set(state["not_judged"])
            self._tensors = tuple(state[ERRORS])
            self._errors = np.array(list(state[ERRORS].values()), np.float64).T


def _line_of_step(step: int, check: CheckedStep) -> str:
    return line_of(record_of(step, check), check.tensors, errors_of(check))
