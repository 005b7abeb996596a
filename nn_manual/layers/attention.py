"""Attention: each time of a sequence gets a weighted mean of values of the times that it sees.

The file is long because a quarter of it is the derivation, which the code follows line by line.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from nn_manual.arrays import Array, Shape
from nn_manual.layers.base import Layer, num_parameters
from nn_manual.layers.dropout import check_mask, draw_mask
from nn_manual.layers.fast_forms import rows, sum_rows
from nn_manual.layers.with_noise import LayerWithNoise
from nn_manual.streams import RowGenerator

#: At most so many scores are in memory at a time, or those of one example: 256 KB of float32 stay in the cache.
NUM_SCORES = 1 << 16


class _Memory(NamedTuple):
    """What backward needs: the input; query / sqrt(width), key and value side by side, (batch, time, 3 embed_dim);
    largest and total of each row of scores, (batch, num_heads, time, 1); joined, (batch, time, embed_dim); and the
    mask, if there is one.
    """

    input: Array
    projected: Array
    largest: Array
    total: Array
    joined: Array
    mask: Array | None


@dataclass(eq=False)
class SelfAttention(LayerWithNoise):
    """Multi-head self-attention, input and output (batch, time, embed_dim).

    Parameters, with the names of torch.nn.MultiheadAttention: in_proj_weight (3 embed_dim, embed_dim), which has the
    weights of query, key and value one below the other; out_proj.weight (embed_dim, embed_dim); and where `bias`,
    in_proj_bias (3 embed_dim,) and out_proj.bias (embed_dim,). Each of the `num_heads` has width = embed_dim /
    num_heads numbers of query, key and value. split takes (batch, time, embed_dim) apart into (batch, num_heads, time,
    width), or (batch, time, 3 embed_dim) into three such arrays, and join puts them together again. `hidden` (time,
    time) is -infinity where the row's time doesn't see the column's, and otherwise 0. In training with `dropout`, the
    mask (batch, num_heads, time, time) is 0 with that probability, and otherwise 1 / (1 - dropout). In evaluation, and
    without dropout, there is no mask.

        projected         = input @ in_proj_weight.T + in_proj_bias
        query, key, value = split(projected)
        query             = query / sqrt(width)
        scores            = query @ key.mT + hidden
        largest           = scores.max(axis=-1, keepdims=True)
        exponential       = exp(scores - largest)
        total             = exponential.sum(axis=-1, keepdims=True)
        probability       = exponential / total
        kept              = probability * mask
        attended          = kept @ value
        joined            = join(attended)
        output            = joined @ out_proj.weight.T + out_proj.bias

        grad_out_proj.weight = rows(grad_output).T @ rows(joined)
        grad_out_proj.bias   = rows(grad_output).sum(axis=0)
        grad_joined          = grad_output @ out_proj.weight
        grad_attended        = split(grad_joined)
        grad_value           = kept.mT @ grad_attended
        grad_kept            = grad_attended @ value.mT
        grad_probability     = grad_kept * mask
        mean                 = (probability * grad_probability).sum(axis=-1, keepdims=True)
        grad_scores          = probability * (grad_probability - mean)
        grad_query           = grad_scores @ key / sqrt(width)
        grad_key             = grad_scores.mT @ query
        grad_projected       = join(grad_query, grad_key, grad_value)
        grad_in_proj_weight  = rows(grad_projected).T @ rows(input)
        grad_in_proj_bias    = rows(grad_projected).sum(axis=0)
        grad_input           = grad_projected @ in_proj_weight

    Derivation: the projections are Linear. The products with value and key are matrix products for each example and
    head: the gradient of one factor is a product with the other one, transposed. A row of probability is the Softmax of
    a row of scores. Where a score is -infinity the probability is 0, and so is its gradient.

    Scores and probabilities, time**2 numbers for each head, are not kept. backward computes them again, bit for bit,
    from query, key, largest and total. One number, the logarithm of the sum of all exp(scores), could replace largest
    and total. But if it is 1e7, float32 has no digit of it behind the point. And `mean` is also the sum of
    grad_attended * attended, which has fewer terms. But where one probability is 1, `mean` must equal that one's
    grad_probability to the last bit: the difference is exactly 0 then. Otherwise keys of 1e4 would make a gradient of
    the rounding error.

    Source: Vaswani et al., 2017. Raises ValueError for sizes below 1, heads that don't divide embed_dim, a dropout
    outside 0 to 1, an input of another shape, and a gradient that is not shaped as the output.
    """

    embed_dim: int
    num_heads: int
    dropout: float = 0.0
    bias: bool = True

    def __post_init__(self) -> None:
        for name in ("embed_dim", "num_heads"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, not {getattr(self, name)}")
        if self.embed_dim % self.num_heads:
            raise ValueError(f"num_heads must divide embed_dim={self.embed_dim}, {self.num_heads} doesn't")
        if not 0 <= self.dropout <= 1:
            raise ValueError(f"dropout must be between 0 and 1, not {self.dropout}")

    @classmethod
    def examples(cls) -> list[tuple[Layer, Shape]]:
        """One head and several, with dropout, without bias, all square, and a single time."""
        return [
            (cls(4, 2), (2, 3, 4)),
            (cls(6, 2, dropout=0.25), (3, 4, 6)),
            (cls(3, 1, bias=False), (3, 3, 3)),
            (cls(2, 2), (3, 1, 2)),
        ]

    def parameter_shapes(self) -> dict[str, Shape]:
        """in_proj_weight, in_proj_bias, out_proj.weight, out_proj.bias."""
        size = self.embed_dim
        shapes: dict[str, Shape] = {
            "in_proj_weight": (3 * size, size),
            "in_proj_bias": (3 * size,),
            "out_proj.weight": (size, size),
            "out_proj.bias": (size,),
        }
        return {name: shape for name, shape in shapes.items() if self.bias or not name.endswith("bias")}

    def reset_parameters(self, generator: np.random.Generator) -> None:
        """As torch.nn.MultiheadAttention: in_proj_weight uniform in ±sqrt(6 / (4 embed_dim)), Xavier's bound;
        out_proj.weight in ±1/sqrt(embed_dim); the biases 0.
        """
        bounds = {"in_proj_weight": math.sqrt(6 / (4 * self.embed_dim)), "out_proj.weight": self.embed_dim**-0.5}
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
        for mask in vars(self.noise).values():
            draw_mask(mask, self.dropout, generator)

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

    def forward(self, input: Array) -> tuple[Array, _Memory]:
        """The output, and what backward needs."""
        self._check(input.shape)
        output, saved = self._attend(input, self.noise.mask if self.dropout else None)
        return output, saved

    def infer(self, input: Array) -> Array:
        """The output without dropout."""
        self.output_shape(input.shape)
        return self._attend(input, None)[0]

    def backward(self, saved: _Memory, grad_output: Array) -> Array:
        """Write the gradients of the parameters, return grad_input."""
        self.check_gradient(grad_output, saved.input.shape)
        input, projected, largest, total, joined, mask = saved
        query, key, value = self._split(projected)
        self._map_backward("out_proj", joined, grad_output)
        grad_joined = rows(grad_output) @ vars(self.param)["out_proj.weight"]
        (grad_attended,) = self._split(grad_joined.reshape(grad_output.shape))
        grad_projected = np.empty_like(projected)
        grad_query, grad_key, grad_value = self._split(grad_projected)  # views: what they are given is joined
        for part in self._parts(input.shape):
            exponential = self._exponential(self._scores(query[part], key[part]), largest[part])
            probability = np.divide(exponential, total[part], out=exponential)
            kept = probability if mask is None else probability * mask[part]
            np.matmul(kept.mT, grad_attended[part], out=grad_value[part])
            grad_kept = grad_attended[part] @ value[part].mT
            grad_probability = grad_kept if mask is None else np.multiply(grad_kept, mask[part], out=grad_kept)
            mean = np.vecdot(probability, grad_probability)[..., np.newaxis]
            grad_scores = np.subtract(grad_probability, mean, out=grad_probability)
            grad_scores *= probability
            np.matmul(grad_scores, key[part], out=grad_query[part])
            np.matmul(grad_scores.mT, query[part], out=grad_key[part])
        grad_query *= 1 / math.sqrt(query.shape[-1])
        self._map_backward("in_proj", input, grad_projected)
        grad_input: Array = rows(grad_projected) @ self.param.in_proj_weight
        return grad_input.reshape(grad_output.shape)

    def _check(self, input_shape: Shape) -> None:
        self.output_shape(input_shape)
        if self.dropout:
            check_mask(self, input_shape)

    def _attend(self, input: Array, mask: Array | None) -> tuple[Array, _Memory]:
        """The output, with this mask or without one, and what backward needs."""
        projected = self._map("in_proj", input)
        query, key, value = self._split(projected)
        query *= 1 / math.sqrt(query.shape[-1])
        joined = np.empty_like(projected, shape=input.shape)
        (attended,) = self._split(joined)  # a view: what it is given is joined
        largest, total = np.empty_like(input, shape=(2, *attended.shape[:-1], 1))
        for part in self._parts(input.shape):
            scores = self._scores(query[part], key[part])
            np.max(scores, axis=-1, keepdims=True, out=largest[part])
            exponential = self._exponential(scores, largest[part])
            np.sum(exponential, axis=-1, keepdims=True, out=total[part])
            probability = np.divide(exponential, total[part], out=exponential)
            kept = probability if mask is None else np.multiply(probability, mask[part], out=probability)
            np.matmul(kept, value[part], out=attended[part])
        return self._map("out_proj", joined), _Memory(input, projected, largest, total, joined, mask)

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

    def _scores(self, query: Array, key: Array) -> Array:
        """query @ key.mT + hidden, (..., time, time). Here each time sees all."""
        scores: Array = query @ key.mT.copy()  # half the time of a product with a view
        return scores

    def _exponential(self, scores: Array, largest: Array) -> Array:
        """exp(scores - largest), in the memory of the scores."""
        scores -= largest
        return np.exp(scores, out=scores)

    def _split(self, array: Array) -> Array:
        """(batch, time, count embed_dim) as (count, batch, num_heads, time, width), a view."""
        batch, time, size = array.shape
        width = self.embed_dim // self.num_heads
        return array.reshape(batch, time, size // self.embed_dim, self.num_heads, width).transpose(2, 0, 3, 1, 4)

    def _of_map(self, name: str, views: dict[str, Array]) -> list[Array]:
        """weight and bias of a projection, or their gradients."""
        return [view for key, view in views.items() if key.startswith(name)]

    def _parts(self, input_shape: Shape) -> Iterator[slice]:
        """Slices of the batch: the scores of each are at most NUM_SCORES, or those of one example."""
        batch, time, _ = input_shape
        step = max(1, NUM_SCORES // (self.num_heads * max(1, time * time)))
        return (slice(start, start + step) for start in range(0, batch if time else 0, step))
