"""The numbers that the handwritten passes get."""

from typing import Any

import numpy as np


def normals(seed: int, *shapes: tuple[int, ...]) -> list[Any]:
    """Standard normal numbers in float64, one array for each shape."""
    generator = np.random.default_rng(seed)
    return [generator.standard_normal(shape) for shape in shapes]
