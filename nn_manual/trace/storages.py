"""Which arrays lie in which piece of memory."""

from __future__ import annotations

import bisect

import numpy as np
import numpy.typing as npt

from nn_manual.arrays import Array
from nn_manual.trace.trace import Storage, View

#: The array itself, as one that isn't traced: NumPy's own conversion, whatever a trace puts in its place.
untraced = np.asarray


class Memory:
    """The storages that a step was seen to use. An array lies where its address says: in the storage of the array whose
    view it is, whoever made the view.
    """

    def __init__(self) -> None:
        self.storages: list[Storage] = []
        #: The arrays that own the memory, kept alive, so that no other array gets their address.
        self._roots: list[Array] = []
        #: Where each begins.
        self._addresses: list[int] = []
        #: The storage of each, by its identity.
        self._storage_of: dict[int, int] = {}
        #: Address and storage of each, in order.
        self._starts: list[tuple[int, int]] = []
        #: Of memory that the step didn't get and no operation made: what it held when it was met, and which of its
        #: bytes no operation has written yet.
        self._met: dict[int, tuple[Array, npt.NDArray[np.bool_]]] = {}

    def add(self, root: Array, name: str = "") -> int:
        """A storage for an array that owns its memory."""
        storage = len(self.storages)
        self._roots.append(root)
        self._storage_of[id(root)] = storage
        self._addresses.append(_address(root))
        if root.nbytes:
            bisect.insort(self._starts, (self._addresses[storage], storage))
        self.storages.append(Storage(name, root.nbytes))
        return storage

    def find(self, array: Array) -> int | None:
        """The storage that an array lies in, None where none is known."""
        root = _root(array)
        if id(root) in self._storage_of:
            return self._storage_of[id(root)]
        address = _address(root)
        place = bisect.bisect_right(self._starts, (address, len(self.storages))) - 1
        if place < 0 or not root.nbytes:
            return None
        start, storage = self._starts[place]
        return storage if address < start + self.storages[storage].num_bytes else None

    def view(self, array: Array) -> View:
        """Where an array lies; memory that nobody knows becomes a storage."""
        storage = self.find(array)
        if storage is None:
            storage = self.add(_root(array))
        offset = _address(array) - self._addresses[storage]
        return View(storage, offset, array.shape, array.strides, array.dtype)

    def forms(self) -> list[View]:
        """Each storage as the array that owns it."""
        return [View(storage, 0, root.shape, root.strides, root.dtype) for storage, root in enumerate(self._roots)]

    def meet(self, array: Array) -> None:
        """An operation is about to write to this array, of which nobody may have heard."""
        if self.find(array) is None:
            root = _root(array)
            values = untraced(root).ravel(order="K").view(np.uint8).copy()
            self._met[self.add(root)] = values, np.ones(root.nbytes, np.bool_)

    def read(self, view: View) -> None:
        """An operation reads there: what no operation wrote was there at first."""
        if view.storage in self._met and self._unwritten(view).any():
            initial, _ = self._met[view.storage]
            self.storages[view.storage] = self.storages[view.storage]._replace(initial=initial)

    def write(self, view: View) -> None:
        """An operation writes to all of it."""
        if view.storage in self._met:
            self._unwritten(view)[...] = False

    def is_view_of(self, array: Array, other: Array) -> bool:
        """Whether an array lies in the other's memory."""
        storage = self.find(other)
        return _root(array) is _root(other) or (storage is not None and storage == self.find(array))

    def _unwritten(self, view: View) -> npt.NDArray[np.bool_]:
        """Of each byte, whether no operation has written it."""
        _, unwritten = self._met[view.storage]
        shape, strides = (*view.shape, view.dtype.itemsize), (*view.strides, 1)
        return np.ndarray(shape, np.bool_, unwritten.data, view.offset, strides)


def _root(array: Array) -> Array:
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array


def _address(array: Array) -> int:
    address: int = array.__array_interface__["data"][0]
    return address
