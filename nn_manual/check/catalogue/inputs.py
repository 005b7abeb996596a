"""The inputs that a layer is checked on: every kind, other sizes, and where the layer itself branches."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator

import numpy as np

from nn_manual.arrays import Array, Padded, Shape
from nn_manual.check.catalogue.input_kinds import KINDS, draw, spread
from nn_manual.check.catalogue.jumps import values_at_jumps
from nn_manual.check.catalogue.sizes import other_shapes
from nn_manual.layers import Layer
from nn_manual.model import Sequential
from nn_manual.model.layers_fit import first_misfit

#: The kind of input that a layer's own output and derivative choose.
AT_JUMPS = "input at jumps"


def layer_inputs(
    layer: Layer, input_shape: Shape, dtype: str, generator: np.random.Generator
) -> Iterator[tuple[str, Array]]:
    """Inputs of a bound layer, each with its description, all inside the layer's domain.

    In the shape given, each of KINDS. With a batch of 1, random ones: a stray squeeze shows. With a larger batch,
    values that are spread over the domain, and those where the layer's output or derivative jumps.
    """
    for kind in KINDS:
        yield f"{kind} input", draw(kind, input_shape, dtype, generator, layer.domain)
    if takes_batch(layer, input_shape, 1):
        yield "random input, a batch of 1", draw("random", (1, *input_shape[1:]), dtype, generator, layer.domain)
    shape = enlarged(layer, input_shape, len(spread(layer.domain)))
    yield "spread input", draw("spread", shape, dtype, generator, layer.domain)
    values = values_at_jumps(layer, input_shape, dtype)
    if values.size:
        shape = enlarged(layer, input_shape, len(values))
        yield AT_JUMPS, np.resize(generator.permutation(values), shape)


def inputs_of_other_shapes(layer: Layer, input_shape: Shape, dtype: str, seed: int) -> Iterator[tuple[str, Array]]:
    """Random inputs of a bound layer in each of `other_shapes`, each with its description."""
    generator = np.random.default_rng([seed, 1])  # its own: the other draws stay as they are
    for shape in other_shapes(layer, input_shape, dtype):
        written = "x".join(map(str, shape))
        yield f"random input, shape {written}", draw("random", shape, dtype, generator, layer.domain)


def takes_batch(layer: Layer, input_shape: Shape, batch_size: int) -> bool:
    """Whether the layer takes another batch than that of `input_shape`: its first dimension, unless it has no other."""
    if len(input_shape) < 2 or input_shape[0] == batch_size:
        return False
    shape = (batch_size, *input_shape[1:])
    try:
        layer.output_shape(shape)
    except ValueError:
        return False
    if not layer.children():
        return True
    # Only a composite's code says what its children get. A misfit of another batch size is the composite's own mistake.
    input = draw("random", shape, "float32", np.random.default_rng(0), layer.domain)
    with np.errstate(all="ignore"):
        misfit = first_misfit(Sequential(copy.deepcopy(layer)), input)
    return misfit is None or misfit.shape[:1] != (batch_size,)


def enlarged(layer: Layer, input_shape: Shape, num_values: int) -> Shape:
    """`input_shape` with a larger batch, large enough for so many values, if the layer takes one."""
    batch_size = max(input_shape[0] + 1, math.ceil(num_values / math.prod(input_shape[1:])))
    return (batch_size, *input_shape[1:]) if takes_batch(layer, input_shape, batch_size) else input_shape


def with_lengths(model: Sequential, input: Array, generator: np.random.Generator) -> Array | Padded:
    """The input, with a length drawn for each of its sequences if a layer of the model heeds lengths."""
    if not model.lengths_heeded_by:
        return input
    return Padded(input, generator.integers(1, input.shape[1], len(input), endpoint=True))


def move_constants(model: Sequential, generator: np.random.Generator) -> None:
    """Make random numbers of each parameter that is one number everywhere: a weight of ones, or a bias of zeros, would
    hide a formula that lacks it.

    The number is multiplied by 0.5 to 1.5, so that its sign stays, and with it whatever domain the parameter may have.
    A 0 becomes -0.5 to 0.5.
    """
    for parameter in vars(model.param).values():
        if parameter.size and np.ptp(parameter) == 0:
            offset = generator.uniform(-0.5, 0.5, parameter.shape)
            parameter += np.where(parameter == 0, offset, parameter * offset)
