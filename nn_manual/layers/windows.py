"""The windows of an image that a kernel sees, for convolution and pooling, in one, two and three dimensions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

import numpy as np

from nn_manual.arrays import Array, Shape

#: One number for all dimensions of an image, or one for each.
Sizes: TypeAlias = int | list[int]
Size = TypeVar("Size")


def of_each(value: int | Sequence[Size], num_dims: int) -> tuple[int | Size, ...]:
    """The setting's number for each dimension."""
    return (value,) * num_dims if isinstance(value, int) else tuple(value)


def names_of(num_dims: int) -> str:
    """What the dimensions of an image are called: "height, width"."""
    return "length" if num_dims == 1 else ", ".join(("depth", "height", "width")[-num_dims:])


def check_sizes(name: str, value: int | Sequence[int | None], num_dims: int, least: int) -> None:
    """Raise ValueError unless the setting is one number, or one for each dimension, each None or at least `least`."""
    sizes = of_each(value, num_dims)
    if len(sizes) != num_dims:
        raise ValueError(f"{name} is one number, or a list of {num_dims} for {names_of(num_dims)}, not {value}")
    if any(size is not None and size < least for size in sizes):
        raise ValueError(f"{name} must be at least {least}, not {value}")


def check_images(name: str, input_shape: Shape, num_dims: int, channels: str = "channels") -> None:
    """Raise ValueError unless the shape is (batch, channels, ...), with so many dimensions behind. `name` is the
    layer's, and `channels` says which it takes.
    """
    if len(input_shape) != 2 + num_dims:
        raise ValueError(f"{name} takes (batch, {channels}, {names_of(num_dims)}), the input has shape {input_shape}")


def along(axis: int, part: slice) -> tuple[slice, ...]:
    """The index of a part along an axis."""
    return (*[slice(None)] * axis, part)


