"""A sample of `scripts/benchmark.py check random`: runs in which nothing is wrong, and nothing is called so."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from benchmarks.random_nets import random_run

from nn_manual import NotFiniteError

#: A net whose float32 activations are saturated where those of the same step in float64 are not: false alarms were
#: raised against the latter, late in the run.
SATURATED = 618


@pytest.mark.parametrize(("seed", "num_steps"), [*((seed, 80) for seed in range(20)), (SATURATED, 400)])
def test_no_false_alarm_in_a_random_net(seed: int, num_steps: int) -> None:
    num_checked = 0
    try:
        with np.errstate(all="ignore"):  # some of them diverge
            for step in itertools.islice(random_run(seed), num_steps):
                assert step.check is not None
                num_checked += 1
    except NotFiniteError:
        pass
    assert num_checked > 3
