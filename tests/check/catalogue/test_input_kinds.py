"""The kinds of input keep to a domain."""

from __future__ import annotations

import math

import numpy as np
import pytest

from nn_manual.arrays import DTYPES, Domain
from nn_manual.check.catalogue.input_kinds import HALVES, KINDS, draw, inside, moved_into, spread

DOMAINS: list[Domain] = [
    "real", "positive", "nonzero", (-20, 20), (0, 1), (0.1, 0.2), (100, 200), (1, math.inf), (-math.inf, -2.5),
]  # fmt: skip - a list of values


@pytest.mark.parametrize("domain", DOMAINS, ids=str)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kind", [*KINDS, "spread"])
def test_every_kind_lies_inside(domain: Domain, dtype: str, kind: str) -> None:
    values = draw(kind, (50, 40), dtype, np.random.default_rng(0), domain)
    assert values.dtype == dtype
    assert values.shape == (50, 40)
    assert inside(domain, values).all()
    if kind in ("random", "negative", "scattered", "spread"):
        assert np.ptp(values) > 0


def test_what_lies_inside_stays() -> None:
    values = np.array([-30.0, -1.0, 0.0, 0.5, 4.0, 30.0])
    assert moved_into("real", values) is not None
    assert moved_into("real", values).tolist() == values.tolist()
    assert moved_into("positive", values).tolist() == [30, 1, 1, 0.5, 4, 30]
    assert moved_into("nonzero", values).tolist() == [-30, -1, 1, 0.5, 4, 30]
    assert moved_into((0, 3), values).tolist() == [1.5, 2, 1.5, 0.5, 1, 1.5]
    assert moved_into((-math.inf, -1), values).tolist() == [-30, -2, -2, -2.5, -6, -32]


def test_spread_values() -> None:
    assert spread().tolist() == HALVES.tolist()
    assert spread("positive").tolist() == HALVES[HALVES > 0].tolist()
    assert spread("nonzero").tolist() == HALVES[HALVES != 0].tolist()
    assert spread((1, math.inf)).tolist() == (HALVES[HALVES > 0] + 1).tolist()
    assert {0.25, 0.5, 0.75} <= set(spread((0, 1)).tolist())
    assert {-79.5, 6.0, -6.0} - set(spread((-80, 80)).tolist()) == {-79.5}


def test_spread_fills_an_array() -> None:
    values = draw("spread", (11, 11), "float32", np.random.default_rng(0))
    assert np.sort(values, axis=None).tolist() == HALVES.tolist()
    values = draw("spread", (300,), "float32", np.random.default_rng(0))
    assert np.unique(values).tolist() == HALVES.tolist()
