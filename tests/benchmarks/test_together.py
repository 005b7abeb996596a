"""A sample of `scripts/benchmark.py check together`, and that it sees a step that is judged otherwise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from benchmarks import check
from benchmarks.mutation import together
from benchmarks.mutation.replacing import change_gradient
from benchmarks.mutation.smallest import Fault
from benchmarks.mutation.subjects import subjects
from benchmarks.mutation.together import Verdict, verdicts

from nn_manual.arrays import Array
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
    for alone, in_groups in found.differ:
        assert alone.startswith("step 2: gradient check failed: wrong first in 2 (Tanh): 2.grad_input")
        assert in_groups == ""


@dataclass(eq=False)
class Unwritten(Tanh):
    """It returns memory that it doesn't write to: mostly what `right`, which is freed, has left there."""

    def forward(self, input: Array) -> tuple[Array, Array]:
        right = np.tanh(input)
        del right
        output = np.empty_like(input)
        return output, output


def test_memory_that_nobody_writes_to_is_called_wrong_in_both() -> None:
    Unwritten.__name__ = "Tanh"  # its reference is torch's
    found = verdicts(Unwritten, 0)
    assert (found.num_caught, found.differ) == (2, [])


def test_a_stale_formula_must_be_blamed_in_the_same_place() -> None:
    alone, other = Verdict(3, "2 (Tanh)", "2.output", "wrong", 1), Verdict(2, "2 (Tanh)", "2.grad_input", "wrong", 1)
    assert alone.is_same(other, is_stale=True)
    assert not alone.is_same(other)
    assert not alone.is_same(other._replace(label="1 (Linear)"), is_stale=True)
    at_loss, ended = alone._replace(label="loss"), other._replace(label="the loss is -inf at step 2")
    assert at_loss.is_same(ended, is_stale=True)
    assert not at_loss.is_same(ended)


@pytest.mark.parametrize(("is_small", "num_small", "num_different"), [(True, 2, 0), (False, 0, 2)])
def test_what_float32_does_not_show_is_counted_apart(
    is_small: bool, num_small: int, num_different: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def found(*_: Any, memory: int) -> Verdict:
        return Verdict(3, "2 (Tanh)", "2.output", "wrong", 1, is_small) if memory else Verdict(0, "", "", "", 1)

    monkeypatch.setattr(together, "_verdict", found)
    counted = verdicts(Tanh, 0)
    assert (counted.num_small, len(counted.differ)) == (num_small, num_different)


def test_an_unknown_class_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert check.main(["mutants"], classes=["Tanh", "Tank"]) == 2
    assert capsys.readouterr().out.startswith("unknown class Tank; known: GELU, ReLU, ")


@pytest.mark.parametrize("is_made", [True, False])
def test_a_proof_of_no_mutant_is_reported(
    is_made: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    proof = "Tanh.backward", "return grad", "return -grad"
    monkeypatch.setattr(check, "SURVIVORS", {proof: "why"})
    row = check.Row("Tanh", 1, 0, 1, 0, 1, 0, 0, 0, 0.1, [proof] if is_made else [], [])
    monkeypatch.setattr(check, "on_all_cores", lambda _, parts: iter([row for _ in parts]))
    assert check.mutants([0]) is is_made
    assert ("PROOF OF NO MUTANT: Tanh.backward: return -grad" in capsys.readouterr().out) is not is_made
