"""Attention: each time of a sequence gets a weighted mean of values of the times that it sees.

The file is long because a quarter of it is the derivation, which the code follows line by line.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from nn_manual.arrays import Array, Shape
from nn_manual.layers.attention_heads import Heads
from nn_manual.layers.attention_places import offset, rotate
from nn_manual.layers.base import Layer
from nn_manual.layers.fast_forms import rows

#: At most so many scores are in memory at a time, or those of one example: 256 KB of float32 stay in the cache.
NUM_SCORES = 1 << 16


class _Memory(NamedTuple):
    """What backward needs: the input; query / sqrt(width), key and value side by side, (batch, time, features), turned
    where positions are rotary; largest and total of each row of scores, (batch, num_heads, time, 1); joined, (batch,
    time, embed_dim); the mask of dropout, if there is one; and where sequences have lengths, which times count, (batch,
    time, 1).
    """

    input: Array
    projected: Array
    largest: Array
    total: Array
    joined: Array
    mask: Array | None
    counts: Array | None


@dataclass(eq=False)
class SelfAttention(Heads):
    """Multi-head self-attention, input and output (batch, time, embed_dim).

    Parameters, with the names of torch.nn.MultiheadAttention: in_proj_weight (3 embed_dim, embed_dim), which has the
    weights of query, key and value one below the other; out_proj.weight (embed_dim, embed_dim); and where `bias`,
    in_proj_bias (3 embed_dim,) and out_proj.bias (embed_dim,). Each of the `num_heads` has width = embed_dim /
    num_heads numbers of query, key and value. With `num_kv_heads`, there are so many heads of keys and values, of the
    same width, and in_proj_weight has fewer rows: num_heads / num_kv_heads heads of queries, one behind the other,
    share each of them. split takes (batch, time, embed_dim) apart into (batch, num_heads, time, width), or projected
    into three such arrays, and join puts them together again. repeat gives each head of queries its keys or values, and
    add_up adds up over the heads of queries that share them. In training with `dropout`, the mask (batch, num_heads,
    time, time) is 0 with that probability, and otherwise 1 / (1 - dropout). In evaluation, and without dropout, there
    is no mask.

    `offset`, (time, time) or (num_heads, time, time), is -infinity where the row's time doesn't see the column's: with
    `window`, it sees those alone whose distance is below it, which saves no work: all scores are computed.
    Otherwise it is 0, or where positions = alibi, minus distance times a slope of the head, between 1 and 2**-8. rotate
    turns each pair of features, i and i + width / 2, by the angle time * 10000**(-2 i / width), and rotate_back by its
    negative.

        projected         = input @ in_proj_weight.T + in_proj_bias
        query, key, value = split(projected)
        query, key        = rotate(query), rotate(key)                        where positions = rotary
        query             = query / sqrt(width)
        key, value        = repeat(key), repeat(value)
        scores            = query @ key.mT + offset
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
        grad_value           = add_up(kept.mT @ grad_attended)
        grad_kept            = grad_attended @ value.mT
        grad_probability     = grad_kept * mask
        mean                 = (probability * grad_probability).sum(axis=-1, keepdims=True)
        grad_scores          = probability * (grad_probability - mean)
        grad_query           = grad_scores @ key / sqrt(width)
        grad_key             = add_up(grad_scores.mT @ query)
        grad_query           = rotate_back(grad_query)                        where positions = rotary
        grad_key             = rotate_back(grad_key)                          where positions = rotary
        grad_projected       = join(grad_query, grad_key, grad_value)
        grad_in_proj_weight  = rows(grad_projected).T @ rows(input)
        grad_in_proj_bias    = rows(grad_projected).sum(axis=0)
        grad_input           = grad_projected @ in_proj_weight

    Derivation: the projections are Linear. The products with value and key are matrix products for each example and
    head: the gradient of one factor is a product with the other one, transposed. A row of probability is the Softmax of
    a row of scores. Where a score is -infinity the probability is 0, and so is its gradient. `offset` depends on no
    input. A key that several heads share goes as many ways, so its gradients add. A rotation is orthogonal: what comes
    back through it is multiplied by its transpose, which is the rotation back. The product of a rotated query and a
    rotated key depends on the times through their difference alone.

    Scores and probabilities, time**2 numbers for each head, are not kept. backward computes them again, bit for bit,
    from query, key, largest and total. One number, the logarithm of the sum of all exp(scores), could replace largest
    and total. But if it is 1e7, float32 has no digit of it behind the point. And `mean` is also the sum of
    grad_attended * attended, which has fewer terms. But where one probability is 1, `mean` must equal that one's
    grad_probability to the last bit: the difference is exactly 0 then. Otherwise keys of 1e4 would make a gradient of
    the rounding error.

    Source: Vaswani et al., 2017; num_kv_heads: Ainslie et al., 2023; rotary: Su et al., 2021; alibi: Press et al.,
    2021. Raises ValueError for sizes below 1, heads that don't divide embed_dim, num_kv_heads that don't divide
    num_heads, rotary positions of an odd width, a dropout outside 0 to 1, an input of another shape, and a gradient
    that is not shaped as the output.
    """

    is_causal: ClassVar[bool] = False

    @classmethod
    def examples(cls) -> list[tuple[Layer, Shape]]:
        """One head and several, with dropout, without bias, all square, a single time; keys that two heads share and
        that all do, windows, and both kinds of positions.
        """
        return [
            (cls(4, 2), (2, 3, 4)),
            (cls(6, 2, dropout=0.25), (3, 4, 6)),
            (cls(3, 1, bias=False), (3, 3, 3)),
            (cls(2, 2), (3, 1, 2)),
            (cls(8, 4, num_kv_heads=2, window=2, positions="rotary"), (2, 4, 8)),
            (cls(6, 3, dropout=0.25, num_kv_heads=1, window=3, positions="alibi"), (2, 5, 6)),
        ]

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
        input, projected, largest, total, joined, mask, counts = saved
        query, key, value = self._split(projected)
        key, value = self._repeated(key), self._repeated(value)
        self._map_backward("out_proj", joined, grad_output)
        grad_joined = rows(grad_output) @ vars(self.param)["out_proj.weight"]
        (grad_attended,) = self._split(grad_joined.reshape(grad_output.shape))
        grad_projected = np.empty_like(projected)
        grad_query, *grad_shared = self._split(grad_projected)  # views: what they are given is joined
        grad_key, grad_value = map(self._repeatable, grad_shared)
        for part in self._parts(input.shape):
            scores = self._scores(query[part], key[part], None if counts is None else counts[part])
            exponential = self._exponential(scores, largest[part])
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
        for grad, shared in zip((grad_key, grad_value), grad_shared, strict=True):
            self._add_up(grad, shared)
        if self.positions == "rotary":
            rotate(grad_query, back=True)
            rotate(grad_shared[0], back=True)
        self._map_backward("in_proj", input, grad_projected)
        grad_input: Array = rows(grad_projected) @ self.param.in_proj_weight
        return grad_input.reshape(grad_output.shape)

    def _attend(self, input: Array, mask: Array | None, counts: Array | None = None) -> tuple[Array, _Memory]:
        """The output, with this mask of dropout or without one, and what backward needs. Where sequences have lengths,
        `counts` says which times count.
        """
        projected = self._map("in_proj", input)
        query, key, value = self._split(projected)
        if self.positions == "rotary":
            rotate(query)
            rotate(key)
        query *= 1 / math.sqrt(query.shape[-1])
        key, value = self._repeated(key), self._repeated(value)
        joined = np.empty_like(projected, shape=input.shape)
        (attended,) = self._split(joined)  # a view: what it is given is joined
        largest, total = np.empty_like(input, shape=(2, *attended.shape[:-1], 1))
        for part in self._parts(input.shape):
            scores = self._scores(query[part], key[part], None if counts is None else counts[part])
            np.max(scores, axis=-1, keepdims=True, out=largest[part])
            exponential = self._exponential(scores, largest[part])
            np.sum(exponential, axis=-1, keepdims=True, out=total[part])
            probability = np.divide(exponential, total[part], out=exponential)
            kept = probability if mask is None else np.multiply(probability, mask[part], out=probability)
            np.matmul(kept, value[part], out=attended[part])
        return self._map("out_proj", joined), _Memory(input, projected, largest, total, joined, mask, counts)

    def _scores(self, query: Array, key: Array, counts: Array | None) -> Array:
        """query @ key.mT + offset, (..., time, time). A time that counts sees none that doesn't."""
        scores: Array = query @ key.mT.copy()  # half the time of a product with a view
        num_slopes = self.num_heads if self.positions == "alibi" else 0
        if self.is_causal or self.window is not None or num_slopes:
            scores += offset(scores.shape[-1], scores.dtype, self.is_causal, self.window, num_slopes)
        if counts is not None:
            scores = np.where((counts & ~counts.mT)[:, np.newaxis], -np.inf, scores)
        return scores

    def _exponential(self, scores: Array, largest: Array) -> Array:
        """exp(scores - largest), in the memory of the scores."""
        scores -= largest
        return np.exp(scores, out=scores)

    def _parts(self, input_shape: Shape) -> Iterator[slice]:
        """Slices of the batch: the scores of each are at most NUM_SCORES, or those of one example."""
        batch, time, _ = input_shape
        step = max(1, NUM_SCORES // (self.num_heads * max(1, time * time)))
        return (slice(start, start + step) for start in range(0, batch if time else 0, step))
