"""GRU: a recurrent layer whose gates say how much of its state is new."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from nn_manual.arrays import Array, over_time
from nn_manual.layers.activations import expit
from nn_manual.layers.fast_forms import rows
from nn_manual.layers.recurrent import Recurrent


class _Memory(NamedTuple):
    """What backward needs of one layer and way: its input, the gates r, z, n, (time, batch, 3, hidden_size), and b_n
    and the output, each (time, batch, hidden_size).
    """

    input: Array
    gates: Array
    b_n: Array
    output: Array


@dataclass(eq=False)
class GRU(Recurrent):
    """Gated recurrent unit from a state of zeros, input (time, batch, input_size) to output (time, batch, hidden_size).
    Recurrent says what `num_layers`, `batch_first`, `dropout` and `bidirectional` do, and names the parameters.

    a and b, (batch, 3 hidden_size), are a_r, a_z and a_n, and b_r, b_z and b_n, side by side. They become the gates r,
    z and n. For each time t, with h of the time before, which is 0 at first:

        h_before  = h
        a         = input[t] @ weight_ih.T + bias_ih
        b         = h_before @ weight_hh.T + bias_hh
        r, z      = expit(a_r + b_r), expit(a_z + b_z)
        n         = tanh(a_n + r * b_n)
        h         = (1 - z) * n + z * h_before
        output[t] = h

    The derivatives of h, for each time:

        dh_da_n = (1 - z) * (1 - n * n)
        dh_da_r = dh_da_n * b_n * r * (1 - r)
        dh_da_z = (h_before - n) * z * (1 - z)
        dh_db_n = dh_da_n * r

    For each time, from the last to the first, with grad_h of the time after, which is 0 at the last time:

        grad_h   = grad_output[t] + grad_h
        grad_a_r = dh_da_r * grad_h
        grad_a_z = dh_da_z * grad_h
        grad_a_n = dh_da_n * grad_h
        grad_b_r = grad_a_r
        grad_b_z = grad_a_z
        grad_b_n = dh_db_n * grad_h
        grad_h   = grad_b @ weight_hh + grad_h * z

    Over all times:

        grad_weight_ih = rows(grad_a).T @ rows(input)
        grad_weight_hh = rows(grad_b[1:]).T @ rows(output[:-1])
        grad_bias_ih   = rows(grad_a).sum(axis=0)
        grad_bias_hh   = rows(grad_b).sum(axis=0)
        grad_input     = grad_a @ weight_ih

    Derivation: h goes two ways, into output[t] and into the next time, where it goes two ways again, through b and
    through z * h_before. So the gradients of these ways add. The other lines are the chain rule along one way each:
    d h / d n = 1 - z and d h / d z = h_before - n, with expit' = expit (1 - expit) and tanh' = 1 - tanh**2. r has its
    gradient through r * b_n. The weights are used at each time, so their gradients are sums over all times, and such a
    sum is one product.

    Source: Cho et al., 2014, with the reset gate behind the product with weight_hh, as torch has it. Raises ValueError
    as Recurrent does.
    """

    NUM_GATES: ClassVar[int] = 3

    def one_way(self, parameters: list[Array], input: Array) -> _Memory:
        """Run one layer through the times as they are, from a state of zeros."""
        weight_ih, weight_hh, *biases = parameters
        (time, batch, _), size = input.shape, self.hidden_size
        a = rows(input) @ weight_ih.T
        if biases:
            a += biases[0]
        a = a.reshape(time, batch, 3 * size)
        gates = a.reshape(time, batch, 3, size)  # a view: r, z and n take the place of a
        b_n, output = np.empty_like(input, shape=(2, time, batch, size))
        h = np.zeros_like(input, shape=(batch, size))
        recurrent = weight_hh.T.copy()  # a product with this takes two thirds of the time
        for t in over_time(time):
            b = h @ recurrent
            if biases:
                b += biases[1]
            a[t, :, : 2 * size] = expit(a[t, :, : 2 * size] + b[:, : 2 * size])  # r and z
            r, z, n = np.moveaxis(gates[t], 1, 0)
            b_n[t] = b[:, 2 * size :]
            n[...] = np.tanh(n + r * b_n[t])
            h = np.add((1 - z) * n, z * h, out=output[t])
        return _Memory(input, gates, b_n, output)

    def one_way_backward(
        self, parameters: list[Array], grads: list[Array], saved: _Memory, grad_output: Array
    ) -> Array:
        """Write the gradients of the parameters, return grad_input."""
        weight_hh, z = parameters[1], saved.gates[:, :, 1]
        dh_da, dh_db_n = self._derivatives(saved)
        grad_a, grad_b = np.empty_like(saved.gates, shape=(2, *saved.gates.shape))
        grad_h = np.zeros_like(saved.output[0])
        for t in over_time(len(grad_a), backward=True):
            grad_h = grad_output[t] + grad_h
            np.multiply(dh_da[t], grad_h[:, np.newaxis], out=grad_a[t])
            grad_b[t, :, :2] = grad_a[t, :, :2]
            np.multiply(dh_db_n[t], grad_h, out=grad_b[t, :, 2])
            grad_h = grad_b[t].reshape(len(grad_h), 3 * self.hidden_size) @ weight_hh + grad_h * z[t]
        shape = (*grad_output.shape[:2], 3 * self.hidden_size)
        return self.over_all_times(parameters, grads, saved, grad_a.reshape(shape), grad_b.reshape(shape))

    def _derivatives(self, saved: _Memory) -> tuple[Array, Array]:
        """dh_da_r, dh_da_z and dh_da_n as one array, and dh_db_n, of all times at once: they need no gradient."""
        r, z, n = np.moveaxis(saved.gates, 2, 0)
        h_before = np.concatenate([np.zeros_like(saved.output[:1]), saved.output[:-1]])
        dh_da = np.empty_like(saved.gates)
        dh_da_n = (1 - z) * (1 - n * n)
        dh_da[:, :, 0] = dh_da_n * saved.b_n * r * (1 - r)
        dh_da[:, :, 1] = (h_before - n) * z * (1 - z)
        dh_da[:, :, 2] = dh_da_n
        return dh_da, dh_da_n * r
