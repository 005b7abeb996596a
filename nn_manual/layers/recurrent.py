"""Recurrent layers: the output of each time is an input of the next one."""

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
    """What backward needs of one of the layers: its input, the gates i, f, g, o, (time, batch, 4, hidden_size), and c,
    tanh(c) and the output, each (time, batch, hidden_size).
    """

    input: Array
    gates: Array
    c: Array
    tanh_c: Array
    output: Array


#: Each layer has parameters of its own. For a million layers, their names and shapes alone take minutes to write down.
MAX_LAYERS = 1000


@dataclass(eq=False)
class LSTM(Layer):
    """Long short-term memory from a state of zeros, input (time, batch, input_size) to output (time, batch,
    hidden_size); with `batch_first`, batch and time change places.

    Each of the `num_layers` reads the output of the one before it. Parameters of layer k, with torch's names:
    weight_ih_lk (4 hidden_size, size of its input), weight_hh_lk (4 hidden_size, hidden_size), and where `bias`,
    bias_ih_lk and bias_hh_lk, (4 hidden_size,) each. z, (batch, 4 hidden_size), is z_i, z_f, z_g and z_o side by side.
    They become the gates i, f, g and o. For each time t, with h and c_before of the time before, which are 0 at first:

        z         = input[t] @ weight_ih.T + bias_ih + bias_hh + h @ weight_hh.T
        i, f      = expit(z_i), expit(z_f)
        g         = tanh(z_g)
        o         = expit(z_o)
        c         = f * c_before + i * g
        tanh_c    = tanh(c)
        h         = o * tanh_c
        output[t] = h

    The derivatives of c and h, for each time:

        dc_dz_i = g * i * (1 - i)
        dc_dz_f = c_before * f * (1 - f)
        dc_dz_g = i * (1 - g * g)
        dh_dz_o = tanh_c * o * (1 - o)
        dh_dc   = o * (1 - tanh_c * tanh_c)

    For each time, from the last to the first, with grad_h and grad_c of the time after, 0 at the last time:

        grad_h   = grad_output[t] + grad_h
        grad_c   = grad_h * dh_dc + grad_c
        grad_z_i = dc_dz_i * grad_c
        grad_z_f = dc_dz_f * grad_c
        grad_z_g = dc_dz_g * grad_c
        grad_z_o = dh_dz_o * grad_h
        grad_h   = grad_z @ weight_hh
        grad_c   = grad_c * f

    Over all times:

        grad_weight_ih = rows(grad_z).T @ rows(input)
        grad_weight_hh = rows(grad_z[1:]).T @ rows(output[:-1])
        grad_bias_ih   = rows(grad_z).sum(axis=0)
        grad_bias_hh   = rows(grad_z).sum(axis=0)
        grad_input     = grad_z @ weight_ih

    Derivation: c goes two ways, into h and into the next c. h goes two ways, into output[t] and into the next z. So the
    gradients of the two ways add. The other lines are the chain rule along one way each, with
    expit' = expit (1 - expit) and tanh' = 1 - tanh**2. The weights are used at each time, so their gradients are sums
    over all times, and such a sum is one product.

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
        """weight_ih_lk, weight_hh_lk, bias_ih_lk and bias_hh_lk of each layer k."""
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

    def forward(self, input: Array) -> tuple[Array, list[_Memory]]:
        """The output. What is saved is, for each of the layers, what its backward needs."""
        self.output_shape(input.shape)
        output, saved = input.swapaxes(0, 1) if self.batch_first else input, []
        for k in range(self.num_layers):
            saved.append(self._layer(k, output))
            output = saved[-1].output
        return output.swapaxes(0, 1) if self.batch_first else output, saved

    def _layer(self, k: int, input: Array) -> _Memory:
        weight_ih, weight_hh, *biases = self._of_layer(k, vars(self.param))
        time, batch, _ = input.shape
        z = rows(input) @ weight_ih.T
        for bias in biases:
            z += bias
        z = z.reshape(time, batch, 4 * self.hidden_size)
        gates = z.reshape(time, batch, 4, self.hidden_size)  # a view: i, f, g and o take the place of z
        c, tanh_c, output = np.empty_like(input, shape=(3, time, batch, self.hidden_size))
        h = c_before = np.zeros_like(input, shape=(batch, self.hidden_size))
        recurrent = weight_hh.T.copy()  # a product with this takes two thirds of the time
        for t in over_time(time):
            z[t] += h @ recurrent
            i, f, g, o = np.moveaxis(gates[t], 1, 0)
            gates[t, :, :2] = expit(gates[t, :, :2])  # i and f
            np.tanh(g, out=g)
            o[...] = expit(o)
            np.add(f * c_before, i * g, out=c[t])
            np.tanh(c[t], out=tanh_c[t])
            h = np.multiply(o, tanh_c[t], out=output[t])
            c_before = c[t]
        return _Memory(input, gates, c, tanh_c, output)

    def backward(self, saved: list[_Memory], grad_output: Array) -> Array:
        """Write the gradients of the parameters, return grad_input."""
        self.check_gradient(grad_output, _swapped(saved[-1].output, self.batch_first).shape)
        grad = _swapped(grad_output, self.batch_first)
        for k in reversed(range(self.num_layers)):
            grad = self._layer_backward(k, saved[k], grad)
        return _swapped(grad, self.batch_first)

    def _layer_backward(self, k: int, saved: _Memory, grad_output: Array) -> Array:
        weight_ih, weight_hh, *_ = self._of_layer(k, vars(self.param))
        f = saved.gates[:, :, 1]
        dc_dz, dh_dz_o, dh_dc = self._derivatives(saved)
        grad_z = np.empty_like(saved.gates)
        grad_h = grad_c = np.zeros_like(saved.output[0])
        for t in over_time(len(grad_z), backward=True):
            grad_h = grad_output[t] + grad_h
            grad_c = grad_h * dh_dc[t] + grad_c
            np.multiply(dc_dz[t], grad_c[:, np.newaxis], out=grad_z[t, :, :3])
            np.multiply(dh_dz_o[t], grad_h, out=grad_z[t, :, 3])
            grad_h = grad_z[t].reshape(len(grad_h), 4 * self.hidden_size) @ weight_hh
            grad_c = grad_c * f[t]
        grad_z = grad_z.reshape(*grad_output.shape[:2], 4 * self.hidden_size)
        grad_weight_ih, grad_weight_hh, *grad_biases = self._of_layer(k, vars(self.grad))
        np.matmul(rows(grad_z).T, rows(saved.input), out=grad_weight_ih)
        np.matmul(rows(grad_z[1:]).T, rows(saved.output[:-1]), out=grad_weight_hh)
        for grad_bias in grad_biases:
            sum_rows(grad_z, out=grad_bias)
        grad_input: Array = rows(grad_z) @ weight_ih
        return grad_input.reshape(saved.input.shape)

    def _derivatives(self, saved: _Memory) -> tuple[Array, Array, Array]:
        """dc_dz_i, dc_dz_f and dc_dz_g as one array, dh_dz_o and dh_dc, of all times at once: they need no gradient."""
        i, f, g, o = np.moveaxis(saved.gates, 2, 0)
        c_before = np.concatenate([np.zeros_like(saved.c[:1]), saved.c[:-1]])
        tanh_c = saved.tanh_c
        derivatives = np.empty_like(saved.gates)
        dc_dz, dh_dz_o = derivatives[:, :, :3], derivatives[:, :, 3]
        dc_dz[:, :, 0] = g * i * (1 - i)
        dc_dz[:, :, 1] = c_before * f * (1 - f)
        dc_dz[:, :, 2] = i * (1 - g * g)
        dh_dz_o[...] = tanh_c * o * (1 - o)
        dh_dc = o * (1 - tanh_c * tanh_c)
        return dc_dz, dh_dz_o, dh_dc

    def _of_layer(self, k: int, views: dict[str, Any]) -> Iterator[Array]:
        """The parameters of one of the layers, or their gradients, in their order."""
        return (view for name, view in views.items() if name.endswith(f"_l{k}"))


def _swapped(array: Array, batch_first: bool) -> Array:
    """The array with time first, or with batch first again."""
    return array.swapaxes(0, 1) if batch_first else array
