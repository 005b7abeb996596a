"""Where the parameters lie that move with the same settings."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from nn_manual.arrays import Shape, blocks


class Run(NamedTuple):
    """A piece of the parameters: where it lies in the arenas, and where in the optimizer's vectors. `shape` is that of
    a parameter that must stay in one piece.
    """

    where: slice
    of_vectors: slice
    shape: Shape | None = None

    def pieces(self) -> Iterable[slice]:
        """Pieces that fit into the processor's cache, or itself if it must stay in one."""
        size = self.where.stop - self.where.start
        return blocks(size) if self.shape is None else [slice(0, size)]

    def piece(self, block: slice) -> Run:
        """The run of one of these pieces."""
        return self._replace(where=_within(self.where, block), of_vectors=_within(self.of_vectors, block))


def _within(run: slice, block: slice) -> slice:
    return slice(run.start + block.start, run.start + block.stop)
