"""Random programs of NumPy's operations: views that overlap, broadcasting, writes in place, loops, ties, infinities.

A program is lines of Python on the arrays a, b, c and on what earlier lines made. The lines never depend on the values,
so the program runs on all values of the same shapes and dtypes.
"""

from __future__ import annotations

import functools
import types
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from nn_manual.arrays import Array, over_time

INPUTS = ("a", "b", "c")
DTYPES = ("float32", "float64", "float32", "int64", "int32", "int8", "bool")
#: Numbers on which formulas go wrong, and ties; all other numbers are normal.
SPECIAL = (np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, 1.0, -1.0, 1e30, 1e-30)

@dataclass
class Program:
    """`lines` of Python, and the arrays that they run on, by name."""

    lines: list[str]
    inputs: dict[str, Array]

    @functools.cached_property
    def _code(self) -> types.CodeType:
        return compile("\n".join(self.lines), "<program>", "exec")

    def run(self, inputs: Mapping[str, Array]) -> dict[str, Any]:
        """All arrays and numbers by name, after a run. The run writes to the arrays that it gets."""
        names: dict[str, Any] = {**inputs, "np": np, "over_time": over_time}
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")  # an empty slice, an overflow
            exec(self._code, names)
        return {name: value for name, value in names.items() if isinstance(value, np.ndarray | np.generic)}

    def other_inputs(self, seed: int) -> dict[str, Array]:
        """Other values for the same arrays."""
        generator = np.random.default_rng(seed)
        return {name: values_of(generator, array.shape, str(array.dtype)) for name, array in self.inputs.items()}

    def __str__(self) -> str:
        kinds = (f"{name}: {array.dtype} {array.shape}" for name, array in self.inputs.items())
        return "\n".join([f"# {', '.join(kinds)}", *self.lines])


def values_of(generator: np.random.Generator, shape: tuple[int, ...], dtype: str) -> Array:
    """Numbers of one kind: normal ones, ties, or some of them SPECIAL."""
    if dtype == "bool":
        return generator.random(shape) > 0.5
    if dtype.startswith("int"):
        return generator.integers(-4, 5, shape).astype(dtype)
    values = generator.standard_normal(shape)
    kind = generator.integers(3)
    if kind == 0:
        values = np.round(values)  # ties
    elif kind == 1:
        values = np.where(generator.random(shape) < 0.3, generator.choice(SPECIAL, shape), values)
    return np.asarray(values, dtype)
