"""What a model puts out for many examples, and how many it takes at a time."""

from __future__ import annotations

import numpy as np

from nn_manual.arrays import Array, Padded, Shape, size_of
from nn_manual.defaults import defines
from nn_manual.errors import NotFiniteError
from nn_manual.layers import Layer
from nn_manual.model import Sequential
from nn_manual.model.contract import checked_input_shapes

#: Validation runs in slices whose activations take no more memory than this, 32 MiB: as many as those of a training
#: step of 1,000 examples in the 784-2048-2048-10 net. A slice has one example at least.
EVALUATION_BYTES = 1 << 25


def slice_size(model: Sequential, example_shape: Shape) -> int:
    """How many examples of this shape are evaluated at a time."""
    # For two examples: for one alone, batch normalization says that a training step can't take it.
    num_elements = _num_activations(model, (2, *example_shape)) // 2
    return max(1, EVALUATION_BYTES // (model.dtype.itemsize * max(1, num_elements)))


def outputs_of(model: Sequential, input: Array | Padded) -> Array:
    """The model's output for all examples, in evaluation, computed slice by slice. Raises NotFiniteError, which names
    the example, for a value that isn't finite.
    """
    size = slice_size(model, input.shape[1:])
    outputs = np.concatenate([model(input[start : start + size]) for start in range(0, len(input), size)])
    if not (is_finite := np.isfinite(outputs)).all():
        row = int(np.argwhere(~is_finite)[0, 0]) * len(input) // len(outputs)  # it may put out several of each example
        raise NotFiniteError(f"the model's prediction for example {row}, counted from 0, is not finite")
    return outputs


def _num_activations(layer: Layer, input_shape: Shape) -> int:
    """The number of elements in the output of a layer; for a composite, in the outputs of all layers in it, by the
    shapes that they state.
    """
    children = layer.children()
    if not children:
        return size_of(layer.output_shape(input_shape))
    try:
        shapes = checked_input_shapes(layer, input_shape)
        return sum(_num_activations(children[name], shape) for name, shape in shapes.items())
    except ValueError:
        if defines(layer, "input_shapes"):
            raise
        return len(children) * size_of(input_shape)  # it doesn't state what its children get: about what it gets itself
