"""Loops that were marked are loops in the trace: what is the same in each iteration is noted once.

Iterations are the same if their operations are, and if each view moves by one number of bytes from each to the next.
What an iteration makes anew is another storage each time. These become one storage: where nobody reads the one of an
iteration once that of the next is used, they all lie in the same place, and else one behind the other.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from nn_manual.trace.comparing import is_alike
from nn_manual.trace.operation import Loop, Step, Storage, Trace, View, views, with_views

#: So many iterations at the beginning may differ from the others: the first reads a state that nobody made.
MAX_PEELED = 2
#: Storages that lie one behind the other begin at multiples of this many bytes, as numbers of any dtype must.
ALIGNMENT = 64


def folded(trace: Trace, loops: Iterable[list[int]]) -> Trace:
    """The trace with loops in the place of the operations of their iterations. `loops` has of each, inner ones first,
    where its iterations begin among the operations, and where the last one ends.
    """
    folding = _Folding(trace)
    for bounds in loops:
        folding.fold(bounds)
    return folding.trace()


class _Folding:
    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._operations = list(trace.unrolled())
        self._storages = list(trace.storages)
        #: Of each storage that became a part of another one, that one and where the part begins.
        self._moved: dict[int, tuple[int, int]] = {}
        #: Of each storage, the first and the last operation that uses it.
        self._spans: dict[int, tuple[float, float]] = {}
        for index, operation in enumerate(self._operations):
            for view in views(operation):
                self._use(view.storage, index)
        for view in trace.results.values():
            self._use(view.storage, math.inf)
        #: What stands in the place of the operations from one index to another.
        self._instead: dict[int, tuple[int, list[Step]]] = {}

    def fold(self, bounds: list[int]) -> None:
        iterations = [self._steps(start, stop) for start, stop in pairwise(bounds)]
        for num_peeled in range(min(MAX_PEELED + 1, len(iterations) - 1)):
            if loop := self._loop(iterations[num_peeled:]):
                peeled = [step for iteration in iterations[:num_peeled] for step in iteration]
                self._instead[bounds[0]] = bounds[-1], [*peeled, loop]
                return

    def trace(self) -> Trace:
        """The whole trace, with those storages alone that it uses."""
        steps = with_views(self._steps(0, len(self._operations)), self._placed)
        results = {name: self._placed(view) for name, view in self._trace.results.items()}
        used = {view.storage for part in (steps, list(results.values())) for view in views(part)}
        used |= {index for index, storage in enumerate(self._storages) if storage.name}
        numbers = {index: number for number, index in enumerate(sorted(used))}
        renumbered = [with_views(part, lambda view: view._replace(storage=numbers[view.storage])) for part in (
            steps, results
        )]  # fmt: skip
        return Trace([self._storages[index] for index in numbers], *renumbered)

    def _use(self, storage: int, index: float) -> None:
        first, last = self._spans.get(storage, (index, index))
        self._spans[storage] = min(first, index), max(last, index)

    def _steps(self, start: int, stop: int) -> list[Step]:
        """The operations between these, or the loops that stand in their place."""
        steps: list[Step] = []
        while start < stop:
            if start in self._instead:
                start, instead = self._instead[start]
                steps += instead
            else:
                steps.append(self._operations[start])
                start += 1
        return steps

    def _placed(self, view: View) -> View:
        while view.storage in self._moved:
            storage, begin = self._moved[view.storage]
            view = view._replace(storage=storage, offset=begin + view.offset)
        return view

    def _loop(self, iterations: list[list[Step]]) -> Loop | None:
        """The loop over these iterations, or None where they aren't the same."""
        if not iterations[0] or not all(is_alike(*pair) for pair in pairwise(iterations)):
            return None
        placed = [[self._placed(view) for view in views(iteration)] for iteration in iterations]
        storages = np.array([[view.storage for view in iteration] for iteration in placed])
        offsets = np.array([[view.offset for view in iteration] for iteration in placed])
        if np.diff(offsets, 2, axis=0).any():
            return None
        chains = _chains(storages)
        if chains is None or not all(map(self._is_one_kind, chains)):
            return None
        strides = {storage: stride for chain in chains for storage, stride in self._merge(chain).items()}
        advances = iter(
            int(after - before) + strides.get(int(storage), 0)
            for before, after, storage in zip(offsets[0], offsets[1], storages[0], strict=True)
        )
        body = with_views(iterations[0], lambda view: view._replace(advance=(next(advances), *view.advance)))
        return Loop(len(iterations), body)

    def _is_one_kind(self, chain: list[int]) -> bool:
        """Whether these storages can become one: the step was given none of them, and all have one size."""
        sizes = {self._storages[storage].num_bytes for storage in chain}
        return len(sizes) == 1 and not any(self._storages[storage].name for storage in chain)

    def _merge(self, chain: list[int]) -> dict[int, int]:
        """Make one storage of the chain's; returns by how much each is moved behind the one before it."""
        kept = [self._storages[storage] for storage in chain]
        spans = [self._spans[storage] for storage in chain]
        is_one_place = all(span[1] < following[0] for span, following in pairwise(spans))
        is_one_place &= all(storage.initial is None for storage in kept)
        size = kept[0].num_bytes
        stride = 0 if is_one_place else -(-size // ALIGNMENT) * ALIGNMENT
        initial = None
        if any(storage.initial is not None for storage in kept):
            initial = np.zeros(stride * len(chain), np.uint8)
            for index, piece in enumerate(kept):
                initial[index * stride :][:size] = 0 if piece.initial is None else piece.initial
        merged = len(self._storages)
        self._storages.append(Storage("", stride * len(chain) or size, initial))
        self._spans[merged] = min(first for first, _ in spans), max(last for _, last in spans)
        for index, storage in enumerate(chain):
            self._moved[storage] = merged, index * stride
        return dict.fromkeys(chain, stride)


def _chains(storages: npt.NDArray[np.int64]) -> list[list[int]] | None:
    """Of the storages of each view, (iterations, views), those that follow each other: a view that is in another one in
    each iteration goes along a chain. Two views may go along one, one of them ahead. None where a storage would be in
    two places.
    """
    chains: list[list[int]] = []
    place: dict[int, tuple[int, int]] = {}
    for column in np.unique(storages, axis=1).T.tolist():
        if len(set(column)) == 1:
            continue
        if len(set(column)) < len(column):
            return None
        known = [(index, *place[storage]) for index, storage in enumerate(column) if storage in place]
        if not known:
            chains.append(list(column))
            place |= {storage: (len(chains) - 1, index) for index, storage in enumerate(column)}
            continue
        index, number, position = known[0]
        chain, shift = chains[number], position - index
        before, after = column[: max(0, -shift)], column[max(0, len(chain) - shift) :]
        chains[number] = chain = [*before, *chain, *after]
        place |= {storage: (number, at) for at, storage in enumerate(chain)}
        if chain[max(0, shift) :][: len(column)] != column or len(set(chain)) < len(chain):
            return None
    if len(place) < sum(map(len, chains)):
        return None
    fixed = {column[0] for column in storages.T.tolist() if len(set(column)) == 1}
    return None if fixed & place.keys() else chains
