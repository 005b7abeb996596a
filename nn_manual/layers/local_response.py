"""Normalization of each number by its neighbours in the other channels."""

from __future__ import annotations

from dataclasses import dataclass

from nn_manual.arrays import Array, Shape
from nn_manual.layers.base import Layer


@dataclass(eq=False)
class LocalResponseNorm(Layer):
    """Each number divided by a power of the squares around it, input (batch, channels, ...) to output of the same
    shape: a channel that responds strongly dims its neighbours.

    `over(x, before, behind)` is the sum over the channels from so many before each one to so many behind it, as far as
    there are any:

        base       = k + alpha / size * over(input**2, size // 2, (size - 1) // 2)
        output     = input * base**-beta
        share      = over(grad_output * output / base, (size - 1) // 2, size // 2)
        grad_input = grad_output * base**-beta - 2 * alpha * beta / size * input * share

    Derivation: with c for a channel, y[c] = x[c] b[c]**-beta. x[j] stands in b[c] where j is at most size // 2 before c
    and (size - 1) // 2 behind it: there d b[c] / d x[j] = 2 alpha / size x[j], and d y[c] / d b[c] = -beta y[c] / b[c].
    So the second term is the sum over these c of grad_output[c] (-beta y[c] / b[c]) 2 alpha / size x[j]. Seen from j,
    they begin (size - 1) // 2 before it and end size // 2 behind it. Source: Krizhevsky et al., 2012. Raises ValueError
    for a size below 1, an input of fewer than three dimensions, and a gradient that is not shaped as the output.
    """

    size: int
    alpha: float = 1e-4
    beta: float = 0.75
    k: float = 1.0

    def __post_init__(self) -> None:
        if self.size < 1:
            raise ValueError(f"size must be at least 1, not {self.size}")

    @classmethod
    def examples(cls) -> list[tuple[Layer, Shape]]:
        """An odd and an even number of channels, more than there are, and another power."""
        return [
            (cls(3, alpha=0.5), (2, 4, 3)),
            (cls(2, alpha=1.5, beta=0.5, k=2.0), (2, 3, 2, 2)),
            (cls(5, alpha=1.0, beta=2.0), (3, 3, 3)),
        ]

    def output_shape(self, input_shape: Shape) -> Shape:
        """The input's shape."""
        if len(input_shape) < 3:
            raise ValueError(f"LocalResponseNorm takes (batch, channels, ...), the input has shape {input_shape}")
        return input_shape

    def longest_sum(self, input_shape: Shape) -> int:
        """Over the channels around a number."""
        return min(self.size, input_shape[1])

    def forward(self, input: Array) -> tuple[Array, tuple[Array, Array, Array]]:
        """The output. Saved are the input, `base` and `base**-beta`."""
        self.output_shape(input.shape)
        base = self.k + self.alpha / self.size * self._over(input * input, self.size // 2, (self.size - 1) // 2)
        factor = base**-self.beta
        return input * factor, (input, base, factor)

    def backward(self, saved: tuple[Array, Array, Array], grad_output: Array) -> Array:
        """The gradient of the quotient, and what the number has in the neighbours' bases."""
        input, base, factor = saved
        self.check_gradient(grad_output, input.shape)
        own = grad_output * factor
        share = self._over(own * input / base, (self.size - 1) // 2, self.size // 2)
        grad_input: Array = own - 2 * self.alpha * self.beta / self.size * input * share
        return grad_input

    def _over(self, images: Array, before: int, behind: int) -> Array:
        """The sum over the channels from so many before each one to so many behind it."""
        total = images.copy()
        for distance in range(1, min(before, images.shape[1] - 1) + 1):
            total[:, distance:] += images[:, :-distance]
        for distance in range(1, min(behind, images.shape[1] - 1) + 1):
            total[:, :-distance] += images[:, distance:]
        return total
