"""gradients.jsonl: one JSON object a line for each checked step, written and read here.

    {"step": 17, "tensors": 19, "worst": "2.grad_bias", "absolute": ..., "relative": ..., "tolerance": ..., "ulps": ...,
     "rounding": [names], "not_judged": [names], "errors": {tensor: [percent of the tolerance, ULPs], ...}}

`rounding` names the tensors beyond their tolerance by rounding alone, `not_judged` those that differences are too
coarse for; both are left out where they would be empty. The errors are the ledger: every tensor, in the order in which
a mistake would spread.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from nn_manual.arrays import Array
from nn_manual.errors import DataError
from nn_manual.run_directory.files import JsonLines
from nn_manual.run_directory.records import columns, read_records, shown

GRADIENTS_FILE = "gradients.jsonl"

#: The type of each column: how many tensors were compared, the name of the worst one, and of that one
#: max|ours - torch|, the same divided by max|torch|, the most that this may be, and the error in ULPs.
GRADIENTS_COLUMNS: dict[str, type] = {
    "step": int,
    "tensors": int,
    "worst": str,
    "absolute": float,
    "relative": float,
    "tolerance": float,
    "ulps": float,
}
#: The key that holds the ledger.
ERRORS = "errors"

#: What a ledger has for infinity, which JSON does not have, and for less than this, which could pass for 0.
LARGEST, SMALLEST = 1e99, 1e-99


class CheckedStep(Protocol):
    """What the ledger needs of a checked step: of each tensor its name, its tolerance relative to max|torch|,
    max|ours - torch|, this relative to max|torch|, the relative error by its tolerance, and the error in ULPs.
    """

    @property
    def tensors(self) -> tuple[str, ...]: ...  # noqa: D102 - the docstring above
    @property
    def tolerances(self) -> Array: ...  # noqa: D102 - the docstring above
    @property
    def absolute(self) -> Array: ...  # noqa: D102 - the docstring above
    @property
    def relative(self) -> Array: ...  # noqa: D102 - the docstring above
    @property
    def severity(self) -> Array: ...  # noqa: D102 - the docstring above
    @property
    def ulps(self) -> Array: ...  # noqa: D102 - the docstring above
    @property
    def rounding(self) -> frozenset[str]: ...  # noqa: D102 - the docstring above
    @property
    def not_judged(self) -> frozenset[str]: ...  # noqa: D102 - the docstring above


class LedgerLines(JsonLines):
    """gradients.jsonl of a run that is under way."""

    def append_step(self, step: int, check: CheckedStep) -> None:
        """Add the line of a checked step. It is put together when it is written: many in a row find their code in the
        processor's cache, and take a fraction of the time that each would take between two steps of a training.
        """
        self.append_later(functools.partial(_line, step, check))


def record_of(step: int, check: CheckedStep) -> dict[str, Any]:
    """A line without its errors: how many tensors, and the errors of the one nearest to its tolerance."""
    worst = int(check.severity.argmax())
    record: dict[str, Any] = {
        "step": step,
        "tensors": len(check.tensors),
        "worst": check.tensors[worst],
        "absolute": float(check.absolute[worst]),
        "relative": float(check.relative[worst]),
        "tolerance": float(check.tolerances[worst]),
        "ulps": float(check.ulps[worst]),
    }
    names = {"rounding": sorted(check.rounding), "not_judged": sorted(check.not_judged)}
    return record | {key: value for key, value in names.items() if value}


def errors_of(check: CheckedStep) -> str:
    """Every tensor's error as JSON: {tensor: [percent of the tolerance, ULPs]}.

    [0, 0] says that all elements are equal. Others are rounded to three digits and lie between SMALLEST and LARGEST;
    the latter is the percent of a tensor that is all zeros in torch and not in ours.
    """
    with np.errstate(over="ignore"):  # infinity, which LARGEST stands for
        errors = np.array([100 * check.severity, check.ulps]).T
    np.clip(errors, SMALLEST, LARGEST, out=errors)
    errors[check.absolute == 0] = 0
    return _template(check.tensors) % tuple(errors.ravel().tolist())


@functools.lru_cache(maxsize=8)  # a run has one for each batch size
def _template(tensors: tuple[str, ...]) -> str:
    """The errors of a step but for their numbers. To fill them in takes half of json's time: a small net feels that."""
    names = (json.dumps(name).replace("%", "%%") for name in tensors)
    return f"{{{', '.join(f'{name}: [%.3g, %.3g]' for name in names)}}}"


def _line(step: int, check: CheckedStep) -> str:
    return f'{JsonLines.encode(record_of(step, check))[:-1]}, "{ERRORS}": {errors_of(check)}}}'


@dataclass(frozen=True, eq=False)
class Ledger:
    """How far each tensor of each checked step was from torch's: two arrays (steps, tensors), float64.

    A 0 says that all elements were equal, and nothing else is written as 0.
    """

    tensors: tuple[str, ...]
    #: max|ours - torch|, in percent of what the tolerance allows; above 100 only where it was rounding.
    percent: Array
    #: The same in units of the last place at the tensor's largest magnitude.
    ulps: Array


def read_gradients(path: Path) -> tuple[dict[str, Array], Ledger]:
    """The columns of the file `path`, and its ledger. Raises DataError with the file and the line."""
    records: list[Mapping[str, Any]] = []
    rows: list[Array] = []
    tensors: tuple[str, ...] = ()
    for number, record in enumerate(read_records(path), start=1):
        if ERRORS not in record:
            raise DataError(f'{path}:{number}: "{ERRORS}" is missing')
        # Out of the record, and an array at once: a long run's ledger takes gigabytes as Python's lists of floats.
        errors = record.pop(ERRORS)
        row = _ledger_row(errors)
        if row is None:
            raise DataError(f'{path}:{number}: "{ERRORS}" is {shown(errors)}, expected {{tensor: [percent, ULPs]}}')
        tensors = tensors if records else tuple(errors)
        if tuple(errors) != tensors:
            raise DataError(f'{path}:{number}: "{ERRORS}" has other tensors than the first line')
        records.append(record)
        rows.append(row)
    percent, ulps = np.array(rows, np.float64).reshape(len(rows), len(tensors), 2).transpose(2, 0, 1)
    return columns(path, records, GRADIENTS_COLUMNS), Ledger(tensors, percent, ulps)


def _ledger_row(errors: object) -> Array | None:
    """The values of {tensor: [percent, ULPs]} as an array (tensors, 2); None where `errors` is something else."""
    # Each of these runs over all tensors without a line of Python: the file has one for each step.
    if not isinstance(errors, dict) or not set(map(type, errors.values())) <= {list}:
        return None
    numbers = list(chain.from_iterable(errors.values()))
    if not set(map(len, errors.values())) <= {2} or not set(map(type, numbers)) <= {float, int}:
        return None
    try:
        return np.array(numbers, np.float64).reshape(-1, 2)
    except OverflowError:  # an integer beyond 1.8e308
        return None
