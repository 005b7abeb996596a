"""Pooling: a window of an image becomes one number. What the largest number and the mean share."""

from __future__ import annotations

from typing import ClassVar

from nn_manual.arrays import Shape
from nn_manual.layers.base import Layer
from nn_manual.layers.windows import Sizes, Windows, check_images, of_each


class Pooling(Layer):
    """A layer that makes one number of each window of images of `num_dims` dimensions, in each channel."""

    num_dims: ClassVar[int]

    kernel_size: Sizes
    stride: Sizes | None
    padding: Sizes
    ceil_mode: bool

    def _windows(self, dilation: Sizes) -> Windows:
        """The windows. A `stride` of None is the kernel's size. Raises ValueError for sizes out of range."""
        stride = self.kernel_size if self.stride is None else self.stride
        windows = Windows(self.num_dims, self.kernel_size, stride, self.padding, dilation, self.ceil_mode)
        frames = zip(of_each(self.padding, self.num_dims), windows.kernel, strict=True)
        if any(2 * frame > size for frame, size in frames):
            raise ValueError(f"padding must be at most half of kernel_size={self.kernel_size}, not {self.padding}")
        return windows

    def _pooled(self, windows: Windows, input_shape: Shape) -> Shape:
        name = type(self).__name__
        check_images(name, input_shape, self.num_dims)
        if min(input_shape[1:]) < 1:
            raise ValueError(f"{name} takes images with numbers in them, the input has shape {input_shape}")
        return (*input_shape[:2], *windows.output_size(name, input_shape))