@dataclass
class Windows:
    """Windows of `kernel_size` numbers that are `dilation` apart. The windows are `stride` apart, in an image of
    `num_dims` dimensions with a frame of `padding`. With `ceil_mode`, the last window may reach beyond the frame, if it
    begins before the frame's end. Raises ValueError for sizes out of range.
    """

    num_dims: int
    kernel_size: Sizes
    stride: Sizes
    padding: Sizes
    dilation: Sizes = 1
    ceil_mode: bool = False

    def __post_init__(self) -> None:
        for name, least in (("kernel_size", 1), ("stride", 1), ("padding", 0), ("dilation", 1)):
            check_sizes(name, getattr(self, name), self.num_dims, least)
        self._kernel, self._strides, self._frame, self._steps = (
            of_each(value, self.num_dims) for value in (self.kernel_size, self.stride, self.padding, self.dilation)
        )

    @property
    def kernel(self) -> Shape:
        """kernel_size in each dimension."""
        return self._kernel

    def output_size(self, name: str, input_shape: Shape) -> Shape:
        """How many windows there are along each dimension. Raises ValueError if none fits into the image; `name` is the
        layer's.
        """
        sizes = []
        for axis, kernel, stride, padding, dilation in self._by_axis():
            room = input_shape[2 + axis] + 2 * padding - dilation * (kernel - 1) - 1
            count = room // stride + 1
            if self.ceil_mode and room % stride and count * stride < input_shape[2 + axis] + padding:
                count += 1
            if count < 1:
                raise ValueError(
                    f"{name} has windows of {dilation * (kernel - 1) + 1} in dimension {2 + axis}, "
                    f"the input has shape {input_shape} and a padding of {padding}"
                )
            sizes.append(count)
        return tuple(sizes)

    def image_size(self, name: str, places_shape: Shape, extra: Sequence[int]) -> Shape:
        """The size of an image in which there are so many windows along each dimension, with `extra` numbers at its
        end. Raises ValueError where there would be no number; `name` is the layer's.
        """
        sizes = []
        for (axis, kernel, stride, padding, dilation), more in zip(self._by_axis(), extra, strict=True):
            sizes.append((places_shape[2 + axis] - 1) * stride - 2 * padding + dilation * (kernel - 1) + more + 1)
            if sizes[-1] < 1:
                raise ValueError(
                    f"{name} would make {sizes[-1]} numbers in dimension {2 + axis}: the input has shape "
                    f"{places_shape}, kernel_size is {kernel}, stride {stride} and padding {padding}"
                )
        return tuple(sizes)

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

    def counts(self, image_size: Shape, num_windows: Shape, dtype: np.dtype[np.generic]) -> Array:
        """How many numbers of each window lie in an image of this size."""
        count: Array = np.sum(list(self.of(np.ones((1, 1, *image_size), dtype), num_windows)), axis=0)[0, 0]
        return count

    def first_inside(self, num_windows: Shape) -> Array:
        """The number, row by row, of the first place of each window that isn't in the frame before the image: 0 for all
        where there is none.
        """
        if not any(self._frame):
            return np.zeros((), np.intp)
        number: Array = np.zeros(num_windows, np.intp)
        for axis, kernel, stride, padding, dilation in self._by_axis():
            start = np.minimum(np.arange(num_windows[axis]) * stride - padding, 0)
            across = start.reshape(-1, *[1] * (self.num_dims - 1 - axis))
            number = number * kernel - across // dilation  # rounded up, since it is negative
        return number

    def most_windows(self, name: str, input_shape: Shape) -> int:
        """The largest number of windows that contain the same number of the image. `name` is the layer's."""
        most = 1
        for axis in range(self.num_dims):
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

    def of(self, image: Array, num_windows: Shape, outside: float = 0) -> Iterator[Array]:
        """For each place in the window, row by row, the numbers of the first `num_windows` windows along each dimension
        there: (batch, channels, *num_windows). The frame holds the number `outside`.
        """
        padded = self._framed(image, image.shape, num_windows, outside)
        self._inside(padded, image.shape[2:])[...] = image
        return self._views(padded, num_windows)

    def back(self, parts: Iterable[Array], image_size: Shape) -> Array:
        """The sum of `parts`, one for each place in the window, as an image: each is added where `of` takes it from."""
        parts = list(parts)
        num_windows = parts[0].shape[2:]
        padded = self._framed(parts[0], (*parts[0].shape[:2], *image_size), num_windows, 0)
        for view, part in zip(self._views(padded, num_windows), parts, strict=True):
            view += part
        return self._inside(padded, image_size)

    def _by_axis(self) -> Iterator[tuple[int, int, int, int, int]]:
        settings = zip(self._kernel, self._strides, self._frame, self._steps, strict=True)
        return ((axis, *of_axis) for axis, of_axis in enumerate(settings))

    def _framed(self, like: Array, shape: Shape, num_windows: Shape, outside: float) -> Array:
        """The frame with room for an image of this shape, and for the windows that reach beyond it."""
        sizes = []
        for axis, kernel, stride, padding, dilation in self._by_axis():
            last = (num_windows[axis] - 1) * stride + dilation * (kernel - 1)
            sizes.append(max(shape[2 + axis] + 2 * padding, last + 1))
        return np.full_like(like, outside, shape=(*shape[:2], *sizes))

    def _inside(self, padded: Array, size: Shape) -> Array:
        return padded[:, :, *(slice(frame, frame + own) for frame, own in zip(self._frame, size, strict=True))]

    def _views(self, padded: Array, num_windows: Shape) -> Iterator[Array]:
        for place in np.ndindex(self._kernel):
            yield padded[:, :, *map(_steps_of, place, num_windows, self._strides, self._steps)]


def _steps_of(place: int, num_windows: int, stride: int, dilation: int) -> slice:
    """The indices that this place has in all windows, along one axis."""
    start = place * dilation
    return slice(start, start + (num_windows - 1) * stride + 1, stride)
