"""Microseconds of a mask: uniform random numbers, compared with a rate. Each row has its own address; numpy's fastest
generator, beside it, has no addresses.

In each round both draw one mask after the other, so that a slow moment of the machine meets both. The ratio is the
median over the rounds' own ratios.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable

from benchmarks.against import ratio_of
from benchmarks.nets import microseconds
from nn_manual.arrays import Array, Shape
from nn_manual.streams import RowGenerator

# isort: split
import numpy as np

SHAPES: tuple[Shape, ...] = ((32, 16), (128, 512), (256, 2048))
RATE = 0.1

ROUNDS, MASKS_A_ROUND = 100, 10

#: The bound that is wanted for a whole mask of (128, 512).
WANTED = 3.0


def main() -> None:
    """Print the table."""
    print(f"{'mask, microseconds':20} {'by rows':>8} {'SFC64':>8}  by rows / SFC64")
    for shape in SHAPES:
        times = measure(shape)
        by_rows, fastest = (statistics.median(column) for column in zip(*times, strict=True))
        wanted = f" (<= {WANTED:g})" if shape == (128, 512) else ""
        print(f"{shape!s:20} {by_rows:8.0f} {fastest:8.0f}  {ratio_of(times)}{wanted}", flush=True)
    print(f"\nThe median of the ratios of {ROUNDS} rounds, and its 95% interval; in brackets: what is wanted.")


def measure(shape: Shape) -> list[tuple[float, float]]:
    """The time of a mask addressed by rows, and of one by SFC64, in each round."""
    fastest = np.random.Generator(np.random.SFC64(0))
    draws: tuple[Callable[[], Array], ...] = (
        lambda: RowGenerator(0, 0, 0).random(shape) < RATE,
        lambda: fastest.random(shape, np.float32) < RATE,
    )
    rounds = ((microseconds(draw, MASKS_A_ROUND) for draw in draws) for _ in range(ROUNDS))
    return [(by_rows, by_fastest) for by_rows, by_fastest in rounds]


if __name__ == "__main__":
    main()
