"""Dropout."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from nn_manual.arrays import Array, Shape
from nn_manual.layers.base import Layer
from nn_manual.layers.windows import check_images
from nn_manual.layers.with_noise import LayerWithNoise
from nn_manual.streams import RowGenerator


@dataclass(eq=False)
class Dropout(LayerWithNoise):
    """Elements are zeroed at random in training, each with probability p; any shape whose first dimension is the batch.

        output     = input * mask
        grad_input = grad_output * mask

    The mask is 0 with probability p, and otherwise 1 / (1 - p): so the output's expected value is the input. With p = 1
    the mask is 0 everywhere. In evaluation, the output is the input.

    Derivation: the mask doesn't depend on the input, so d output / d input = mask. Source: Srivastava et al., 2014.
    Raises ValueError for p outside 0 to 1.
    """

    p: float = 0.5

    def __post_init__(self) -> None:
        if not 0 <= self.p <= 1:
            raise ValueError(f"p must be between 0 and 1, not {self.p}")

    @classmethod
    def examples(cls) -> list[tuple[Layer, Shape]]:
        """Some elements are kept and some not, all are kept, and another number of dimensions."""
        return [(cls(), (8, 3)), (cls(0), (3, 3)), (cls(0.25), (4, 2, 3))]

    def noise_shapes(self, input_shape: Shape) -> dict[str, Shape]:
        """mask, shaped as the input."""
        return {"mask": input_shape}

    def draw_noise(self, generator: RowGenerator) -> None:
        """Fill the mask with 0 or 1 / (1 - p)."""
        draw_mask(self.noise.mask, self.p, generator)

    def longest_sum(self, input_shape: Shape) -> int:  # noqa: ARG002 - one, whatever the shape
        """One term: each element is one product."""
        return 1

    def forward(self, input: Array) -> tuple[Array, tuple[Array, Shape]]:
        """The output. Saved are the mask and the input's shape."""
        self.output_shape(input.shape)
        check_mask(self, input.shape)
        mask: Array = self.noise.mask
        return input * mask, (mask, input.shape)

    def infer(self, input: Array) -> Array:
        """The input."""
        return input

    def backward(self, saved: tuple[Array, Shape], grad_output: Array) -> Array:
        """grad_output * mask."""
        mask, input_shape = saved
        self.check_gradient(grad_output, input_shape)
        grad_input: Array = grad_output * mask
        return grad_input

    def reference(self, input: Any, mask: Any) -> Any:
        """The definition, on torch tensors: torch's class would draw another mask."""
        return input * mask


@dataclass(eq=False)
class ChannelDropout(Dropout):
    """Dropout of whole channels, input (batch, channels, *size): neighbours in an image say much the same.

        output     = input * mask
        grad_input = grad_output * mask

    The mask (batch, channels, 1, ...) is 0 with probability p, and otherwise 1 / (1 - p). Derivation: as for Dropout.
    Source: Tompson et al., 2015. Raises ValueError for p outside 0 to 1, and an input of another shape.
    """

    num_dims: ClassVar[int]

    def output_shape(self, input_shape: Shape) -> Shape:
        """The input's shape."""
        check_images(type(self).__name__, input_shape, self.num_dims)
        return input_shape

    def noise_shapes(self, input_shape: Shape) -> dict[str, Shape]:
        """mask (batch, channels, 1, ...)."""
        return {"mask": (*input_shape[:2], *[1] * self.num_dims)}


@dataclass(eq=False)
class Dropout1d(ChannelDropout):
    """Channels of sequences zeroed at random in training, each with probability p, input (batch, channels, length)."""

    num_dims = 1

    @classmethod
    def examples(cls) -> list[tuple[Layer, Shape]]:
        """Some channels are kept and some not, and all are kept."""
        return [(cls(), (4, 3, 2)), (cls(0), (3, 3, 3))]


@dataclass(eq=False)
class Dropout2d(ChannelDropout):
    """Channels of images zeroed at random in training, each with probability p, input (batch, channels, height, width).
    """

    num_dims = 2

    @classmethod
    def examples(cls) -> list[tuple[Layer, Shape]]:
        """Some channels are kept and some not, and all are kept."""
        return [(cls(), (4, 3, 1, 2)), (cls(0), (2, 3, 3, 3))]


@dataclass(eq=False)
class Dropout3d(ChannelDropout):
    """Channels of volumes zeroed at random in training, each with probability p, input (batch, channels, depth, height,
    width).
    """

    num_dims = 3

    @classmethod
    def examples(cls) -> list[tuple[Layer, Shape]]:
        """Some channels are kept and some not, and all are kept."""
        return [(cls(), (4, 3, 1, 2, 1)), (cls(0), (2, 2, 2, 2, 2))]


def draw_mask(mask: Array, p: float, generator: RowGenerator, *, of_batch: bool = False) -> None:
    """Fill the mask with 0 with probability p, and otherwise with 1 / (1 - p): each number for itself, or all with
    what is drawn for the whole batch.
    """
    shape = mask.shape or (1,)  # a number alone is a row of one
    drawn = generator.random_of_batch() if of_batch else generator.random(shape).reshape(mask.shape)
    mask[...] = (drawn >= p) * (0 if p == 1 else 1 / (1 - p))


def check_mask(layer: LayerWithNoise, input_shape: Shape, name: str = "mask") -> None:
    """Raise ValueError if the layer's mask, or its noise of another name, was drawn for an input of another shape."""
    drawn, needed = vars(layer.noise)[name].shape, layer.noise_shapes(input_shape)[name]
    if drawn != needed:
        raise ValueError(
            f"{type(layer).__name__} has a {name} of shape {drawn}, its input has {input_shape} and needs {needed}: "
            "the composite in which it stands must say in input_shapes what its children get"
        )
