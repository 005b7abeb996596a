"""RNN: the simplest recurrent layer, which has no gates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal, NamedTuple

import numpy as np

from nn_manual.arrays import Array, Shape, over_time
from nn_manual.layers.base import Layer
from nn_manual.layers.fast_forms import rows
from nn_manual.layers.recurrent import Recurrent


class _Memory(NamedTuple):
    """What backward needs of one layer and way: its input and its output, each (time, batch, ...)."""

    input: Array
    output: Array


@dataclass(eq=False)
class RNN(Recurrent):
    """Elman's recurrent net from a state of zeros, input (time, batch, input_size) to output (time, batch,
    hidden_size). Recurrent says what `num_layers`, `batch_first`, `dropout` and `bidirectional` do, and names the
    parameters.

    For each time t, with h of the time before, which is 0 at first:

        z         = input[t] @ weight_ih.T + bias_ih + bias_hh + h @ weight_hh.T
        h         = tanh(z)                                                where nonlinearity = tanh
        h         = maximum(z, 0)                                          where nonlinearity = relu
        output[t] = h

    The derivative of h, for each time:

        dh_dz = 1 - h * h                                                  where nonlinearity = tanh
        dh_dz = h > 0                                                      where nonlinearity = relu

    For each time, from the last to the first, with grad_h of the time after, which is 0 at the last time:

        grad_z = dh_dz * (grad_output[t] + grad_h)
        grad_h = grad_z @ weight_hh

    Over all times:

        grad_weight_ih = rows(grad_z).T @ rows(input)
        grad_weight_hh = rows(grad_z[1:]).T @ rows(output[:-1])
        grad_bias_ih   = rows(grad_z).sum(axis=0)
        grad_bias_hh   = rows(grad_z).sum(axis=0)
        grad_input     = grad_z @ weight_ih

    Derivation: h goes two ways, into output[t] and into the next z, so the gradients of the two ways add. The other
    lines are the chain rule, with tanh' = 1 - tanh**2; the derivative of relu is 0 where z is 0, as torch has it. The
    weights are used at each time, so their gradients are sums over all times, and such a sum is one product.

    Source: Elman, 1990. Raises ValueError for another nonlinearity, and as Recurrent does.
    """

    NUM_GATES: ClassVar[int] = 1

    nonlinearity: Literal["tanh", "relu"] = "tanh"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.nonlinearity not in ("tanh", "relu"):
            raise ValueError(f"nonlinearity must be tanh or relu, not {self.nonlinearity!r}")

    @classmethod
    def examples(cls) -> list[tuple[Layer, Shape]]:
        """Those of all recurrent layers, and one with relu, which has an output near 0."""
        return [*super().examples(), (cls(1, 2, nonlinearity="relu", bias=False), (2, 20, 1))]

    def one_way(self, parameters: list[Array], input: Array) -> _Memory:
        """Run one layer through the times as they are, from a state of zeros."""
        weight_ih, weight_hh, *biases = parameters
        time, batch, _ = input.shape
        z = rows(input) @ weight_ih.T
        for bias in biases:
            z += bias
        output = z.reshape(time, batch, self.hidden_size)  # a view: h takes the place of z
        h = np.zeros_like(input, shape=(batch, self.hidden_size))
        recurrent = weight_hh.T.copy()  # a product with this takes two thirds of the time
        for t in over_time(time):
            z_now = output[t] + h @ recurrent
            h = self._nonlinearity(z_now, out=output[t])
        return _Memory(input, output)

    def one_way_backward(
        self, parameters: list[Array], grads: list[Array], saved: _Memory, grad_output: Array
    ) -> Array:
        """Write the gradients of the parameters, return grad_input."""
        weight_hh, dh_dz = parameters[1], self._derivatives(saved)
        grad_z = np.empty_like(saved.output)
        grad_h = np.zeros_like(saved.output[0])
        for t in over_time(len(grad_z), backward=True):
            np.multiply(dh_dz[t], grad_output[t] + grad_h, out=grad_z[t])
            grad_h = grad_z[t] @ weight_hh
        return self.over_all_times(parameters, grads, saved, grad_z, grad_z)

    def _nonlinearity(self, z: Array, out: Array) -> Array:
        return np.tanh(z, out=out) if self.nonlinearity == "tanh" else np.maximum(z, 0, out=out)

    def _derivatives(self, saved: _Memory) -> Array:
        """dh_dz of all times at once: it needs no gradient."""
        h = saved.output
        return 1 - h * h if self.nonlinearity == "tanh" else h > 0
