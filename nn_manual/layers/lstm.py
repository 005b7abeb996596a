"""LSTM: a recurrent layer whose cell keeps what its gates let it keep."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from nn_manual.arrays import Array, Shape, over_time
from nn_manual.layers.activations import expit
from nn_manual.layers.base import Layer
from nn_manual.layers.fast_forms import rows
from nn_manual.layers.recurrent import Recurrent


class _Memory(NamedTuple):
    """What backward needs of one layer and way: its input, the gates i, f, g, o, (time, batch, 4, hidden_size), c and
    tanh(c), each (time, batch, hidden_size), and the output, (time, batch, state_size).
    """

    input: Array
    gates: Array
    c: Array
    tanh_c: Array
    output: Array


@dataclass(eq=False)
class LSTM(Recurrent):
    """Long short-term memory from a state of zeros, input (time, batch, input_size) to output (time, batch,
    hidden_size). Recurrent says what `num_layers`, `batch_first`, `dropout` and `bidirectional` do, and names the
    parameters. With `proj_size`, h and output have state_size = proj_size numbers, fewer than hidden_size: one more
    parameter of each layer and way, weight_hr_lk (proj_size, hidden_size), makes them of gated. Without it, which is
    proj_size = 0, state_size is hidden_size.

    z, (batch, 4 hidden_size), is z_i, z_f, z_g and z_o side by side. They become the gates i, f, g and o. For each time
    t, with h and c_before of the time before, which are 0 at first:

        z         = input[t] @ weight_ih.T + bias_ih + bias_hh + h @ weight_hh.T
        i, f      = expit(z_i), expit(z_f)
        g         = tanh(z_g)
        o         = expit(z_o)
        c         = f * c_before + i * g
        tanh_c    = tanh(c)
        gated     = o * tanh_c
        h         = gated                                                  where proj_size = 0
        h         = gated @ weight_hr.T                                    where proj_size > 0
        output[t] = h

    The derivatives of c and gated, for each time:

        dc_dz_i     = g * i * (1 - i)
        dc_dz_f     = c_before * f * (1 - f)
        dc_dz_g     = i * (1 - g * g)
        dgated_dz_o = tanh_c * o * (1 - o)
        dgated_dc   = o * (1 - tanh_c * tanh_c)

    For each time, from the last to the first, with grad_after and grad_c of the time after, 0 at the last time:

        grad_h     = grad_output[t] + grad_after
        grad_gated = grad_h                                                where proj_size = 0
        grad_gated = grad_h @ weight_hr                                    where proj_size > 0
        grad_c     = grad_gated * dgated_dc + grad_c
        grad_z_i   = dc_dz_i * grad_c
        grad_z_f   = dc_dz_f * grad_c
        grad_z_g   = dc_dz_g * grad_c
        grad_z_o   = dgated_dz_o * grad_gated
        grad_after = grad_z @ weight_hh
        grad_c     = grad_c * f

    Over all times:

        grad_weight_hr = rows(grad_h).T @ rows(gated)                      where proj_size > 0
        grad_weight_ih = rows(grad_z).T @ rows(input)
        grad_weight_hh = rows(grad_z[1:]).T @ rows(output[:-1])
        grad_bias_ih   = rows(grad_z).sum(axis=0)
        grad_bias_hh   = rows(grad_z).sum(axis=0)
        grad_input     = grad_z @ weight_ih

    Derivation: c goes two ways, into gated and into the next c. h goes two ways, into output[t] and into the next z. So
    the gradients of the two ways add. The other lines are the chain rule along one way each, with
    expit' = expit (1 - expit) and tanh' = 1 - tanh**2; the projection is a Linear without bias. The weights are used at
    each time, so their gradients are sums over all times, and such a sum is one product.

    Source: Hochreiter and Schmidhuber, 1997, with the forget gate of Gers et al., 2000; proj_size: Sak et al., 2014.
    Raises ValueError for a proj_size below 0 or not below hidden_size, and as Recurrent does.
    """

    NUM_GATES: ClassVar[int] = 4

    proj_size: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.proj_size < self.hidden_size:
            bounds = f"at least 0 and below hidden_size={self.hidden_size}"
            raise ValueError(f"proj_size must be {bounds}, not {self.proj_size}")

    @classmethod
    def examples(cls) -> list[tuple[Layer, Shape]]:
        """Those of all recurrent layers, and projections, one of them two ways and without bias."""
        two_ways = cls(2, 3, num_layers=2, bias=False, batch_first=True, bidirectional=True, proj_size=2)
        return [*super().examples(), (cls(3, 4, batch_first=True, proj_size=2), (3, 2, 3)), (two_ways, (3, 2, 2))]

    @property
    def state_size(self) -> int:
        """proj_size, if there is a projection."""
        return self.proj_size or self.hidden_size

    def parameter_shapes(self) -> dict[str, Shape]:
        """Those of all recurrent layers, and behind those of each layer and way its weight_hr_lk."""
        shapes = dict[str, Shape]()
        for name, shape in super().parameter_shapes().items():
            shapes[name] = shape
            if self.proj_size and name.startswith("bias_hh" if self.bias else "weight_hh"):
                shapes[f"weight_hr{name[name.index('_l') :]}"] = (self.proj_size, self.hidden_size)
        return shapes

    def one_way(self, parameters: list[Array], input: Array) -> _Memory:
        """Run one layer through the times as they are, from a state of zeros."""
        weight_ih, weight_hh, *biases = parameters[: 2 + 2 * self.bias]
        time, batch, _ = input.shape
        z = rows(input) @ weight_ih.T
        for bias in biases:
            z += bias
        z = z.reshape(time, batch, 4 * self.hidden_size)
        gates = z.reshape(time, batch, 4, self.hidden_size)  # a view: i, f, g and o take the place of z
        c, tanh_c = np.empty_like(input, shape=(2, time, batch, self.hidden_size))
        output = np.empty_like(input, shape=(time, batch, self.state_size))
        h = np.zeros_like(input, shape=(batch, self.state_size))
        c_before = np.zeros_like(input, shape=(batch, self.hidden_size))
        recurrent = weight_hh.T.copy()  # a product with this takes two thirds of the time
        for t in over_time(time):
            z[t] += h @ recurrent
            i, f, g, o = np.moveaxis(gates[t], 1, 0)
            gates[t, :, :2] = expit(gates[t, :, :2])  # i and f
            np.tanh(g, out=g)
            o[...] = expit(o)
            np.add(f * c_before, i * g, out=c[t])
            np.tanh(c[t], out=tanh_c[t])
            if self.proj_size:
                h = np.matmul(o * tanh_c[t], parameters[-1].T, out=output[t])
            else:
                h = np.multiply(o, tanh_c[t], out=output[t])
            c_before = c[t]
        return _Memory(input, gates, c, tanh_c, output)

    def one_way_backward(
        self, parameters: list[Array], grads: list[Array], saved: _Memory, grad_output: Array
    ) -> Array:
        """Write the gradients of the parameters, return grad_input."""
        weight_hh, weight_hr = parameters[1], parameters[-1]
        f = saved.gates[:, :, 1]
        dc_dz, dgated_dz_o, dgated_dc = self._derivatives(saved)
        grad_z = np.empty_like(saved.gates)
        grad_after, grad_c = np.zeros_like(saved.output[0]), np.zeros_like(saved.c[0])
        grad_of_times = np.empty_like(saved.output)
        for t in over_time(len(grad_z), backward=True):
            grad_gated = grad_h = grad_output[t] + grad_after
            if self.proj_size:
                grad_of_times[t] = grad_h
                grad_gated = grad_h @ weight_hr
            grad_c = grad_gated * dgated_dc[t] + grad_c
            np.multiply(dc_dz[t], grad_c[:, np.newaxis], out=grad_z[t, :, :3])
            np.multiply(dgated_dz_o[t], grad_gated, out=grad_z[t, :, 3])
            grad_after = grad_z[t].reshape(len(grad_c), 4 * self.hidden_size) @ weight_hh
            grad_c = grad_c * f[t]
        if self.proj_size:
            gated = saved.gates[:, :, 3] * saved.tanh_c
            np.matmul(rows(grad_of_times).T, rows(gated), out=grads[-1])
        grad_z = grad_z.reshape(*grad_output.shape[:2], 4 * self.hidden_size)
        return self.over_all_times(parameters, grads[: 2 + 2 * self.bias], saved, grad_z, grad_z)

    def _derivatives(self, saved: _Memory) -> tuple[Array, Array, Array]:
        """dc_dz_i, dc_dz_f and dc_dz_g as one array, dgated_dz_o and dgated_dc, of all times at once: they need no
        gradient.
        """
        i, f, g, o = np.moveaxis(saved.gates, 2, 0)
        c_before = np.concatenate([np.zeros_like(saved.c[:1]), saved.c[:-1]])
        tanh_c = saved.tanh_c
        derivatives = np.empty_like(saved.gates)
        dc_dz, dgated_dz_o = derivatives[:, :, :3], derivatives[:, :, 3]
        dc_dz[:, :, 0] = g * i * (1 - i)
        dc_dz[:, :, 1] = c_before * f * (1 - f)
        dc_dz[:, :, 2] = i * (1 - g * g)
        dgated_dz_o[...] = tanh_c * o * (1 - o)
        dgated_dc = o * (1 - tanh_c * tanh_c)
        return dc_dz, dgated_dz_o, dgated_dc
