"""gradients.jsonl, read: columns with one entry for each line, and a table of every tensor's errors."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from nn_manual.arrays import Array
from nn_manual.errors import DataError
from nn_manual.run_directory.columns import columns, columns_of
from nn_manual.run_directory.records import read_records, shown
from nn_manual.run_directory.schema import Line, LineVerdict
from nn_manual.run_directory.step_line import ERRORS

GRADIENTS_COLUMNS = columns_of(Line)
VERDICT_COLUMNS = columns_of(LineVerdict)

#: What a difference in a ledger means: within the tolerance, beyond it by rounding, or wrong.
WITHIN, ROUNDING, MISMATCH = range(3)


@dataclass(frozen=True, eq=False)
class Ledger:
    """How far each tensor was from torch's: three arrays (lines, tensors), where a line stands for one checked step or
    for the worst of several.

    0 says that all elements were equal, and nothing else is written as 0. NaN stands for a tensor that was not
    compared, which happens only in the step of a mismatch.
    """

    tensors: tuple[str, ...]
    #: max|ours - torch|, in percent of what the tolerance allows, float64.
    percent: Array
    #: The same in units of the last place at the tensor's largest magnitude, float64.
    ulps: Array
    #: WITHIN, ROUNDING or MISMATCH, int8.
    verdict: Array


def read_gradients(path: Path) -> tuple[dict[str, Array], Ledger]:
    """The columns of the file `path`, and its ledger. Raises DataError with the file and the line."""
    table = _Table(path)
    gradients = columns(path, table.take_errors(), GRADIENTS_COLUMNS | VERDICT_COLUMNS)
    step, first, last, num_steps = (gradients[key] for key in ("step", "first_step", "last_step", "num_steps"))
    possible = (first >= 0) & (first <= step) & (step <= last) & (num_steps >= 1)
    possible[possible] = num_steps[possible] - 1 <= (last - first)[possible]
    if not possible.all():
        line = int(possible.argmin())
        steps = f"step {step[line]} of {num_steps[line]} from {first[line]} to {last[line]}"
        raise DataError(f"{path}:{line + 1}: there is no {steps}")
    return gradients, table.ledger()


class _Table:
    """The ledger of a file, with an array for each line: as Python's lists of floats, a long run's takes gigabytes."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.tensors: tuple[str, ...] | None = None
        #: For each line the errors (tensors, 2), and its tensors where they may not be those of the first line.
        self.rows: list[tuple[Array, tuple[str, ...] | None]] = []
        self.verdicts: list[tuple[int, list[str], int]] = []

    def take_errors(self) -> Iterator[dict[str, Any]]:
        """The lines of the file, without their errors, which go into the table."""
        for number, record in enumerate(read_records(self.path), start=1):
            is_mismatch = "mismatch" in record
            self._take_row(number, record, is_mismatch)
            rounding, mismatch = (self._names(number, record, key) for key in ("rounding", "mismatch"))
            self.verdicts += [(number - 1, rounding, ROUNDING), (number - 1, mismatch, MISMATCH)]
            record["rounding"] = len(rounding)
            record["mismatch"] = "" if not is_mismatch else mismatch[0] if mismatch else record.get("problem", "")
            for key, value in (("first_step", record.get("step")), ("last_step", record.get("step")), ("num_steps", 1)):
                record.setdefault(key, value)
            yield record

    def _take_row(self, number: int, record: dict[str, Any], is_mismatch: bool) -> None:
        if ERRORS not in record:
            raise DataError(f'{self.path}:{number}: "{ERRORS}" is missing')
        errors = record.pop(ERRORS)
        row = _row(errors)
        if row is None:
            raise DataError(
                f'{self.path}:{number}: "{ERRORS}" is {shown(errors)}, expected {{tensor: [percent, ULPs]}}'
            )
        tensors = tuple(errors)
        if not is_mismatch:
            self.tensors = self.tensors or tensors
            if tensors != self.tensors:
                raise DataError(f'{self.path}:{number}: "{ERRORS}" has other tensors than the first line')
        self.rows.append((row, tensors if is_mismatch else None))

    def _names(self, number: int, record: dict[str, Any], key: str) -> list[str]:
        names = record.get(key, [])
        if type(names) is not list or not set(map(type, names)) <= {str}:
            raise DataError(f'{self.path}:{number}: "{key}" is {shown(names)}, expected a list of names')
        return names

    def ledger(self) -> Ledger:
        """The ledger of all lines."""
        others = chain.from_iterable(tensors for _, tensors in self.rows if tensors)
        names = tuple(dict.fromkeys([*(self.tensors or ()), *others]))
        places = {name: index for index, name in enumerate(names)}
        percent, ulps = np.full((2, len(self.rows), len(names)), np.nan)
        first = slice(len(self.tensors or ()))
        for line, (row, tensors) in enumerate(self.rows):
            columns = first if tensors is None else [places[name] for name in tensors]
            percent[line, columns], ulps[line, columns] = row.T
        verdict = np.full(percent.shape, WITHIN, np.int8)
        for line, tensors_so, meaning in self.verdicts:
            verdict[line, [places[name] for name in tensors_so if name in places]] = meaning
        return Ledger(names, percent, ulps, verdict)


def _row(errors: object) -> Array | None:
    """The values of {tensor: [percent, ULPs]} as an array (tensors, 2); None where `errors` has another form."""
    # Each of these tests runs over all tensors without a loop in Python: the file has a line for each step.
    if not isinstance(errors, dict) or not set(map(type, errors.values())) <= {list}:
        return None
    numbers = list(chain.from_iterable(errors.values()))
    if not set(map(len, errors.values())) <= {2} or not set(map(type, numbers)) <= {float, int}:
        return None
    try:
        row = np.array(numbers, np.float64).reshape(-1, 2)
    except OverflowError:  # an integer beyond 1.8e308
        return None
    return None if (row < 0).any() else row
