"""Memory: finds the storage that an array lies in."""

from __future__ import annotations

import bisect
import functools
import weakref

import numpy as np
import numpy.typing as npt

from nn_manual.arrays import Array
from nn_manual.trace.trace import Storage, View

#: The same array as a plain one. This is NumPy's own np.asarray, also while a trace replaces it in NumPy's namespace.
untraced = np.asarray


class Memory:
    """The storages that a step has used so far. The address of an array decides in which storage it lies, so it doesn't
    matter how a view was made.
    """

    def __init__(self) -> None:
        self.storages: list[Storage] = []
        #: Each storage in the form of the array that owns it.
        self._forms: list[View] = []
        #: The address where each storage begins, and the array that owns it. Where that is gone, another array may get
        #: the address.
        self._addresses: list[int] = []
        self._owners: list[weakref.ref[Array]] = []
        #: The storages by the identity of the array that owns them.
        self._storage_of: dict[int, int] = {}
        #: (address, storage), sorted.
        self._starts: list[tuple[int, int]] = []
        #: Storages that the step wasn't given and no operation made. For each of them: the bytes that it held when an
        #: operation first wrote to it, and a mask of the bytes that no operation has written yet.
        self._met: dict[int, tuple[Array, npt.NDArray[np.bool_]]] = {}

    def add(self, root: Array, name: str = "") -> int:
        """Add a storage for an array that owns its memory; returns its number."""
        storage, address = len(self.storages), _address(root)
        self._forms.append(View(storage, 0, root.shape, root.strides, root.dtype))
        self._storage_of[id(root)] = storage
        self._addresses.append(address)
        if root.nbytes:
            bisect.insort(self._starts, (address, storage))
        self.storages.append(Storage(name, root.nbytes))
        self._owners.append(weakref.ref(root, functools.partial(self._forget, id(root), (address, storage))))
        return storage

    def _forget(self, identity: int, start: tuple[int, int], _: object) -> None:
        """The array that owned this storage is gone."""
        del self._storage_of[identity]
        place = bisect.bisect_left(self._starts, start)
        if self._starts[place : place + 1] == [start]:  # an empty array has no address of its own
            del self._starts[place]

    def find(self, array: Array) -> int | None:
        """The storage that an array lies in, None if it isn't known."""
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
        """Where an array lies. Unknown memory becomes a storage."""
        storage = self.find(array)
        if storage is None:
            storage = self.add(_root(array))
        offset = _address(array) - self._addresses[storage]
        return View(storage, offset, array.shape, array.strides, array.dtype)

    def forms(self) -> list[View]:
        """A view for each storage, in the form of the array that owns it."""
        return self._forms

    def meet(self, array: Array) -> None:
        """Prepare for an operation that will write to this array, which may be unknown."""
        if self.find(array) is None:
            root = _root(array)
            values = untraced(root).ravel(order="K").view(np.uint8).copy()
            self._met[self.add(root)] = values, np.ones(root.nbytes, np.bool_)

    def read(self, view: View) -> None:
        """Note that an operation reads this view. If no operation has written all of it, the storage keeps its first
        bytes.
        """
        if view.storage in self._met and self._unwritten(view).any():
            initial, _ = self._met[view.storage]
            self.storages[view.storage] = self.storages[view.storage]._replace(initial=initial)

    def write(self, view: View) -> None:
        """Note that an operation writes all of this view."""
        if view.storage in self._met:
            self._unwritten(view)[...] = False

    def is_view_of(self, array: Array, other: Array) -> bool:
        """Whether an array lies in the memory of the other one."""
        storage = self.find(other)
        return _root(array) is _root(other) or (storage is not None and storage == self.find(array))

    def _unwritten(self, view: View) -> npt.NDArray[np.bool_]:
        """A mask of the view's bytes that no operation has written."""
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
