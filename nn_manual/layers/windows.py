"""The windows of an image that a kernel sees, for convolution and pooling."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from nn_manual.arrays import Array, Shape

#: One number for height and width, or one for each.
Pair: TypeAlias = int | list[int]


def pair(value: Pair) -> tuple[int, int]:
    """Height and width."""
    return (value, value) if isinstance(value, int) else (value[0], value[1])


def check_pair(name: str, value: int | Sequence[int | None], least: int) -> None:
    """Raise ValueError unless the setting is one or two numbers, each None or at least `least`."""
    sizes = [value] * 2 if isinstance(value, int) else value
    if len(sizes) != 2:
        raise ValueError(f"{name} is one number, or two for height and width, not {value}")
    if any(size is not None and size < least for size in sizes):
        raise ValueError(f"{name} must be at least {least}, not {value}")


@dataclass
class Windows:
    """Windows of `kernel_size` numbers that are `dilation` apart. The windows are `stride` apart, in an image with a
    frame of `padding`. Raises ValueError for sizes out of range.
    """

    kernel_size: Pair
    stride: Pair
    padding: Pair
    dilation: Pair = 1

    def __post_init__(self) -> None:
        for name, least in (("kernel_size", 1), ("stride", 1), ("padding", 0), ("dilation", 1)):
            check_pair(name, getattr(self, name), least)

    def output_size(self, name: str, input_shape: Shape) -> tuple[int, int]:
        """How many windows there are from top to bottom, and from left to right. Raises ValueError if none fits into
        the image; `name` is the layer's.
        """
        sizes = []
        for axis, kernel, stride, padding, dilation in self._by_axis():
            room = input_shape[2 + axis] + 2 * padding - dilation * (kernel - 1) - 1
            if room < 0:
                raise ValueError(
                    f"{name} has windows of {dilation * (kernel - 1) + 1} in dimension {2 + axis}, "
                    f"the input has shape {input_shape} and a padding of {padding}"
                )
            sizes.append(room // stride + 1)
        return sizes[0], sizes[1]

    def check_none_outside(self, name: str, input_shape: Shape) -> None:
        """Raise ValueError if a window has numbers of the frame only, which dilation makes possible. `name` is the
        layer's.
        """
        for axis, kernel, _, padding, dilation in self._by_axis():
            places = self._places(name, input_shape, axis)
            if not ((places >= 0) & (places < input_shape[2 + axis])).any(axis=1).all():
                raise ValueError(
                    f"{name} has windows that lie in the padding alone in dimension {2 + axis}: the input has shape "
                    f"{input_shape}, kernel_size is {kernel}, dilation {dilation} and padding {padding}"
                )

    def most_windows(self, name: str, input_shape: Shape) -> int:
        """The largest number of windows that contain the same number of the image. `name` is the layer's."""
        most = 1
        for axis in (0, 1):
            places = self._places(name, input_shape, axis)
            inside = places[(places >= 0) & (places < input_shape[2 + axis])]
            most *= int(np.bincount(inside).max(initial=0))
        return most

    def _places(self, name: str, input_shape: Shape, axis: int) -> Array:
        """The indices of the windows' numbers along an axis of the image, (windows, numbers of a window)."""
        _, kernel, stride, padding, dilation = list(self._by_axis())[axis]
        first = np.arange(self.output_size(name, input_shape)[axis])[:, np.newaxis] * stride - padding
        places: Array = first + np.arange(kernel) * dilation
        return places

    def of(self, input: Array, outside: float = 0) -> Iterator[Array]:
        """For each place in the window, row by row, the numbers of all windows there: (batch, channels, *output_size).
        The frame holds the number `outside`.
        """
        padded = self._framed(input, input.shape, outside)
        self._inside(padded)[...] = input
        return self._views(padded, self.output_size("", input.shape))

    def back(self, parts: Iterable[Array], image_size: Shape) -> Array:
        """The sum of `parts`, one for each place in the window, as an image: each is added where `of` takes it from."""
        parts = list(parts)
        shape = (*parts[0].shape[:2], *image_size)
        padded = self._framed(parts[0], shape, 0)
        for view, part in zip(self._views(padded, self.output_size("", shape)), parts, strict=True):
            view += part
        return self._inside(padded)

    def _by_axis(self) -> Iterator[tuple[int, int, int, int, int]]:
        settings = zip(*map(pair, (self.kernel_size, self.stride, self.padding, self.dilation)), strict=True)
        return ((axis, *of_axis) for axis, of_axis in enumerate(settings))

    def _framed(self, like: Array, shape: Shape, outside: float) -> Array:
        top, left = pair(self.padding)
        return np.full_like(like, outside, shape=(*shape[:2], shape[2] + 2 * top, shape[3] + 2 * left))

    def _inside(self, padded: Array) -> Array:
        top, left = pair(self.padding)
        return padded[:, :, top : padded.shape[2] - top, left : padded.shape[3] - left]

    def _views(self, padded: Array, output_size: tuple[int, int]) -> Iterator[Array]:
        (_, height, *_), (_, width, *_) = self._by_axis()
        for place in np.ndindex(height, width):
            yield padded[:, :, *map(_steps, place, output_size, pair(self.stride), pair(self.dilation))]


def _steps(place: int, num_windows: int, stride: int, dilation: int) -> slice:
    """The indices that this place has in all windows, along one axis."""
    start = place * dilation
    return slice(start, start + (num_windows - 1) * stride + 1, stride)
