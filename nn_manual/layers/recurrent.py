"""Recurrent layers: what a step in time puts out goes into the next one."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from nn_manual.arrays import Array, Shape, over_time
from nn_manual.layers.activations import expit
from nn_manual.layers.base import Layer
from nn_manual.layers.fast_forms import rows, sum_rows


class _Memory(NamedTuple):
    """What backward needs of one of the layers: its input, the gates (time, batch, 4, hidden_size), the cell and its
    tanh, and the output, each (time, batch, hidden_size).
    """

    input: Array
    gates: Array
    cell: Array
    tanh_cell: Array
    output: Array


#: Each has parameters of its own, whose names and shapes alone take minutes to write down for a million layers.
MAX_LAYERS = 1000


@dataclass(eq=False)
class LSTM(Layer):
    """Long short-term memory from a state of zeros, input (time, batch, input_size) to output (time, batch,
    hidden_size); with `batch_first`, batch and time change places.

    Each of the `num_layers` reads the output of the one before it. Parameters of layer k, with torch's names, 4 rows of
    hidden_size for the gates i, f, g and o: weight_ih_lk (4 hidden_size, size of its input), weight_hh_lk
    (4 hidden_size, hidden_size), and where `bias`, bias_ih_lk and bias_hh_lk. For each time t, with h and c of the time
    before, 0 at first:

        i, f, g, o  = weight_ih @ input[t] + bias_ih + weight_hh @ h + bias_hh
        i, f, g, o  = expit(i), expit(f), tanh(g), expit(o)
        c           = f * c + i * g
        output[t]   = h = o * tanh(c)

    and backward in time, with grad_h and grad_c of the time after, 0 at last, and z the gates before expit and tanh:

        grad_h  = grad_output[t] + grad_h
        grad_c  = grad_h * o * (1 - tanh(c)**2) + grad_c
        grad_z  = grad_c * g * i * (1 - i),  grad_c * c[t - 1] * f * (1 - f),  grad_c * i * (1 - g**2),
                  grad_h * tanh(c) * o * (1 - o)
        grad_h  = grad_z @ weight_hh
        grad_c  = grad_c * f

        grad_weight_ih = rows(grad_z).T @ rows(input)
        grad_weight_hh = rows(grad_z).T @ rows(output of the time before)
        grad_bias      = rows(grad_z).sum(axis=0), for both
        grad_input     = grad_z @ weight_ih

    Derivation: c goes two ways, into h and into the next c, and h into output[t] and into the next gates, so the
    gradients of the two ways add. The other lines are the chain rule along one way each, with
    expit' = expit (1 - expit) and tanh' = 1 - tanh**2. The weights are used at each time: the sum over all of them is
    one product.

    Source: Hochreiter and Schmidhuber, 1997, with the forget gate of Gers et al., 2000. Raises ValueError for sizes
    below 1, an input of another shape, and a gradient that is not shaped as the output.
    """

    input_size: int
    hidden_size: int
    num_layers: int = 1
    bias: bool = True
    batch_first: bool = False

    def __post_init__(self) -> None:
        for name in ("input_size", "hidden_size", "num_layers"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, not {getattr(self, name)}")
        if self.num_layers > MAX_LAYERS:
            raise ValueError(f"num_layers must be at most {MAX_LAYERS}, not {self.num_layers}")

    @classmethod
    def examples(cls) -> list[tuple[Layer, Shape]]:
        """One layer and two, without bias, the batch first, a single time, and all square."""
        return [
            (cls(3, 2), (4, 2, 3)),
            (cls(2, 3, num_layers=2, batch_first=True), (2, 3, 2)),
            (cls(3, 3, bias=False), (3, 3, 3)),
            (cls(2, 2), (1, 3, 2)),
        ]

    def parameter_shapes(self) -> dict[str, Shape]:
        """weight_ih, weight_hh, bias_ih, bias_hh of each layer."""
        shapes: dict[str, Shape] = {}
        for k in range(self.num_layers):
            size = self.hidden_size if k else self.input_size
            shapes[f"weight_ih_l{k}"] = (4 * self.hidden_size, size)
            shapes[f"weight_hh_l{k}"] = (4 * self.hidden_size, self.hidden_size)
            if self.bias:
                shapes |= dict.fromkeys((f"bias_ih_l{k}", f"bias_hh_l{k}"), (4 * self.hidden_size,))
        return shapes

    def reset_parameters(self, generator: np.random.Generator) -> None:
        """All uniform in ±1/sqrt(hidden_size), as torch.nn.LSTM."""
        bound = 1 / math.sqrt(self.hidden_size)
        for parameter in vars(self.param).values():
            parameter[...] = generator.uniform(-bound, bound, parameter.shape)

    def initialize(self, fill: Callable[[str], None]) -> None:
        """The weights from the initializer, the biases 0."""
        for name, parameter in vars(self.param).items():
            if name.startswith("weight"):
                fill(name)
            else:
                parameter[...] = 0

    def output_shape(self, input_shape: Shape) -> Shape:
        """The last size becomes hidden_size."""
        if len(input_shape) != 3 or input_shape[2] != self.input_size or input_shape[self.batch_first] < 1:
            order = "batch, time" if self.batch_first else "time, batch"
            raise ValueError(f"LSTM takes ({order}, input_size={self.input_size}), the input has shape {input_shape}")
        return (*input_shape[:2], self.hidden_size)

    def longest_sum(self, input_shape: Shape) -> int:
        """Over time and batch, for the weights; over the gates, for what they were computed of; or over the input."""
        return max(input_shape[0] * input_shape[1], 4 * self.hidden_size, self.input_size)

    def num_products(self, input_shape: Shape) -> int:
        """Each weight once for each time and example."""
        return input_shape[0] * input_shape[1] * self.num_parameters

    def forward(self, input: Array) -> tuple[Array, list[_Memory]]:
        """Saves for each of the layers what its backward needs."""
        self.output_shape(input.shape)
        output, saved = input.swapaxes(0, 1) if self.batch_first else input, []
        for k in range(self.num_layers):
            saved.append(self._layer(k, output))
            output = saved[-1].output
        return output.swapaxes(0, 1) if self.batch_first else output, saved

    def _layer(self, k: int, input: Array) -> _Memory:
        weight_ih, weight_hh, *biases = self._of_layer(k, vars(self.param))
        time, batch, _ = input.shape
        gates = rows(input) @ weight_ih.T
        for bias in biases:
            gates += bias
        gates = gates.reshape(time, batch, 4 * self.hidden_size)
        cells, tanh_cells, output = np.empty_like(input, shape=(3, time, batch, self.hidden_size))
        hidden = cell = np.zeros_like(input, shape=(batch, self.hidden_size))
        by_gate = gates.reshape(time, batch, 4, self.hidden_size)
        recurrent = weight_hh.T.copy()  # a product with this takes two thirds of the time
        for t in over_time(time):
            gates[t] += hidden @ recurrent
            input_gate, forget_gate, new, output_gate = np.moveaxis(by_gate[t], 1, 0)
            by_gate[t, :, :2] = expit(by_gate[t, :, :2])
            np.tanh(new, out=new)
            output_gate[...] = expit(output_gate)
            cell = np.add(forget_gate * cell, input_gate * new, out=cells[t])
            np.tanh(cell, out=tanh_cells[t])
            hidden = np.multiply(output_gate, tanh_cells[t], out=output[t])
        return _Memory(input, by_gate, cells, tanh_cells, output)

    def backward(self, saved: list[_Memory], grad_output: Array) -> Array:
        """Write the gradients of the parameters, return grad_input."""
        self.check_gradient(grad_output, _swapped(saved[-1].output, self.batch_first).shape)
        grad = _swapped(grad_output, self.batch_first)
        for k in reversed(range(self.num_layers)):
            grad = self._layer_backward(k, saved[k], grad)
        return _swapped(grad, self.batch_first)

    def _layer_backward(self, k: int, saved: _Memory, grad_output: Array) -> Array:
        weight_ih, weight_hh, *_ = self._of_layer(k, vars(self.param))
        slopes, slope_of_cell = self._slopes(saved)
        forget_gate = saved.gates[:, :, 1]
        grad_gates = np.empty_like(slopes)
        grad_hidden = grad_cell = np.zeros_like(saved.output[0])
        for t in over_time(len(slopes), backward=True):
            grad_hidden = grad_output[t] + grad_hidden
            grad_cell = grad_hidden * slope_of_cell[t] + grad_cell
            np.multiply(slopes[t, :, :3], grad_cell[:, np.newaxis], out=grad_gates[t, :, :3])
            np.multiply(slopes[t, :, 3], grad_hidden, out=grad_gates[t, :, 3])
            grad_hidden = grad_gates[t].reshape(len(grad_hidden), 4 * self.hidden_size) @ weight_hh
            grad_cell = grad_cell * forget_gate[t]
        grad_gates = grad_gates.reshape(*grad_output.shape[:2], 4 * self.hidden_size)
        grad_weight_ih, grad_weight_hh, *grad_biases = self._of_layer(k, vars(self.grad))
        np.matmul(rows(grad_gates).T, rows(saved.input), out=grad_weight_ih)
        np.matmul(rows(grad_gates[1:]).T, rows(saved.output[:-1]), out=grad_weight_hh)
        for grad_bias in grad_biases:
            sum_rows(grad_gates, out=grad_bias)
        grad_input: Array = rows(grad_gates) @ weight_ih
        return grad_input.reshape(saved.input.shape)

    def _slopes(self, saved: _Memory) -> tuple[Array, Array]:
        """What the gradient of c, and for the last gate that of h, is multiplied by to give grad_z, as gates; and what
        that of h is multiplied by to give its part of the gradient of c. They don't wait for a gradient, so they are
        computed for all times at once.
        """
        input_gate, forget_gate, new, output_gate = np.moveaxis(saved.gates, 2, 0)
        before = np.concatenate([np.zeros_like(saved.cell[:1]), saved.cell[:-1]])
        slopes = np.empty_like(saved.gates)
        slopes[:, :, 0] = new * input_gate * (1 - input_gate)
        slopes[:, :, 1] = before * forget_gate * (1 - forget_gate)
        slopes[:, :, 2] = input_gate * (1 - new * new)
        slopes[:, :, 3] = saved.tanh_cell * output_gate * (1 - output_gate)
        return slopes, output_gate * (1 - saved.tanh_cell * saved.tanh_cell)

    def _of_layer(self, k: int, views: dict[str, Any]) -> Iterator[Array]:
        """The parameters of one of the layers, or their gradients, in their order."""
        return (view for name, view in views.items() if name.endswith(f"_l{k}"))


def _swapped(array: Array, batch_first: bool) -> Array:
    """Time first."""
    return array.swapaxes(0, 1) if batch_first else array
