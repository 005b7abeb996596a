"""A linear map of the window at each place of an image, which convolution applies in one direction or the other."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Iterator
from typing import ClassVar

import numpy as np

from nn_manual.arrays import Array, Shape
from nn_manual.layers.base import Layer
from nn_manual.layers.windows import Sizes, Windows, check_images

#: At most so many numbers of columns are in memory at a time, or those of one example: 1 MB of float32 stays in the
#: cache.
NUM_COLUMNS = 1 << 18


class WindowedMap(Layer):
    """A layer with one weight for all windows of an image of `num_dims` dimensions, and a bias for each channel:

        places      = weight @ columns(image)
        image       = back(weight.mT @ places)
        grad_weight = (places @ columns(image).mT).sum(axis=0)

    The first line is a linear map from an image (batch, image_channels, *size) to places (batch, place_channels,
    *num_windows). The second is its transpose: it takes a gradient of the places back to the image. The third is the
    gradient of the weight, from an image and a gradient of its places, or the other way round.

    `columns` has one column for each window, with the numbers there: (batch, groups, image_channels / groups * kernel,
    windows). `back` adds each number of such a column to the place in the image that it came from. The weight,
    (place_channels, image_channels / groups, *kernel_size), is shaped (groups, place_channels / groups, image_channels
    / groups * kernel) for the products, and places (batch, groups, place_channels / groups, windows).
    """

    num_dims: ClassVar[int]

    in_channels: int
    out_channels: int
    kernel_size: Sizes
    stride: Sizes
    dilation: Sizes
    groups: int
    bias: bool

    def __post_init__(self) -> None:
        for name in ("in_channels", "out_channels", "groups"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, not {getattr(self, name)}")
        for name in ("in_channels", "out_channels"):
            if getattr(self, name) % self.groups:
                raise ValueError(f"groups must divide {name}={getattr(self, name)}, {self.groups} doesn't")
        self.windows = Windows(self.num_dims, self.kernel_size, self.stride, self.window_padding(), self.dilation)

    @abstractmethod
    def window_padding(self) -> Sizes:
        """How many zeros the windows see around an image. Raises ValueError for a padding out of range."""

    @property
    @abstractmethod
    def weight_shape(self) -> Shape:
        """The shape of the weight."""

    def parameter_shapes(self) -> dict[str, Shape]:
        """weight, and bias (out_channels,)."""
        return {"weight": self.weight_shape} | ({"bias": (self.out_channels,)} if self.bias else {})

    def reset_parameters(self, generator: np.random.Generator) -> None:
        """weight and bias uniform in ±1/sqrt(the numbers of weight[0]), as torch's class."""
        self.fill_uniformly(math.prod(self.param.weight.shape[1:]), generator)

    def initialize(self, fill: Callable[[str], None]) -> None:
        """weight from the initializer, bias 0."""
        fill("weight")
        if self.bias:
            self.param.bias[...] = 0

    def _check_input(self, input_shape: Shape) -> None:
        """Raise ValueError unless the input is a batch of images with in_channels."""
        check_images(type(self).__name__, input_shape, self.num_dims, f"in_channels={self.in_channels}")
        if input_shape[1] != self.in_channels:
            raise ValueError(
                f"{type(self).__name__} has in_channels={self.in_channels}, the input has shape {input_shape}"
            )

    def _add_bias(self, output: Array) -> None:
        """Add it in place."""
        if self.bias:
            output += self.param.bias[:, *[np.newaxis] * self.num_dims]

    def _write_grad_bias(self, grad_output: Array) -> None:
        """Each bias is added at all places of all examples."""
        if self.bias:
            np.sum(grad_output, axis=(0, *range(2, grad_output.ndim)), out=self.grad.bias)

    def _places(self, image: Array, num_windows: Shape) -> Array:
        """The map of an image."""
        output = np.empty_like(image, order="C", shape=(len(image), len(self.param.weight), *num_windows))
        weight, places = self._grouped(self.param.weight), self._grouped_places(output)  # places is a view
        for part in self._parts(image.shape, num_windows):
            np.matmul(weight, self._columns(image[part], num_windows), out=places[part])
        return output

    def _image(self, places: Array, size: Shape) -> Array:
        """The transposed map of places: an image of this size."""
        weight, grads = self._grouped(self.param.weight).mT, self._grouped_places(places)
        num_channels, num_windows = self.param.weight.shape[1] * self.groups, places.shape[2:]
        image = np.empty_like(places, order="C", shape=(len(places), num_channels, *size))
        of_window = (num_channels, math.prod(self.windows.kernel), *num_windows)
        for part in self._parts(image.shape, num_windows):
            columns = (weight @ grads[part]).reshape(-1, *of_window)
            image[part] = self.windows.back(np.moveaxis(columns, 2, 0), size)
        return image

    def _write_grad_weight(self, image: Array, places: Array) -> None:
        """The gradient of the weight."""
        grad_weight, grads = self._grouped(self.grad.weight), self._grouped_places(places)
        grad_weight[...] = 0
        for part in self._parts(image.shape, places.shape[2:]):
            grad_weight += (grads[part] @ self._columns(image[part], places.shape[2:]).mT).sum(axis=0)

    def _columns(self, image: Array, num_windows: Shape) -> Array:
        """(batch, groups, image_channels / groups * kernel, windows)."""
        columns = np.stack(list(self.windows.of(image, num_windows)), axis=2)  # (batch, channels, kernel, *num_windows)
        of_group = image.shape[1] // self.groups * math.prod(self.windows.kernel)
        return columns.reshape(len(image), self.groups, of_group, math.prod(num_windows))

    def _grouped(self, weight: Array) -> Array:
        """(groups, place_channels / groups, image_channels / groups * kernel), a view."""
        return weight.reshape(self.groups, len(weight) // self.groups, -1)

    def _grouped_places(self, places: Array) -> Array:
        """(batch, groups, place_channels / groups, windows)."""
        num_windows = math.prod(places.shape[2:])
        return places.reshape(len(places), self.groups, places.shape[1] // self.groups, num_windows)

    def _parts(self, image_shape: Shape, num_windows: Shape) -> Iterator[slice]:
        """Slices of the batch: the columns of each have at most NUM_COLUMNS numbers, or are those of one example."""
        size = math.prod(num_windows) * image_shape[1] * math.prod(self.windows.kernel)
        step = max(1, NUM_COLUMNS // size)
        return (slice(start, start + step) for start in range(0, image_shape[0], step))
