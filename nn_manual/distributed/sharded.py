"""An optimizer whose vectors are divided among the processes: ZeRO's first stage (Rajbhandari et al., 2020)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

import numpy as np

from nn_manual.arrays import Array
from nn_manual.distributed.group import Group
from nn_manual.optim import Optimizer
from nn_manual.optim.base import Part


class ShardedOptimizer:
    """Takes an optimizer's vectors and keeps this process's pieces of them. A step moves these, and the parameters
    there; each process then sends its pieces of the parameters to the others. The formulas are elementwise, so the bits
    are those of the whole.

    `pieces` has of each bucket the piece of each process. The optimizer's own `vectors` are empty from here on.
    """

    def __init__(self, optimizer: Optimizer, group: Group, pieces: Sequence[Sequence[slice]]) -> None:
        self.optimizer, self._group, self._pieces = optimizer, group, pieces
        self._own = [of_bucket[group.rank] for of_bucket in pieces]
        self._shapes = {name: vector.shape for name, vector in optimizer.vectors.items()}
        self.vectors: dict[str, Array] = {}
        self.take(optimizer.vectors)
        #: What is moved at once: with the settings of which member, where in the arena, and where in the own vectors.
        self._blocks = [(part, block, own) for part in optimizer.parts for block, own in self._blocks_of(part)]

    def take(self, vectors: Mapping[str, Array]) -> None:
        """Keep the own pieces of whole vectors; the optimizer lets go of them."""
        size = sum(piece.stop - piece.start for piece in self._own)
        for name, vector in vectors.items():
            own = self.vectors.setdefault(name, np.empty(size, vector.dtype))
            for piece, where in self._places():
                own[where] = vector[piece]
        self.optimizer.vectors = {name: np.empty(0, vector.dtype) for name, vector in self.vectors.items()}

    def gathered(self) -> dict[str, Array]:
        """The whole vectors, on every process."""
        whole = {name: np.empty(self._shapes[name], own.dtype) for name, own in self.vectors.items()}
        for name, vector in whole.items():
            for piece, where in self._places():
                vector[piece] = self.vectors[name][where]
            self._spread(vector)
        return whole

    @contextmanager
    def whole(self, *, changed: bool = False) -> Iterator[None]:
        """The context in which the optimizer has its whole vectors: every process must enter it. With `changed`, the
        own pieces are then what they are at its end.
        """
        own = self.optimizer.vectors
        self.optimizer.vectors = self.gathered()
        try:
            yield
            if changed:
                self.take(self.optimizer.vectors)
        finally:
            self.optimizer.vectors = own

    def step(self) -> None:
        """As the optimizer's."""
        model, number = self.optimizer.model, self.optimizer.num_steps + 1
        coefficients = {id(part): part.rounded_coefficients(number) for part in self.optimizer.parts}
        for part, block, own in self._blocks:
            vectors = {name: vector[own] for name, vector in self.vectors.items()}
            part.member.move(model.param_arena[block], model.grad_arena[block], vectors, coefficients[id(part)])
        self.optimizer.num_steps = number
        self._spread(model.param_arena)

    def _spread(self, vector: Array) -> None:
        """Send the own pieces of a vector, and receive the others'."""
        works = [
            self._group.start_broadcast(vector[piece], rank)
            for of_bucket in self._pieces
            for rank, piece in enumerate(of_bucket)
        ]
        for work in works:
            work.wait()

    def _places(self) -> Iterator[tuple[slice, slice]]:
        """Each own piece, and where it lies in the own vectors."""
        start = 0
        for piece in self._own:
            stop = start + piece.stop - piece.start
            yield piece, slice(start, stop)
            start = stop

    def _blocks_of(self, part: Part) -> Iterator[tuple[slice, slice]]:
        """What a member moves of the own pieces, in blocks that fit into the processor's cache."""
        for piece, where in self._places():
            for block in part.blocks:
                start, stop = max(block.start, piece.start), min(block.stop, piece.stop)
                if start < stop:
                    offset = where.start - piece.start
                    yield slice(start, stop), slice(start + offset, stop + offset)
