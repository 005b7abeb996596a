"""The buffers of a model, moved by the slices of a batch in their order, whoever computed them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from nn_manual.arrays import Array
from nn_manual.model import Sequential
from nn_manual.step.slices.process_group import ProcessGroup
from nn_manual.step.train_step import OneSlice


def move_buffers(model: Sequential, own: Sequence[OneSlice], group: ProcessGroup) -> list[Array]:
    """Move the buffers by each slice of the batch; `own` are this process's slices. Each process begins with the
    buffers at which the one before it has ended, and all get those of the last one. Returns the buffers before each own
    slice.
    """
    if not vars(model.buffer):
        return [_NONE] * len(own)
    before = []
    for rank in range(group.size):
        if rank == group.rank:
            for one_slice in own:
                before.append(packed_buffers(model))
                one_slice.move_buffers()
        if group.size > 1:
            packed = packed_buffers(model)
            group.broadcast(packed, rank)
            restore_buffers(model, packed)
    return before


def packed_buffers(model: Sequential) -> Array:
    """A copy of all buffers, end to end, as bytes."""
    views = [np.frombuffer(buffer.tobytes(), np.uint8) for buffer in vars(model.buffer).values()]
    return np.concatenate(views) if views else _NONE


def restore_buffers(model: Sequential, packed: Array) -> None:
    """Set the buffers to what `packed_buffers` returned."""
    start = 0
    for buffer in vars(model.buffer).values():
        stop = start + buffer.nbytes
        buffer[...] = packed[start:stop].view(buffer.dtype).reshape(buffer.shape)
        start = stop


_NONE = np.zeros(0, np.uint8)
