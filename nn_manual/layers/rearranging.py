"""Layers that move numbers to other places: each gradient goes back to its number's place."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any

from nn_manual.arrays import Array, Shape
from nn_manual.layers.base import Layer


class Rearranging(Layer):
    """A layer whose output has the numbers of its input in another order: `moved` says in which, `moved_back` undoes
    it.
    """

    @abstractmethod
    def moved(self, input: Array) -> Array:
        """The numbers of the input at their new places."""

    @abstractmethod
    def moved_back(self, grad_output: Array) -> Array:
        """The gradient of each number at its place in the input."""

    def forward(self, input: Array) -> tuple[Array, Shape]:
        """Saves the input's shape."""
        self.output_shape(input.shape)
        return self.moved(input), input.shape

    def backward(self, saved: Shape, grad_output: Array) -> Array:
        """The gradients at the places of their numbers."""
        self.check_gradient(grad_output, self.output_shape(saved))
        return self.moved_back(grad_output)


def to_space(images: Array, factor: int) -> Array:
    """(batch, channels factor**2, height, width) to (batch, channels, height factor, width factor): the pixel at
    (h factor + i, w factor + j) of channel c is that at (h, w) of channel c factor**2 + i factor + j.
    """
    batch, channels, height, width = images.shape
    parts = images.reshape(batch, channels // factor**2, factor, factor, height, width)
    return parts.transpose(0, 1, 4, 2, 5, 3).reshape(batch, channels // factor**2, height * factor, width * factor)


def to_channels(images: Array, factor: int) -> Array:
    """The inverse of `to_space`."""
    batch, channels, height, width = images.shape
    parts = images.reshape(batch, channels, height // factor, factor, width // factor, factor)
    return parts.transpose(0, 1, 3, 5, 2, 4).reshape(batch, channels * factor**2, height // factor, width // factor)


def _check_factor(name: str, factor: int) -> None:
    if factor < 1:
        raise ValueError(f"{name} must be at least 1, not {factor}")


@dataclass(eq=False)
class PixelShuffle(Rearranging):
    """Channels become pixels, input (batch, channels factor**2, height, width) to (batch, channels, height factor,
    width factor), where factor is `upscale_factor`.

        output     = to_space(input, upscale_factor)
        grad_input = to_channels(grad_output, upscale_factor)

    `to_space` puts number (c factor**2 + i factor + j, h, w) to (c, h factor + i, w factor + j), and `to_channels` puts
    it back. Derivation: each number of the output is one of the input, and so is its gradient. Source: Shi et al.,
    2016. Raises ValueError for a factor below 1, an input of another shape or whose channels factor**2 doesn't divide,
    and a gradient that is not shaped as the output.
    """

    upscale_factor: int

    def __post_init__(self) -> None:
        _check_factor("upscale_factor", self.upscale_factor)

    @classmethod
    def examples(cls) -> list[tuple[Layer, Shape]]:
        """Two factors."""
        return [(cls(2), (2, 8, 2, 3)), (cls(1), (2, 3, 3, 3)), (cls(3), (1, 9, 1, 2))]

    def output_shape(self, input_shape: Shape) -> Shape:
        """(batch, channels, height factor, width factor)."""
        factor = self.upscale_factor
        if len(input_shape) != 4 or input_shape[1] % factor**2:
            raise ValueError(
                f"PixelShuffle takes (batch, a multiple of {factor**2} channels, height, width), the input has shape "
                f"{input_shape}"
            )
        batch, channels, height, width = input_shape
        return batch, channels // factor**2, height * factor, width * factor

    def moved(self, input: Array) -> Array:
        """to_space."""
        return to_space(input, self.upscale_factor)

    def moved_back(self, grad_output: Array) -> Array:
        """to_channels."""
        return to_channels(grad_output, self.upscale_factor)


@dataclass(eq=False)
class PixelUnshuffle(Rearranging):
    """Pixels become channels, input (batch, channels, height, width) to (batch, channels factor**2, height / factor,
    width / factor), where factor is `downscale_factor`.

        output     = to_channels(input, downscale_factor)
        grad_input = to_space(grad_output, downscale_factor)

    Derivation: as for PixelShuffle, which is the inverse. Raises ValueError for a factor below 1, an input of another
    shape or whose height and width the factor doesn't divide, and a gradient that is not shaped as the output.
    """

    downscale_factor: int

    def __post_init__(self) -> None:
        _check_factor("downscale_factor", self.downscale_factor)

    @classmethod
    def examples(cls) -> list[tuple[Layer, Shape]]:
        """Two factors."""
        return [(cls(2), (2, 2, 4, 6)), (cls(1), (2, 3, 3, 3)), (cls(3), (1, 1, 3, 6))]

    def output_shape(self, input_shape: Shape) -> Shape:
        """(batch, channels factor**2, height / factor, width / factor)."""
        factor = self.downscale_factor
        if len(input_shape) != 4 or input_shape[2] % factor or input_shape[3] % factor:
            raise ValueError(
                f"PixelUnshuffle takes (batch, channels, height, width) with sizes that {factor} divides, the input "
                f"has shape {input_shape}"
            )
        batch, channels, height, width = input_shape
        return batch, channels * factor**2, height // factor, width // factor

    def moved(self, input: Array) -> Array:
        """to_channels."""
        return to_channels(input, self.downscale_factor)

    def moved_back(self, grad_output: Array) -> Array:
        """to_space."""
        return to_space(grad_output, self.downscale_factor)


@dataclass(eq=False)
class ChannelShuffle(Rearranging):
    """The channels of `groups` groups mixed, input (batch, channels, ...) to output of the same shape: the first of
    each group, then the second of each, and so on.

        output     = shuffled(input, groups)
        grad_input = shuffled(grad_output, channels // groups)

    `shuffled(x, n)` takes the channels as a matrix of n rows, row by row, and reads it column by column. Derivation:
    each number of the output is one of the input, and so is its gradient; to read a transposed matrix column by column
    undoes it. Source: Zhang et al., 2018. Raises ValueError for groups below 1, an input without channels or whose
    channels the groups don't divide, and a gradient that is not shaped as the output.
    """

    groups: int

    def __post_init__(self) -> None:
        _check_factor("groups", self.groups)

    @classmethod
    def examples(cls) -> list[tuple[Layer, Shape]]:
        """Two and three groups, and images."""
        return [(cls(2), (3, 6, 2)), (cls(3), (2, 6, 2, 3)), (cls(3), (3, 3, 3))]

    def output_shape(self, input_shape: Shape) -> Shape:
        """The input's shape."""
        if len(input_shape) < 3 or input_shape[1] % self.groups:
            raise ValueError(
                f"ChannelShuffle takes (batch, a multiple of {self.groups} channels, ...), the input has shape "
                f"{input_shape}"
            )
        return input_shape

    def moved(self, input: Array) -> Array:
        """From rows to columns."""
        return _shuffled(input, self.groups)

    def moved_back(self, grad_output: Array) -> Array:
        """From columns to rows."""
        return _shuffled(grad_output, grad_output.shape[1] // self.groups)


def _shuffled(images: Array, num_rows: int) -> Array:
    batch, channels, *size = images.shape
    matrix = images.reshape(batch, num_rows, channels // max(num_rows, 1), *size)
    return matrix.swapaxes(1, 2).reshape(images.shape)


@dataclass(eq=False)
class Permute(Rearranging):
    """The dimensions in another order: dimension d of the output is dimension `dims[d]` of the input. Dimension 0 is
    the batch, and stays the first. A `dims` below 0 counts from the last dimension. The class is torchvision's.

        output     = input.transpose(dims)
        grad_input = grad_output.transpose(places)

    `places[d]` is where dimension d of the input stands in the output: dims[places[d]] = d. Derivation: each number of
    the output is one of the input, and so is its gradient. Raises ValueError for dims that aren't each dimension once,
    or don't begin with 0, an input with another number of dimensions, and a gradient that is not shaped as the output.
    """

    dims: list[int]

    def __post_init__(self) -> None:
        num_dims = len(self.dims)
        from_0 = [dim + num_dims if dim < 0 else dim for dim in self.dims]
        if sorted(from_0) != list(range(num_dims)) or from_0[:1] != [0]:
            raise ValueError(f"dims must be 0, which is the batch, and then each other dimension once, not {self.dims}")

    @classmethod
    def examples(cls) -> list[tuple[Layer, Shape]]:
        """Channels last, an order of three that isn't its own inverse, counted from both ends, and no change."""
        return [(cls([0, 2, 1]), (3, 2, 4)), (cls([0, 2, -1, 1]), (2, 3, 2, 4)), (cls([0, 1]), (3, 4))]

    def output_shape(self, input_shape: Shape) -> Shape:
        """The input's sizes in the order of dims."""
        if len(input_shape) != len(self.dims):
            raise ValueError(f"Permute takes {len(self.dims)} dimensions, the input has shape {input_shape}")
        return tuple(input_shape[dim] for dim in self.dims)

    def moved(self, input: Array) -> Array:
        """The dimensions in the order of dims."""
        return input.transpose(self.dims)

    def moved_back(self, grad_output: Array) -> Array:
        """The dimensions in the input's order."""
        num_dims = len(self.dims)
        from_0 = [dim % num_dims for dim in self.dims]
        return grad_output.transpose([from_0.index(dim) for dim in range(num_dims)])

    def reference(self, input: Any) -> Any:
        """The same on torch tensors."""
        return input.permute(self.dims)
