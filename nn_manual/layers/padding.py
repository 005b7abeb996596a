"""Padding: a frame around images, of a constant or of numbers of the image."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from nn_manual.arrays import Array, Shape
from nn_manual.layers.base import Layer
from nn_manual.layers.frames import FRAMES, ConstantFrame, Frame
from nn_manual.layers.windows import Sizes, check_images

#: By the number of dimensions, different numbers for the sides, and shapes of inputs.
SIDES = {1: [1, 2], 2: [2, 0, 1, 1], 3: [1, 0, 0, 1, 1, 1]}
SHAPES: dict[int, Shape] = {1: (2, 2, 4), 2: (2, 1, 3, 4), 3: (1, 2, 2, 2, 3)}
SQUARE: dict[int, Shape] = {1: (3, 3, 3), 2: (1, 3, 3, 3), 3: (1, 1, 2, 2, 2)}


class Padding(Layer):
    """A frame around images of `num_dims` dimensions, input (batch, channels, *size).

    `padding` is one number for all sides, or two for each dimension, the last dimension first, as torch has them:
    [left, right, top, bottom, front, back]. `frame` says what stands in the frame.
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
        #: What stands before and behind each dimension.
        self.sides = list(zip(sides[::2], sides[1::2], strict=True))[::-1]

    @property
    @abstractmethod
    def frame(self) -> Frame:
        """What stands in the frame."""

    def output_shape(self, input_shape: Shape) -> Shape:
        """(batch, channels, *size with the frame)."""
        name = type(self).__name__
        check_images(name, input_shape, self.num_dims)
        self.frame.check(name, input_shape, self.sides)
        sizes = zip(input_shape[2:], self.sides, strict=True)
        return (*input_shape[:2], *(size + before + behind for size, (before, behind) in sizes))

    def forward(self, input: Array) -> tuple[Array, Shape]:
        """Saves the input's shape."""
        self.output_shape(input.shape)
        return self.frame.around(input, self.sides), input.shape

    def backward(self, saved: Shape, grad_output: Array) -> Array:
        """Each number gets the gradients of the places where it stands."""
        self.check_gradient(grad_output, self.output_shape(saved))
        return self.frame.back(grad_output, self.sides)


@dataclass(eq=False)
class ConstantPad(Padding):
    """A frame of the number `value`.

        output     = the input, with the number around it
        grad_input = grad_output without the frame

    Derivation: each number of the input stands in one place of the output; the others don't depend on it. Raises
    ValueError for a padding out of range, an input of another shape, and a gradient that is not shaped as the output.
    """

    padding: Sizes
    value: float

    @classmethod
    def examples(cls) -> list[tuple[Layer, Shape]]:
        """One number for all sides, and one for each."""
        n = cls.num_dims
        return [(cls(1, 0.5), SQUARE[n]), (cls(SIDES[n], -2.0), SHAPES[n])]

    @property
    def frame(self) -> Frame:
        """Of the number."""
        return ConstantFrame(self.value)


@dataclass(eq=False)
class PaddingByMode(Padding):
    """A frame of zeros, or of numbers of the image, as `mode` says.

        output     = the input, with the frame around it
        grad_input = the sum over all places in which a number stands, of grad_output

    Derivation: each place of the output has one number of the input, or none: its derivative is 1. Raises ValueError
    for a padding out of range, an input of another shape or with too few numbers for the frame, and a gradient that is
    not shaped as the output.
    """

    mode: ClassVar[str]

    padding: Sizes

    @classmethod
    def examples(cls) -> list[tuple[Layer, Shape]]:
        """One number for all sides, and one for each."""
        return [(cls(1), SQUARE[cls.num_dims]), (cls(SIDES[cls.num_dims]), SHAPES[cls.num_dims])]

    @property
    def frame(self) -> Frame:
        """Of the class's mode."""
        return FRAMES[self.mode]


@dataclass(eq=False)
class ConstantPad1d(ConstantPad):
    """A frame of one number around sequences, input (batch, channels, length)."""

    num_dims = 1


@dataclass(eq=False)
class ConstantPad2d(ConstantPad):
    """A frame of one number around images, input (batch, channels, height, width)."""

    num_dims = 2


@dataclass(eq=False)
class ConstantPad3d(ConstantPad):
    """A frame of one number around volumes, input (batch, channels, depth, height, width)."""

    num_dims = 3


@dataclass(eq=False)
class ZeroPad1d(PaddingByMode):
    """A frame of zeros around sequences, input (batch, channels, length)."""

    num_dims, mode = 1, "zeros"


@dataclass(eq=False)
class ZeroPad2d(PaddingByMode):
    """A frame of zeros around images, input (batch, channels, height, width)."""

    num_dims, mode = 2, "zeros"


@dataclass(eq=False)
class ZeroPad3d(PaddingByMode):
    """A frame of zeros around volumes, input (batch, channels, depth, height, width)."""

    num_dims, mode = 3, "zeros"


@dataclass(eq=False)
class ReflectionPad1d(PaddingByMode):
    """A frame of mirrored numbers around sequences, input (batch, channels, length)."""

    num_dims, mode = 1, "reflect"


@dataclass(eq=False)
class ReflectionPad2d(PaddingByMode):
    """A frame of mirrored numbers around images, input (batch, channels, height, width)."""

    num_dims, mode = 2, "reflect"


@dataclass(eq=False)
class ReflectionPad3d(PaddingByMode):
    """A frame of mirrored numbers around volumes, input (batch, channels, depth, height, width)."""

    num_dims, mode = 3, "reflect"


@dataclass(eq=False)
class ReplicationPad1d(PaddingByMode):
    """A frame of the outermost numbers around sequences, input (batch, channels, length)."""

    num_dims, mode = 1, "replicate"


@dataclass(eq=False)
class ReplicationPad2d(PaddingByMode):
    """A frame of the outermost numbers around images, input (batch, channels, height, width)."""

    num_dims, mode = 2, "replicate"


@dataclass(eq=False)
class ReplicationPad3d(PaddingByMode):
    """A frame of the outermost numbers around volumes, input (batch, channels, depth, height, width)."""

    num_dims, mode = 3, "replicate"


@dataclass(eq=False)
class CircularPad1d(PaddingByMode):
    """A frame of the numbers at the other end around sequences, input (batch, channels, length)."""

    num_dims, mode = 1, "circular"


@dataclass(eq=False)
class CircularPad2d(PaddingByMode):
    """A frame of the numbers at the other end around images, input (batch, channels, height, width)."""

    num_dims, mode = 2, "circular"


@dataclass(eq=False)
class CircularPad3d(PaddingByMode):
    """A frame of the numbers at the other end around volumes, input (batch, channels, depth, height, width)."""

    num_dims, mode = 3, "circular"
