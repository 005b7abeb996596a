"""Padding: a frame around images, of a constant or of numbers of the image."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from nn_manual.arrays import Array, Shape
from nn_manual.layers.base import Layer
from nn_manual.layers.windows import Sizes, along, check_images
from nn_manual.messages.text import counted

#: By the number of dimensions, different numbers for the sides, and shapes of inputs.
SIDES = {1: [1, 2], 2: [2, 0, 1, 1], 3: [1, 0, 0, 1, 1, 1]}
SHAPES: dict[int, Shape] = {1: (2, 2, 4), 2: (2, 1, 3, 4), 3: (1, 2, 2, 2, 3)}
SQUARE: dict[int, Shape] = {1: (3, 3, 3), 2: (1, 3, 3, 3), 3: (1, 1, 2, 2, 2)}


@dataclass(eq=False)
class Padding(Layer):
    """A frame around images of `num_dims` dimensions, input (batch, channels, *size).

    `padding` is one number for all sides, or two for each dimension, the last dimension first, as torch has them:
    [left, right, top, bottom, front, back].

        output     = the input, with the frame around it
        grad_input = the sum over all places in which a number stands, of grad_output

    Derivation: each place of the output has one number of the input, whose derivative is 1, or none. Raises ValueError
    for a padding out of range, an input of another shape or with too few numbers for the frame, and a gradient that is
    not shaped as the output.
    """

    num_dims: ClassVar[int]

    padding: Sizes

    def __post_init__(self) -> None:
        sides = [self.padding] * 2 * self.num_dims if isinstance(self.padding, int) else self.padding
        if len(sides) != 2 * self.num_dims:
            text = f"or a list of {2 * self.num_dims}, before and behind each dimension, the last dimension first"
            raise ValueError(f"padding is one number, {text}, not {self.padding}")
        if min(sides) < 0:
            raise ValueError(f"padding must be at least 0, not {self.padding}")
        #: How many numbers stand before and behind each dimension.
        self.sides = list(zip(sides[::2], sides[1::2], strict=True))[::-1]

    @classmethod
    def examples(cls) -> list[tuple[Layer, Shape]]:
        """One number for all sides, and one for each."""
        return [(cls(1), SQUARE[cls.num_dims]), (cls(SIDES[cls.num_dims]), SHAPES[cls.num_dims])]

    def output_shape(self, input_shape: Shape) -> Shape:
        """(batch, channels, *size with the frame)."""
        check_images(type(self).__name__, input_shape, self.num_dims)
        sizes = zip(input_shape[2:], self.sides, strict=True)
        return (*input_shape[:2], *(size + before + behind for size, (before, behind) in sizes))

    def forward(self, input: Array) -> tuple[Array, Shape]:
        """Saves the input's shape."""
        self.output_shape(input.shape)
        return self.around(input), input.shape

    def backward(self, saved: Shape, grad_output: Array) -> Array:
        """Each number gets the gradients of the places where it stands."""
        self.check_gradient(grad_output, self.output_shape(saved))
        return self.back(grad_output)

    @abstractmethod
    def around(self, input: Array) -> Array:
        """The images in their frame."""

    @abstractmethod
    def back(self, grad_output: Array) -> Array:
        """The gradient of the images."""


@dataclass(eq=False)
class ConstantPad(Padding):
    """A frame of the number `value`, which has no gradient."""

    value: float

    @classmethod
    def examples(cls) -> list[tuple[Layer, Shape]]:
        """One number for all sides, and one for each."""
        return [(cls(1, 0.5), SQUARE[cls.num_dims]), (cls(SIDES[cls.num_dims], -2.0), SHAPES[cls.num_dims])]

    def around(self, input: Array) -> Array:
        """As in every padding."""
        return framed(input, self.sides, self.value)

    def back(self, grad_output: Array) -> Array:
        """As in every padding."""
        return inside(grad_output, self.sides)


@dataclass(eq=False)
class ZeroPad(Padding):
    """A frame of zeros, which have no gradient."""

    def around(self, input: Array) -> Array:
        """As in every padding."""
        return framed(input, self.sides, 0)

    def back(self, grad_output: Array) -> Array:
        """As in every padding."""
        return inside(grad_output, self.sides)


