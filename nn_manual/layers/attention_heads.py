"""The heads of attention: its settings and parameters, and queries, keys and values for each head."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from nn_manual.arrays import Array, Shape
from nn_manual.layers.base import num_parameters
from nn_manual.layers.dropout import check_mask, draw_mask
from nn_manual.layers.fast_forms import rows, sum_rows
from nn_manual.layers.with_noise import LayerWithNoise
from nn_manual.streams import RowGenerator


@dataclass(eq=False)
class Heads(LayerWithNoise):
    """A layer of attention as SelfAttention has it, without its formula: all that it is made of."""

    embed_dim: int
    num_heads: int
    dropout: float = 0.0
    bias: bool = True
    num_kv_heads: int | None = field(default=None, kw_only=True)
    window: int | None = field(default=None, kw_only=True)
    positions: Literal["rotary", "alibi"] | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        for name in ("embed_dim", "num_heads", "num_kv_heads", "window"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ValueError(f"{name} must be at least 1, not {value}")
        if self.embed_dim % self.num_heads:
            raise ValueError(f"num_heads must divide embed_dim={self.embed_dim}, {self.num_heads} doesn't")
        if self.num_kv_heads is not None and self.num_heads % self.num_kv_heads:
            raise ValueError(f"num_kv_heads must divide num_heads={self.num_heads}, {self.num_kv_heads} doesn't")
        if self.positions not in (None, "rotary", "alibi"):
            raise ValueError(f"positions must be rotary or alibi, not {self.positions!r}")
        if self.positions == "rotary" and self.width % 2:
            words = f"an even number of features for each head, not {self.embed_dim} / {self.num_heads}"
            raise ValueError(f"positions: rotary needs {words}")
        if not 0 <= self.dropout <= 1:
            raise ValueError(f"dropout must be between 0 and 1, not {self.dropout}")

    @property
    def width(self) -> int:
        """The features of each head."""
        return self.embed_dim // self.num_heads

    @property
    def num_shared(self) -> int:
        """How many heads of queries share the keys and values of one head."""
        return self.num_heads // (self.num_kv_heads or self.num_heads)

    def parameter_shapes(self) -> dict[str, Shape]:
        """in_proj_weight, in_proj_bias, out_proj.weight, out_proj.bias."""
        size = self.embed_dim
        num_rows = size + 2 * size // self.num_shared
        shapes: dict[str, Shape] = {
            "in_proj_weight": (num_rows, size),
            "in_proj_bias": (num_rows,),
            "out_proj.weight": (size, size),
            "out_proj.bias": (size,),
        }
        return {name: shape for name, shape in shapes.items() if self.bias or not name.endswith("bias")}

    def reset_parameters(self, generator: np.random.Generator) -> None:
        """As torch.nn.MultiheadAttention: in_proj_weight uniform in ±sqrt(6 / (rows + embed_dim)), Xavier's bound;
        out_proj.weight in ±1/sqrt(embed_dim); the biases 0.
        """
        bound = math.sqrt(6 / sum(self.param.in_proj_weight.shape))
        bounds = {"in_proj_weight": bound, "out_proj.weight": self.embed_dim**-0.5}
        for name, parameter in vars(self.param).items():
            bound = bounds.get(name, 0)
            parameter[...] = generator.uniform(-bound, bound, parameter.shape) if bound else 0

    def initialize(self, fill: Callable[[str], None]) -> None:
        """Both weights from the initializer; the biases are 0 already."""
        fill("in_proj_weight")
        fill("out_proj.weight")

    def noise_shapes(self, input_shape: Shape) -> dict[str, Shape]:
        """mask (batch, num_heads, time, time), if there is dropout."""
        batch, time, _ = self.output_shape(input_shape)
        return {"mask": (batch, self.num_heads, time, time)} if self.dropout else {}

    def draw_noise(self, generator: RowGenerator) -> None:
        """0 or 1 / (1 - dropout)."""
        if self.dropout:
            draw_mask(self.noise.mask, self.dropout, generator)

    def output_shape(self, input_shape: Shape) -> Shape:
        """The input's shape."""
        if len(input_shape) != 3 or input_shape[2] != self.embed_dim:
            raise ValueError(
                f"{type(self).__name__} takes (batch, time, embed_dim={self.embed_dim}), "
                f"the input has shape {input_shape}"
            )
        return input_shape

    def num_products(self, input_shape: Shape) -> int:
        """One product of each weight for each time, and 2 embed_dim for each pair of times, for score and value."""
        batch, time, size = input_shape
        return batch * time * (num_parameters(self) + 2 * time * size)

    def _check(self, input_shape: Shape) -> None:
        self.output_shape(input_shape)
        if self.dropout:
            check_mask(self, input_shape)

    def _map(self, name: str, input: Array) -> Array:
        """input @ weight.T + bias, of in_proj or out_proj. One product of all rows takes three quarters of the time of
        one for each example.
        """
        weight, *biases = self._of_map(name, vars(self.param))
        output = rows(input) @ weight.T
        for bias in biases:
            output += bias
        return output.reshape(*input.shape[:-1], len(weight))

    def _map_backward(self, name: str, input: Array, grad_output: Array) -> None:
        """Write the gradients of the projection's parameters."""
        grad_weight, *grad_biases = self._of_map(name, vars(self.grad))
        np.matmul(rows(grad_output).T, rows(input), out=grad_weight)
        for grad_bias in grad_biases:
            sum_rows(grad_output, out=grad_bias)

    def _of_map(self, name: str, views: dict[str, Array]) -> list[Array]:
        """weight and bias of a projection, or their gradients."""
        return [view for key, view in views.items() if key.startswith(name)]

    def _split(self, array: Array) -> tuple[Array, ...]:
        """(batch, time, embed_dim) as (batch, num_heads, time, width), a view; of queries, keys and values side by
        side, three views.
        """
        batch, time, size = array.shape
        by_head = array.reshape(batch, time, size // self.width, self.width).swapaxes(1, 2)
        if size == self.embed_dim:
            return (by_head,)
        keys = self.num_heads
        values = keys + keys // self.num_shared
        return by_head[:, :keys], by_head[:, keys:values], by_head[:, values:]

    def _repeatable(self, shared: Array) -> Array:
        """An array for each head of queries, or where none are shared, the array itself."""
        if self.num_shared == 1:
            return shared
        batch, _, time, width = shared.shape
        return np.empty_like(shared, shape=(batch, self.num_heads, time, width), order="C")

    def _by_group(self, array: Array) -> Array:
        """(batch, num_heads, ...) as (batch, num_kv_heads, num_shared, ...), a view."""
        return array.reshape(len(array), self.num_heads // self.num_shared, self.num_shared, *array.shape[2:])

    def _repeated(self, shared: Array) -> Array:
        """The keys, or the values, for each head of queries."""
        array = self._repeatable(shared)
        if array is not shared:
            self._by_group(array)[...] = shared[:, :, np.newaxis]
        return array

    def _add_up(self, grad: Array, shared: Array) -> None:
        """Write the sums over the heads of queries that share keys, or values."""
        if grad is not shared:
            np.sum(self._by_group(grad), axis=2, out=shared)
