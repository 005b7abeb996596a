"""Layers over sequences of different lengths."""

from __future__ import annotations

import numpy as np

from nn_manual.arrays import Array, Shape
from nn_manual.layers.base import Layer
from nn_manual.messages.text import counted

#: The name of the lengths in `noise`, and of the argument of a reference.
LENGTHS = "lengths"


class LayerWithLengths(Layer):
    """A layer over sequences of different lengths, (batch, time, ...).

    `self.noise.lengths`, (batch,), holds the length of each sequence in forward and `infer`: it stands where other
    layers have a step's random numbers, since it is new with each batch, too. `backward` has what forward has saved.
    The model takes the lengths from an input that is Padded. The layer's `reference`, and `infer_reference`, get them
    by the name `lengths`.
    """

    @staticmethod
    def misfit(shape: Shape, data_shape: Shape) -> str:
        """Why the lengths of the data, whose input has the shape `data_shape`, aren't those of an input of this shape:
        "gets 5 times, and ...". Empty where they are: both have the same sequences and the same times.
        """
        if shape[0] != data_shape[0]:
            words = f"gets {counted(shape[0], 'sequence')} for each {data_shape[0]:,} of the data"
            return f"{words}, to which the lengths belong"
        if len(shape) > 1 and shape[1] != data_shape[1]:
            words = f"gets {counted(shape[1], 'time')}, and the data's sequences have {data_shape[1]:,}"
            return f"{words}: the lengths belong to the data's times, which the layers before it must keep"
        return ""

    def mask(self, input: Array) -> Array:
        """True up to each sequence's length, (batch, time, 1, ...), with as many dimensions as the input. Raises
        ValueError where the input has another number of sequences, or fewer times than one of them: another layer has
        reshaped it.
        """
        lengths, name, (num_sequences, num_times) = self.noise.lengths, type(self).__name__, input.shape[:2]
        if len(lengths) != num_sequences:
            raise ValueError(f"{name} gets {counted(num_sequences, 'sequence')}, and the batch has {len(lengths)}")
        if lengths.max(initial=0) > num_times:
            raise ValueError(f"{name} gets {counted(num_times, 'time')}, and a sequence has {lengths.max()}")
        mask: Array = np.arange(num_times) < lengths[:, np.newaxis]
        return mask.reshape(*mask.shape, *[1] * (input.ndim - 2))


def kept(array: Array, mask: Array) -> Array:
    """The array where the mask is true, 0 elsewhere."""
    return np.where(mask, array, np.zeros_like(array))
