"""A sample of `scripts/benchmark.py check random`: runs in which nothing is wrong, and nothing is called so."""

from __future__ import annotations

import importlib.util
import itertools
from pathlib import Path

import numpy as np
import pytest

from nn_manual import NotFiniteError

SCRIPT = Path(__file__).parents[2] / "scripts" / "random_nets.py"


@pytest.mark.parametrize("seed", range(20))
def test_no_false_alarm_in_a_random_net(seed: int) -> None:
    specification = importlib.util.spec_from_file_location("random_nets", SCRIPT)
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    num_steps = 0
    try:
        with np.errstate(all="ignore"):  # some of them diverge
            for step in itertools.islice(module.random_run(seed), 80):
                assert step.check is not None
                num_steps += 1
    except NotFiniteError:
        pass
    assert num_steps > 3
