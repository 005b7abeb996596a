"""An optimizer whose vectors are divided among the processes: ZeRO's first stage (Rajbhandari et al., 2020)."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

import numpy as np

from nn_manual.arrays import Array
from nn_manual.optim import Optimizer
from nn_manual.optim.parts import Run
from nn_manual.step.slices.process_group import ProcessGroup


class ShardedOptimizer:
    """Takes an optimizer's vectors and leaves it only this process's pieces of them. So its step moves these pieces and
    those of the parameters; `spread` then sends the latter to the other processes. The formulas are elementwise, so the
    bits are the same as without pieces.

    `pieces` has, for each bucket, the piece of each process.
    """

    def __init__(self, optimizer: Optimizer, group: ProcessGroup, pieces: Sequence[Sequence[slice]]) -> None:
        self.optimizer, self._group, self._pieces = optimizer, group, pieces
        own = [of_bucket[group.rank] for of_bucket in pieces]
        stops = list(itertools.accumulate(piece.stop - piece.start for piece in own))
        starts = [0, *stops[:-1]]
        #: The own pieces, and where they lie in the own vectors.
        self._places = [Run(piece, slice(*ends)) for piece, *ends in zip(own, starts, stops, strict=True)]
        self._size = stops[-1]
        self._whole_size = optimizer.model.param_arena.size
        self._whole_runs = [part.runs for part in optimizer.parts]
        self._own_runs = [list(self._runs_of(runs)) for runs in self._whole_runs]
        self._take(optimizer.vectors)

    def _take(self, vectors: Mapping[str, Array]) -> None:
        """Give the optimizer its own pieces of whole vectors, and nothing else."""
        own = {name: np.empty(self._size, vector.dtype) for name, vector in vectors.items()}
        for name, vector in vectors.items():
            for piece, where, _ in self._places:
                own[name][where] = vector[piece]
        self._give(own, self._own_runs)

    def _give(self, vectors: dict[str, Array], runs: Sequence[list[Run]]) -> None:
        self.optimizer.vectors = vectors
        for part, its_runs in zip(self.optimizer.parts, runs, strict=True):
            part.take(its_runs)

    def _gathered(self) -> dict[str, Array]:
        """The whole vectors, on every process."""
        whole = {name: np.empty(self._whole_size, own.dtype) for name, own in self.optimizer.vectors.items()}
        for name, vector in whole.items():
            for piece, where, _ in self._places:
                vector[piece] = self.optimizer.vectors[name][where]
            self._spread(vector)
        return whole

    @contextmanager
    def whole(self, *, changed: bool = False) -> Iterator[None]:
        """The context in which the optimizer has its whole vectors: every process must enter it. With `changed`, the
        own pieces are then taken from the vectors as they are at its end.
        """
        own = self.optimizer.vectors
        self._give(self._gathered(), self._whole_runs)
        try:
            yield
        finally:
            if changed:
                self._take(self.optimizer.vectors)
            else:
                self._give(own, self._own_runs)

    def spread(self) -> None:
        """Send the own pieces of the parameters, which have moved, and receive those of the other processes."""
        self._spread(self.optimizer.model.param_arena)

    def _spread(self, vector: Array) -> None:
        works = [
            self._group.start_broadcast(vector[piece], rank)
            for of_bucket in self._pieces
            for rank, piece in enumerate(of_bucket)
        ]
        for work in works:
            work.wait()

    def _runs_of(self, runs: Sequence[Run]) -> Iterator[Run]:
        """The parts of the own pieces that a member moves."""
        for piece, where, _ in self._places:
            for run in runs:
                start, stop = max(run.where.start, piece.start), min(run.where.stop, piece.stop)
                if start < stop:
                    offset = where.start - piece.start
                    yield Run(slice(start, stop), slice(start + offset, stop + offset))