def framed(images: Array, sides: list[tuple[int, int]], value: float) -> Array:
    """The images in a frame of one number."""
    sizes = (size + before + behind for size, (before, behind) in zip(images.shape[2:], sides, strict=True))
    output = np.full_like(images, value, shape=(*images.shape[:2], *sizes))
    inside(output, sides)[...] = images
    return output


def inside(images: Array, sides: list[tuple[int, int]]) -> Array:
    """The images without their frame, a view."""
    sizes = zip(images.shape[2:], sides, strict=True)
    return images[:, :, *(slice(before, size - behind) for size, (before, behind) in sizes)]


class FrameOfTheImage(Padding):
    """A frame of numbers of the image, one dimension after the other: so a corner has what both dimensions make of it.

    A subclass says which numbers these are. `verb` says it in a message.
    """

    verb: ClassVar[str]

    @abstractmethod
    def sources(self, size: int, before: int, behind: int) -> tuple[slice, slice]:
        """Which numbers along a dimension stand before and behind it: as many as there is room for, or one for all."""

    @abstractmethod
    def least(self, side: int) -> int:
        """How many numbers a dimension must have for a side of the frame."""

    def output_shape(self, input_shape: Shape) -> Shape:
        """As in every padding."""
        name, shape = type(self).__name__, super().output_shape(input_shape)
        if not input_shape[1]:
            raise ValueError(f"{name} takes images with channels, the input has shape {input_shape}")
        for axis, (size, both) in enumerate(zip(input_shape[2:], self.sides, strict=True), start=2):
            least = self.least(max(both))
            if size < least:
                needs = f"{name} {self.verb} at least {counted(least, 'number')} in dimension {axis}"
                raise ValueError(f"{needs}, the input has shape {input_shape}")
        return shape

    def around(self, input: Array) -> Array:
        """As in every padding."""
        for axis, (before, behind) in enumerate(self.sides, start=2):
            size = input.shape[axis]
            shape = (*input.shape[:axis], before + size + behind, *input.shape[axis + 1 :])
            output = np.empty_like(input, order="C", shape=shape)
            output[along(axis, slice(before, before + size))] = input
            for side, source in self._both(size, before, behind):
                output[along(axis, side)] = input[along(axis, source)]
            input = output
        return input

    def back(self, grad_output: Array) -> Array:
        """As in every padding."""
        for axis, (before, behind) in reversed([*enumerate(self.sides, start=2)]):
            size = grad_output.shape[axis] - before - behind
            grad_input = grad_output[along(axis, slice(before, before + size))].copy()
            for side, source in self._both(size, before, behind):
                part, own = grad_output[along(axis, side)], grad_input[along(axis, source)]
                own += part if own.shape == part.shape else part.sum(axis=axis, keepdims=True)
            grad_output = grad_input
        return grad_output

    def _both(self, size: int, before: int, behind: int) -> Iterator[tuple[slice, slice]]:
        """The sides that have a frame, and their sources."""
        sides = slice(0, before), slice(before + size, before + size + behind)
        for side, source in zip(sides, self.sources(size, before, behind), strict=True):
            if side.stop > side.start:
                yield side, source


@dataclass(eq=False)
class ReflectionPad(FrameOfTheImage):
    """The image, mirrored at its outermost numbers, which don't stand there twice."""

    verb = "mirrors"

    def least(self, side: int) -> int:
        """One more than the mirrored ones."""
        return side + 1

    def sources(self, size: int, before: int, behind: int) -> tuple[slice, slice]:
        """Backwards from the outermost."""
        last = size - 2 - behind
        return slice(before, 0, -1), slice(size - 2, last if last >= 0 else None, -1)


@dataclass(eq=False)
class ReplicationPad(FrameOfTheImage):
    """The outermost number, again and again."""

    verb = "repeats"

    def least(self, side: int) -> int:  # noqa: ARG002 - whatever the side
        """The one that stands there."""
        return 1

    def sources(self, size: int, before: int, behind: int) -> tuple[slice, slice]:  # noqa: ARG002 - as above
        """The outermost."""
        return slice(0, 1), slice(size - 1, size)


@dataclass(eq=False)
class CircularPad(FrameOfTheImage):
    """The image, as if it went on from its beginning behind its end."""

    verb = "takes round"

    def least(self, side: int) -> int:
        """Those that stand there: no number stands twice in one side."""
        return side

    def sources(self, size: int, before: int, behind: int) -> tuple[slice, slice]:
        """From the other end."""
        return slice(size - before, size), slice(0, behind)
