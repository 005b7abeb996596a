"""Images of another size by interpolation."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np

from nn_manual.arrays import Array, Shape
from nn_manual.layers.base import Layer
from nn_manual.layers.resampling import AlongEachDimension
from nn_manual.layers.windows import Sizes, names_of, of_each
from nn_manual.messages.text import counted

#: The dimensions of the images that each mode takes.
MODES = {"nearest": (1, 2, 3), "linear": (1,), "bilinear": (2,), "bicubic": (2,), "trilinear": (3,)}
#: The slope of the cubic kernel at distance 1 (Keys, 1981): torch's.
CUBIC = -0.75


@dataclass(eq=False)
class Upsample(AlongEachDimension):
    """Images of another size by interpolation, input (batch, channels, *size) to (batch, channels, *output size).

    Either `size` is the output's, or `scale_factor` is the output's size by the input's, one number or one for each
    dimension; it must make whole sizes. Each number of the output has a place between those of the input:
    `scale (i + 1/2) - 1/2`, where the pixels are squares, or `(size - 1) / (output size - 1) i` with `align_corners`,
    where they are points. `scale` is the input's size by the output's. The matrix of a dimension (output size, size)
    has the weights of the neighbours: of the nearest one, floor(scale i); of two, by their distance (linear, bilinear,
    trilinear); or of four, by a cubic of it (bicubic, with the slope -0.75 at distance 1). Beyond the edge, the last
    number is taken. For images it is `rows` for the height and `columns` for the width:

        output     = rows @ input @ columns.T
        grad_input = rows.T @ grad_output @ columns

    Derivation: output[i, j] = sum_h sum_w rows[i, h] input[h, w] columns[j, w], so grad_input[h, w] =
    sum_i sum_j rows[i, h] grad_output[i, j] columns[j, w]. In one and three dimensions there is one matrix less, or one
    more. 0 times infinity is not a number: so infinity and NaN spread over their whole row and column, in torch over
    their neighbours alone. Raises ValueError for settings out of range or that don't go together, an input of another
    shape, and a gradient that is not shaped as the output.
    """

    size: Sizes | None = None
    scale_factor: float | list[float] | None = None
    mode: Literal["nearest", "linear", "bilinear", "bicubic", "trilinear"] = "nearest"
    align_corners: bool | None = None

    def __post_init__(self) -> None:
        if self.mode not in MODES:
            raise ValueError(f"mode must be one of {', '.join(MODES)}, not {self.mode!r}")
        if (self.size is None) == (self.scale_factor is None):
            raise ValueError("Upsample takes either size or scale_factor")
        for name, value in (("size", self.size), ("scale_factor", self.scale_factor)):
            numbers = value if isinstance(value, list) else [] if value is None else [value]
            least = "at least 1" if name == "size" else "above 0"
            if not all(number >= 1 if name == "size" else 0 < number < math.inf for number in numbers) or value == []:
                raise ValueError(f"{name} must be {least}, not {value}")
        if self.mode == "nearest" and self.align_corners is not None:
            raise ValueError("align_corners is for the other modes than nearest")

    @classmethod
    def examples(cls) -> list[tuple[Layer, Shape]]:
        """Each mode, with both settings of size, corners aligned or not, larger and smaller images."""
        return [
            (cls(scale_factor=2), (2, 2, 3, 2)),
            (cls([2, 5], mode="bilinear"), (2, 2, 3, 3)),
            (cls(scale_factor=[1.5, 2.0], mode="bilinear", align_corners=True), (1, 2, 4, 2)),
            (cls(scale_factor=2.5, mode="linear"), (2, 3, 4)),
            (cls(scale_factor=2, mode="bicubic"), (1, 1, 3, 2)),
            (cls(3, mode="bicubic", align_corners=True), (1, 2, 4, 5)),
            (cls([2, 3, 1], mode="trilinear"), (1, 2, 2, 2, 3)),
            (cls(3), (2, 2, 5)),
        ]

    def output_shape(self, input_shape: Shape) -> Shape:
        """The channels stay."""
        num_dims, taken = len(input_shape) - 2, MODES[self.mode]
        if num_dims not in taken or min(input_shape[1:]) < 1:
            takes = " or ".join(f"(batch, channels, {names_of(count)})" for count in taken)
            raise ValueError(f"Upsample with mode={self.mode} takes {takes}, the input has shape {input_shape}")
        given = self.size if self.scale_factor is None else self.scale_factor
        if isinstance(given, list) and len(given) != num_dims:
            raise ValueError(
                f"Upsample has {given} for {counted(num_dims, 'dimension')}, the input has shape {input_shape}"
            )
        if self.size is not None:
            return (*input_shape[:2], *map(int, of_each(self.size, num_dims)))
        wanted = [size * factor for size, factor in zip(input_shape[2:], self._factors(num_dims), strict=True)]
        sizes = tuple(map(math.floor, wanted))
        if list(sizes) != wanted:  # what torch makes of it depends on the layout in memory
            raise ValueError(
                f"Upsample takes a scale_factor that makes whole sizes, or a size: {self.scale_factor} would make "
                f"{wanted}, the input has shape {input_shape}"
            )
        return (*input_shape[:2], *sizes)

    def _factors(self, num_dims: int) -> list[float]:
        given = self.scale_factor
        return given if isinstance(given, list) else [given or 1.0] * num_dims

    def matrices(self, input_shape: Shape, dtype: np.dtype[np.generic]) -> Iterator[Array]:
        """The weights of the neighbours."""
        sizes = input_shape[2:], self.output_shape(input_shape)[2:], self._factors(len(input_shape) - 2)
        for size, output_size, factor in zip(*sizes, strict=True):
            scale = size / output_size if self.scale_factor is None else 1 / factor
            matrix = np.zeros((output_size, size), dtype)
            for neighbour, weight in self._neighbours(size, output_size, scale, dtype):
                np.add.at(matrix, (np.arange(output_size), np.clip(neighbour, 0, size - 1)), weight)
            yield matrix

    def _neighbours(
        self, size: int, output_size: int, scale: float, dtype: np.dtype[np.generic]
    ) -> Iterator[tuple[Array, Array]]:
        """The index of each neighbour of each number of the output, and its weight. Places are computed in the dtype of
        the images, and those of the nearest one in float32, as in torch: so both have the same neighbours.
        """
        number = np.arange(output_size, dtype=dtype)
        if self.mode == "nearest":
            nearest = np.floor(number.astype(np.float32) * np.float32(scale))
            yield nearest.astype(np.intp), np.ones_like(number)
            return
        if self.align_corners:
            place = number * dtype.type((size - 1) / max(output_size - 1, 1))
        else:
            place = dtype.type(scale) * (number + dtype.type(0.5)) - dtype.type(0.5)
        if self.mode != "bicubic":
            place = np.maximum(place, 0)
        first = np.floor(place)
        distance = place - first
        weights = _cubic(distance) if self.mode == "bicubic" else [1 - distance, distance]
        for i, weight in enumerate(weights, start=-1 if self.mode == "bicubic" else 0):
            yield first.astype(np.intp) + i, weight


def _cubic(distance: Array) -> list[Array]:
    """The weights of the four neighbours of a place so far behind the second one: Keys' cubic at their distances."""

    def near(x: Array) -> Array:
        return ((CUBIC + 2) * x - (CUBIC + 3)) * x * x + 1

    def far(x: Array) -> Array:
        return ((CUBIC * x - 5 * CUBIC) * x + 8 * CUBIC) * x - 4 * CUBIC

    return [far(distance + 1), near(distance), near(1 - distance), far(2 - distance)]
