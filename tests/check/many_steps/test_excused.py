"""A step that is off by rounding alone is judged from what the ring has kept of it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from proving import prover_of

from nn_manual import SGD, CrossEntropyLoss, Linear, ReLU, Sequential, Trainer
from nn_manual.arrays import Array
from nn_manual.check.compare.worst import Differences
from nn_manual.check.judge import in_float64 as again
from nn_manual.data import Examples
from nn_manual.trainer.steps import Step


def trained(**settings: Any) -> list[Step]:
    """Of the last bias's gradient, two sums of 32 terms that cancel, some are beyond the tolerance."""
    generator = np.random.default_rng(0)
    input = generator.standard_normal((32 * 512, 2)).astype("float32")
    data = Examples(input, generator.integers(0, 2, len(input)))
    model = Sequential(Linear(2, 16), ReLU(), Linear(16, 16), ReLU(), Linear(16, 2), seed=0)
    trainer = Trainer(model, CrossEntropyLoss(), SGD(model, lr=0.01, momentum=0.9), **settings)
    steps = [step for epoch in range(2) for step in trainer.epoch(data, 32, seed=0, epoch=epoch)]
    assert prover_of(trainer).groups.most == (1 if settings else 256)
    return steps


def off_by_rounding(steps: list[Step]) -> dict[int, Differences]:
    return {step.number: step.check.found for step in steps if step.check is not None and step.check.rounding}


@pytest.mark.slow
def test_it_finds_what_the_checker_finds_at_once() -> None:
    """It alone compares excuses in groups with those of single steps."""
    found, alone = off_by_rounding(trained()), off_by_rounding(trained(check_memory=0))
    assert found
    assert list(found) == list(alone)
    for number, differences in found.items():
        assert differences.rounding == alone[number].rounding == {"4.grad_bias"}
        np.testing.assert_array_equal(differences.absolute, alone[number].absolute)
        np.testing.assert_array_equal(differences.scale, alone[number].scale)


def test_no_code_of_a_layer_runs_again(monkeypatch: pytest.MonkeyPatch) -> None:
    calls, forward = list[int](), Linear.forward

    def counted(layer: Linear, input: Array) -> Any:
        if layer.param.weight.dtype == np.float32:  # the judge makes steps again in float64
            calls.append(1)
        return forward(layer, input)

    monkeypatch.setattr(Linear, "forward", counted)
    steps = trained()
    assert off_by_rounding(steps)
    assert len(calls) == 3 * len(steps)


def test_the_model_is_copied_once(monkeypatch: pytest.MonkeyPatch) -> None:
    copied = list[Sequential]()
    in_float64 = again.in_float64

    def counted(model: Sequential, *arguments: object) -> Sequential:
        copied.append(model)
        return in_float64(model, *arguments)  # type: ignore[arg-type]  # they are handed on

    monkeypatch.setattr(again, "in_float64", counted)
    trained()
    assert len(copied) == 1
