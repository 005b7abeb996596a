"""What stands in a frame around images: a constant, or numbers of the image. For padding layers and for convolution."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence

import numpy as np

from nn_manual.arrays import Array, Shape
from nn_manual.messages.text import counted

#: How many numbers of the frame stand before and behind the image, in each dimension.
Sides = Sequence[tuple[int, int]]


class Frame(ABC):
    """A frame around images (batch, channels, *size)."""

    @abstractmethod
    def check(self, name: str, input_shape: Shape, sides: Sides) -> None:
        """Raise ValueError where the image has too few numbers for the frame; `name` is the layer's."""

    @abstractmethod
    def around(self, input: Array, sides: Sides) -> Array:
        """The images in their frame."""

    @abstractmethod
    def back(self, grad_output: Array, sides: Sides) -> Array:
        """The gradient of the images."""


class ConstantFrame(Frame):
    """A frame of one number, which has no gradient."""

    def __init__(self, value: float) -> None:
        self.value = value

    def check(self, name: str, input_shape: Shape, sides: Sides) -> None:
        """It needs no numbers."""

    def around(self, input: Array, sides: Sides) -> Array:
        """As in every frame."""
        sizes = (size + before + behind for size, (before, behind) in zip(input.shape[2:], sides, strict=True))
        output = np.full_like(input, self.value, shape=(*input.shape[:2], *sizes))
        self._inside(output, sides)[...] = input
        return output

    def back(self, grad_output: Array, sides: Sides) -> Array:
        """As in every frame."""
        return self._inside(grad_output, sides)

    @staticmethod
    def _inside(images: Array, sides: Sides) -> Array:
        sizes = zip(images.shape[2:], sides, strict=True)
        return images[:, :, *(slice(before, size - behind) for size, (before, behind) in sizes)]


class FrameOfTheImage(Frame):
    """A frame of numbers of the image, one dimension after the other: so a corner has what both dimensions make of it.
    """

    @abstractmethod
    def sources(self, size: int, before: int, behind: int) -> tuple[slice, slice]:
        """Which numbers along a dimension stand before and behind it: as many as there is room for, or one for all."""

    @abstractmethod
    def least(self, side: int) -> int:
        """How many numbers a dimension must have for a side of the frame."""

    @property
    @abstractmethod
    def verb(self) -> str:
        """What the frame does with the image, in a message."""

    def check(self, name: str, input_shape: Shape, sides: Sides) -> None:
        """As in every frame."""
        if not input_shape[1]:
            raise ValueError(f"{name} takes images with channels, the input has shape {input_shape}")
        for axis, (size, both) in enumerate(zip(input_shape[2:], sides, strict=True), start=2):
            least = self.least(max(both))
            if size < least:
                needs = f"{name} {self.verb} at least {counted(least, 'number')} in dimension {axis}"
                raise ValueError(f"{needs}, the input has shape {input_shape}")

    def around(self, input: Array, sides: Sides) -> Array:
        """As in every frame."""
        for axis, (before, behind) in enumerate(sides, start=2):
            size = input.shape[axis]
            shape = (*input.shape[:axis], before + size + behind, *input.shape[axis + 1 :])
            output = np.empty_like(input, order="C", shape=shape)
            output[_along(axis, slice(before, before + size))] = input
            for side, source in self._both(size, before, behind):
                output[_along(axis, side)] = input[_along(axis, source)]
            input = output
        return input

    def back(self, grad_output: Array, sides: Sides) -> Array:
        """As in every frame."""
        for axis, (before, behind) in reversed([*enumerate(sides, start=2)]):
            size = grad_output.shape[axis] - before - behind
            grad_input = grad_output[_along(axis, slice(before, before + size))].copy()
            for side, source in self._both(size, before, behind):
                part, own = grad_output[_along(axis, side)], grad_input[_along(axis, source)]
                own += part if own.shape == part.shape else part.sum(axis=axis, keepdims=True)
            grad_output = grad_input
        return grad_output

    def _both(self, size: int, before: int, behind: int) -> Iterator[tuple[slice, slice]]:
        """The sides that have a frame, and their sources."""
        sides = slice(0, before), slice(before + size, before + size + behind)
        for side, source in zip(sides, self.sources(size, before, behind), strict=True):
            if side.stop > side.start:
                yield side, source


class ReflectionFrame(FrameOfTheImage):
    """The image, mirrored at its outermost numbers, which don't stand there twice."""

    verb = "mirrors"

    def least(self, side: int) -> int:
        """One more than the mirrored ones."""
        return side + 1

    def sources(self, size: int, before: int, behind: int) -> tuple[slice, slice]:
        """Backwards from the outermost."""
        last = size - 2 - behind
        return slice(before, 0, -1), slice(size - 2, last if last >= 0 else None, -1)


class ReplicationFrame(FrameOfTheImage):
    """The outermost number, again and again."""

    verb = "repeats"

    def least(self, side: int) -> int:  # noqa: ARG002 - whatever the side
        """The one that stands there."""
        return 1

    def sources(self, size: int, before: int, behind: int) -> tuple[slice, slice]:  # noqa: ARG002 - as above
        """The outermost."""
        return slice(0, 1), slice(size - 1, size)


class CircularFrame(FrameOfTheImage):
    """The image, as if it went on from its beginning behind its end."""

    verb = "takes round"

    def least(self, side: int) -> int:
        """Those that stand there: no number stands twice in one side."""
        return side

    def sources(self, size: int, before: int, behind: int) -> tuple[slice, slice]:
        """From the other end."""
        return slice(size - before, size), slice(0, behind)


#: By torch's name for the mode of a padding.
FRAMES: dict[str, Frame] = {
    "zeros": ConstantFrame(0),
    "reflect": ReflectionFrame(),
    "replicate": ReplicationFrame(),
    "circular": CircularFrame(),
}


def _along(axis: int, part: slice) -> tuple[slice, ...]:
    """The index of a part along an axis."""
    return (*[slice(None)] * axis, part)
