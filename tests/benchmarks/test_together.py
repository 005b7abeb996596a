"""A sample of `scripts/benchmark.py check together`, and that it sees a step that is judged otherwise."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from benchmarks.mutation.replacing import change_gradient
from benchmarks.mutation.smallest import Fault
from benchmarks.mutation.subjects import subjects
from benchmarks.mutation.together import verdicts

from nn_manual.check.many_steps import waiting
from nn_manual.layers import Linear, ReLU, Tanh
from nn_manual.losses import MSELoss
from nn_manual.optim import SGD


@pytest.mark.parametrize("owner", [ReLU, Linear, MSELoss, SGD])
def test_mutants_are_called_what_they_are_called_one_by_one(owner: type) -> None:
    subject = next(subject for subject in subjects() if subject.owner is owner)
    mutants = list(subject.mutants())
    num_caught = 0
    for number, mutant in enumerate(mutants[:: len(mutants) // 3 + 1]):
        found = verdicts(mutant.changed, number)
        assert not found.differ
        assert found.num_together == found.num_trainings
        num_caught += bool(found.num_caught)
    assert num_caught >= 1


def test_a_step_that_is_judged_otherwise_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = change_gradient(Tanh, "grad_input", Fault("everywhere", 1e-4))
    assert verdicts(wrong, 0)[2:] == (2, [], 0)

    def blind(absolute: Any, *_: Any) -> Any:
        return np.ones_like(absolute, bool)

    monkeypatch.setattr(waiting, "within", blind)
    assert verdicts(wrong, 0).differ == []  # the checker looks at one of the steps, and then at all
    monkeypatch.setattr(waiting.Waiting, "look_again", lambda *_, **__: None)
    found = verdicts(wrong, 0)
    assert len(found.differ) == 2
    for alone, together in found.differ:
        assert alone.startswith("step 2: gradient check failed: wrong first in 2 (Tanh): 2.grad_input")
        assert together == ""
