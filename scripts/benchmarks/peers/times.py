"""The times of a contestant."""

from __future__ import annotations

import statistics
from typing import NamedTuple


class Times(NamedTuple):
    """Microseconds of a step of a contestant in each round, or why there are none; its BLAS, and how many threads."""

    rounds: list[float]
    problem: str = ""
    blas: str = ""

    @property
    def median(self) -> float:
        """The median of the rounds."""
        return statistics.median(self.rounds)

    def over(self, other: Times) -> float:
        """The median of the ratios of each round."""
        return statistics.median(a / b for a, b in zip(self.rounds, other.rounds, strict=True))
