"""What the tests of layers, losses and optimizers share: comparing, differencing, evaluating a docstring."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from slow_cases import crossed

from nn_manual.arrays import Array
from nn_manual.check.catalogue.input_kinds import KINDS
from nn_manual.exercises.kinds.formulas import evaluate as evaluate_formulas
from nn_manual.exercises.kinds.formulas import formulas

#: Fractions of the largest magnitude, by dtype: correct formulas meet them with a hundredfold margin on small shapes.
TOLERANCES = {"float32": 1e-5, "float64": 1e-12}

def frozen(array: Array) -> Array:
    """The array, which from now on can't be written to."""
    array.flags.writeable = False
    return array


def assert_equal(ours: Any, reference: Any, *, tolerance: float | None = None, scale: float = 0) -> None:
    """One shape, one dtype, and no difference above `tolerance` (the dtype's) of the reference's largest magnitude, or
    of `scale`, the magnitude of what it is the difference of, where that is larger.
    """
    ours, reference = np.asarray(ours), np.asarray(reference)
    assert (ours.shape, ours.dtype) == (reference.shape, reference.dtype)
    assert np.all(np.isfinite(reference))
    tolerance = TOLERANCES[str(reference.dtype)] if tolerance is None else tolerance
    difference = np.abs(ours - reference).max(initial=0)
    assert difference <= tolerance * max(scale, np.abs(reference).max(initial=0)), f"{ours}\nis not\n{reference}"


#: Half the distance of the points that `central_differences` subtracts, for float64 values of about 1. The formula's
#: error is that squared, 1e-12, times the third derivative; the rounding error 1e-16 / 1e-6 = 1e-10.
HALF_STEP = 1e-6
#: A hundred times the sum of these two errors, for sums of a dozen such values.
DIFFERENCE_TOLERANCE = 1e-8


def central_differences(function: Callable[[Array], Any], at: Array) -> Array:
    """The gradient of a scalar function of a float64 array, one element after the other."""
    gradient, point = np.zeros_like(at), at.copy()
    for index in np.ndindex(at.shape):
        point[index] = at[index] + HALF_STEP
        above = function(point)
        point[index] = at[index] - HALF_STEP
        below = function(point)
        point[index] = at[index]
        gradient[index] = (above - below) / (2 * HALF_STEP)
    return gradient


def evaluate(documented: Any, known: dict[str, Any], **conditions: str) -> dict[str, Array]:
    """What the formulas of an object's class make of `known`. Of a condition that is none of its fields, `conditions`
    say what holds: target="indices".
    """
    return evaluate_formulas(formulas(type(documented)), documented, known, conditions)


def combinations(test: Callable[..., None]) -> Any:
    """Run a test with every kind of values and every other kind, in both dtypes. The quick tests take one kind in one
    dtype and the next one in the other; the slow ones take the rest. The other kinds are taken one after the other:
    thousands of tests, each of a millisecond, would cost more than what they test.
    """

    @functools.wraps(test)
    def with_all(**arguments: Any) -> None:
        for other_kind in KINDS:
            try:
                test(other_kind=other_kind, **arguments)
            except Exception as error:
                error.add_note(f"with the other kind {other_kind!r}")
                raise

    parameters = [each for name, each in inspect.signature(test).parameters.items() if name != "other_kind"]
    with_all.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined] # pytest reads it
    return pytest.mark.parametrize(("kind", "dtype"), crossed(list(KINDS), list(TOLERANCES)))(with_all)
