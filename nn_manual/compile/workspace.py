"""The places of temporaries in one piece of memory."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

#: Temporaries begin at multiples of so many bytes, a cache line.
ALIGNMENT = 64


class Life(NamedTuple):
    """A number of bytes that is needed from one item of the program to another, both included."""

    num_bytes: int
    first: int
    last: int


def offsets(lives: Mapping[int, Life]) -> tuple[dict[int, int], int]:
    """The offset of each temporary, and the bytes of all together. Two that are alive at once share no byte. The
    largest are placed first, each as low as possible.
    """
    places: dict[int, int] = {}
    end = 0
    for storage, life in sorted(lives.items(), key=lambda item: -item[1].num_bytes):
        taken = sorted(
            (place, place + lives[other].num_bytes)
            for other, place in places.items()
            if lives[other].first <= life.last and life.first <= lives[other].last
        )
        place = 0
        for start, stop in taken:
            if start - place >= life.num_bytes:
                break
            place = max(place, -(-stop // ALIGNMENT) * ALIGNMENT)
        places[storage] = place
        end = max(end, place + life.num_bytes)
    return places, end
