"""Two temporaries that are alive at once share no byte."""

from __future__ import annotations

import numpy as np

from nn_manual.compile.workspace import ALIGNMENT, Life, offsets


def test_what_is_alive_at_once_lies_apart() -> None:
    generator = np.random.default_rng(0)
    for _ in range(50):
        lives = {}
        for i in range(30):
            first = int(generator.integers(0, 40))
            lives[i] = Life(int(generator.integers(1, 1000)), first, first + int(generator.integers(0, 8)))
        places, end = offsets(lives)
        for i, a in lives.items():
            assert places[i] % ALIGNMENT == 0
            assert places[i] + a.num_bytes <= end
            for j, b in lives.items():
                if i < j and a.first <= b.last and b.first <= a.last:
                    assert places[i] + a.num_bytes <= places[j] or places[j] + b.num_bytes <= places[i]
        assert end < sum(life.num_bytes for life in lives.values()) / 2  # they share


def test_one_after_the_other_share_all() -> None:
    places, end = offsets({0: Life(100, 0, 1), 1: Life(80, 2, 3), 2: Life(90, 4, 5)})
    assert places == {0: 0, 1: 0, 2: 0}
    assert end == 100
