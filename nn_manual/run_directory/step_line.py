"""One line of gradients.jsonl: what it needs to know of a checked step, and its text."""

from __future__ import annotations

import functools
import json
import math
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from nn_manual.arrays import Array
from nn_manual.messages.text import printable
from nn_manual.run_directory.files import JsonLines

#: The key that holds the ledger.
ERRORS = "errors"

#: What a ledger has for infinity, which JSON can't hold, and for anything smaller than this, which could pass for 0.
LARGEST, SMALLEST = 1e99, 1e-99


class CheckedStep(Protocol):
    """What the ledger needs of a checked step. For each tensor: its name, its tolerance relative to max|torch|,
    max|ours - torch|, the same relative to max|torch|, this relative error divided by the tolerance, and the error in
    ULPs. Also the names of those that are off by rounding alone, and of those that could not be judged.
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


class ComparedTensor(Protocol):
    """What the ledger needs of a tensor in the report on a mismatch. The figures are those of CheckedStep."""

    @property
    def name(self) -> str: ...  # noqa: D102 - the docstring above
    @property
    def tolerance(self) -> float: ...  # noqa: D102 - the docstring above
    @property
    def absolute(self) -> float: ...  # noqa: D102 - the docstring above
    @property
    def relative(self) -> float: ...  # noqa: D102 - the docstring above
    @property
    def severity(self) -> float: ...  # noqa: D102 - the docstring above
    @property
    def ulps(self) -> float: ...  # noqa: D102 - the docstring above
    @property
    def passed(self) -> bool: ...  # noqa: D102 - the docstring above


class MismatchReport(Protocol):
    """What the ledger needs of the report on a mismatch: its tensors, those of them that are wrong, the names of those
    that are off by rounding alone, and why nothing could be compared.
    """

    @property
    def comparisons(self) -> Sequence[ComparedTensor]: ...  # noqa: D102 - the docstring above
    @property
    def failures(self) -> Sequence[ComparedTensor]: ...  # noqa: D102 - the docstring above
    @property
    def rounding(self) -> frozenset[str]: ...  # noqa: D102 - the docstring above
    @property
    def problem(self) -> str | None: ...  # noqa: D102 - the docstring above


def record_of(step: int, check: CheckedStep, worst: int | None = None) -> dict[str, Any]:
    """A line without its ledger: how many tensors there are, and the errors of the `worst`-th one, or else of the one
    that comes nearest to its tolerance.
    """
    worst = int(check.severity.argmax()) if worst is None else worst
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


def record_of_mismatch(step: int, report: MismatchReport) -> dict[str, Any]:
    """The line, without its ledger, of the step that ended a run by a mismatch."""
    record: dict[str, Any] = {"step": step, "tensors": len(report.comparisons)}
    worst = max(report.comparisons, key=lambda tensor: tensor.severity, default=None)
    record["worst"] = worst.name if worst else ""
    for key in ("absolute", "relative", "tolerance", "ulps"):
        record[key] = float(getattr(worst, key)) if worst else math.nan
    beyond = {tensor.name for tensor in report.comparisons if not tensor.passed}
    rounding = sorted(beyond & report.rounding)
    record |= {"rounding": rounding} if rounding else {}
    record["mismatch"] = [tensor.name for tensor in report.failures]
    return record | ({"problem": printable(report.problem)} if report.problem is not None else {})


def errors_of(check: CheckedStep) -> Array:
    """Every tensor's error in percent of the tolerance and in ULPs, (2, tensors), as numbers that JSON can hold."""
    with np.errstate(over="ignore"):  # infinity, which LARGEST stands for
        return _in_json(100 * check.severity, check.ulps, check.absolute == 0)


def errors_of_steps(checks: Sequence[CheckedStep]) -> Array:
    """The same for several steps with the same tensors, (2, steps, tensors)."""
    severity, ulps, absolute = (
        np.array([getattr(check, key) for check in checks]) for key in ("severity", "ulps", "absolute")
    )
    with np.errstate(over="ignore"):
        return _in_json(100 * severity, ulps, absolute == 0)


def errors_of_mismatch(report: MismatchReport) -> Array:
    """The same for the tensors in the report on a mismatch."""
    rows = [(100 * tensor.severity, tensor.ulps, tensor.absolute) for tensor in report.comparisons]
    percent, ulps, absolute = np.array(rows, np.float64).reshape(-1, 3).T
    return _in_json(percent, ulps, absolute == 0)


def _in_json(percent: Array, ulps: Array, is_equal: Array) -> Array:
    """The errors, percent and ULPs along the first axis: 0 where all elements are equal, else between SMALLEST and
    LARGEST. LARGEST is the percent of a tensor that is all zeros in torch, but not in ours.
    """
    errors: Array = np.maximum(np.fmin([percent, ulps], LARGEST), SMALLEST)  # for NaN, fmin takes LARGEST
    errors[:, is_equal] = 0
    return errors


@functools.lru_cache(maxsize=8)  # a run has one for each batch size
def _template(tensors: tuple[str, ...]) -> str:
    """The text of a step's errors without the numbers. To fill these in takes half of the time that json takes for the
    whole text, which counts in a small net.
    """
    names = (json.dumps(name).replace("%", "%%") for name in tensors)
    return f"{{{', '.join(f'{name}: [%.3g, %.3g]' for name in names)}}}"


def line_of(record: dict[str, Any], tensors: tuple[str, ...], errors: Array) -> str:
    """A line: {tensor: [percent of the tolerance, ULPs]}, rounded to three digits."""
    in_json = _template(tensors) % tuple(errors.T.ravel().tolist())
    return f'{JsonLines.encode(record)[:-1]}, "{ERRORS}": {in_json}}}'
