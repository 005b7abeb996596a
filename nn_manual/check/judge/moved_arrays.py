"""NumPy's arithmetic with results that are moved: what `moved.py` does to torch's operations."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from nn_manual.arrays import Array

#: These round nothing. What `maximum` returns is equal to one of its inputs, and a backward may find that one so.
EXACT = {np.maximum, np.minimum, np.fmax, np.fmin, np.absolute, np.negative, np.positive, np.sign, np.copysign}

#: Products that are no ufuncs. All that NumPy has for linear algebra and for Fourier transforms rounds, too.
PRODUCTS = {np.dot, np.vdot, np.inner, np.einsum, np.tensordot, np.convolve, np.correlate}
ROUND = ("numpy.linalg", "numpy.fft")


def moved_array(array: Array, fraction: float, generator: np.random.Generator) -> Array:
    """A copy of the array whose numbers are moved, as are those of all that NumPy computes of it: each by half to one
    and a half of this fraction, up or down at random, complex ones in any direction.
    """

    class Moved(_Moved):
        pass

    Moved.fraction, Moved.generator = fraction, generator
    result: Array = Moved.moved(array).view(Moved)
    return result


class _Moved(np.ndarray):
    fraction: ClassVar[float]
    generator: ClassVar[np.random.Generator]

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **keywords: Any) -> Any:
        outs = keywords.get("out", ())
        plain = {name: _plain(value) for name, value in keywords.items()}
        if outs:
            plain["out"] = tuple(map(_plain, outs))
        result = getattr(ufunc, method)(*map(_plain, inputs), **plain)
        if result is None or ufunc in EXACT:
            return outs[0] if outs else self._viewed(result)
        if outs:
            for array in plain["out"]:
                array[...] = self.moved(array)
            return outs[0] if len(outs) == 1 else outs
        if isinstance(result, tuple):
            return tuple(self._viewed(self.moved(each)) for each in result)
        return self._viewed(self.moved(result))

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        result = super().__array_function__(func, types, args, kwargs)
        if not isinstance(result, np.ndarray | np.inexact):
            return result
        rounds = func in PRODUCTS or func.__module__.startswith(ROUND)
        return self._viewed(self.moved(_plain(result)) if rounds else result)

    @classmethod
    def moved(cls, values: Any) -> Any:
        """The array or number, moved."""
        kind = np.asarray(values).dtype.kind
        if kind not in "fc":
            return values
        by = cls._signed(values) + 1j * cls._signed(values) if kind == "c" else cls._signed(values)
        return values + np.where(np.isfinite(values), values, 0) * by

    @classmethod
    def _signed(cls, values: Any) -> Any:
        """A fraction for each number, up or down."""
        signed = cls.generator.uniform(-1, 1, np.shape(values))
        return cls.fraction * (signed + np.copysign(0.5, signed))

    @classmethod
    def _viewed(cls, result: Any) -> Any:
        if isinstance(result, np.inexact):  # a number, which NumPy would go on with as its own
            result = np.asarray(result)
        return result.view(cls) if isinstance(result, np.ndarray) else result


def _plain(value: Any) -> Any:
    return value.view(np.ndarray) if isinstance(value, _Moved) else value
