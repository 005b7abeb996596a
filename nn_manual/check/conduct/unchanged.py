"""Arrays that must stay as they are while somebody else's code runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

import numpy as np
import torch

from nn_manual.arrays import Array
from nn_manual.check.compare.comparison import CannotCompare

#: What may hold values: a function has tensors where a layer has arrays.
ArrayOrTensor: TypeAlias = Array | torch.Tensor


class Unchanged:
    """Arrays and tensors that must stay as they are while a layer or a function works."""

    def __init__(self, label: str, arrays: Mapping[str, ArrayOrTensor]) -> None:
        self.label = label
        self._kept: list[tuple[str, ArrayOrTensor, ArrayOrTensor]] = []
        self.add(arrays)

    def add(self, arrays: Mapping[str, ArrayOrTensor]) -> None:
        """Remember the values of arrays, each under its name; of a sparse tensor, those that it has."""
        dense = {what: _values(array) for what, array in arrays.items()}
        self._kept += [(what, array, _copy(array)) for what, array in dense.items()]

    def changed(self) -> str:
        """The name of the first array that has changed, or nothing."""
        return next((what for what, array, before in self._kept if not same_values(array, before)), "")

    def restore(self) -> list[str]:
        """Write the values back that have changed; returns the names of the arrays."""
        changed = [each for each in self._kept if not same_values(*each[1:])]
        for _, array, before in changed:
            if isinstance(array, torch.Tensor):
                own: Any = array.data  # by which torch doesn't count it as a change
                strides = own.stride()
            else:
                own = np.asarray(array).view()
                own.flags.writeable = True  # a view may be read-only where its memory isn't
                strides = own.strides
            once = tuple(slice(0, 1) if stride == 0 else slice(None) for stride in strides)
            own[once] = before[once]  # an expanded axis has one place in memory
        return [what for what, _, _ in changed]

    def check(self, deed: str) -> None:
        """Raise CannotCompare for the first array that has changed."""
        if changed := self.changed():
            raise CannotCompare(f"{self.label}: {deed} {changed}")


def _values(array: ArrayOrTensor) -> ArrayOrTensor:
    """The array or tensor; of a sparse tensor, the tensor of its values."""
    if not isinstance(array, torch.Tensor) or array.layout is torch.strided:
        return array
    return array.detach()._values() if array.layout is torch.sparse_coo else array.detach().values()


def _copy(array: ArrayOrTensor) -> ArrayOrTensor:
    """A copy of the values alone: many subclasses of a tensor have no deep copy."""
    return array.detach().clone() if isinstance(array, torch.Tensor) else array.copy()


def same_values(array: ArrayOrTensor, before: ArrayOrTensor) -> bool:
    """Whether both hold the same values, NaN in the same places."""
    if isinstance(array, torch.Tensor):
        other = torch.as_tensor(before)
        # Nearly always they are equal: that takes a fifth of the time, and says nothing where there is a NaN.
        return torch.equal(array, other) or torch.allclose(array, other, rtol=0, atol=0, equal_nan=True)
    if array.dtype.kind in "biufc":
        return np.array_equal(array, before, equal_nan=True)
    # Text, objects and records, which have no NaN: of an object, this is its address.
    return array.shape == before.shape and array.tobytes() == np.asarray(before).tobytes()


def arrays_in(saved: Any, place: str = "") -> Iterator[tuple[str, ArrayOrTensor]]:
    """Every array and tensor in what a forward saved, each with its place there."""
    if isinstance(saved, np.ndarray):
        yield place, saved
    elif isinstance(saved, torch.Tensor):
        yield place, saved.detach()
    elif isinstance(saved, (tuple, list)):
        for index, item in enumerate(saved):
            yield from arrays_in(item, f"{place}[{index}]")
    elif isinstance(saved, dict):
        for key, item in saved.items():
            yield from arrays_in(item, f"{place}[{key!r}]")
