"""Layers that keep arrays from step to step."""

from __future__ import annotations

from nn_manual.arrays import Shape
from nn_manual.layers.base import BASE_OF_METHOD, Layer


class LayerWithBuffers(Layer):
    """A layer that keeps arrays from step to step beside its parameters, such as a running mean.

    `self.buffer` holds an array for each of `buffer_shapes()`, and an int64 count for each of `counter_names()`; all
    begin as 0, unless `reset_buffers` fills them. `forward` and `backward` must not write to them. They move in
    `update_buffers(saved)`, once in each training step, after backward and before the optimizer. Evaluation and
    prediction run `infer`.

    Its `reference(input, **parameters, **buffers)` returns the output, and a dict of the buffers after the step.
    """

    def buffer_shapes(self) -> dict[str, Shape]:
        """Name and shape of each buffer of the model's dtype, in torch's order."""
        return {}

    def counter_names(self) -> tuple[str, ...]:
        """The names of the buffers that are counts, each an int64 scalar."""
        return ()


BASE_OF_METHOD |= dict.fromkeys(("buffer_shapes", "counter_names"), LayerWithBuffers)
