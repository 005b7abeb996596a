"""Composites with random numbers of their own, in training and in evaluation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from composites import StochasticDepth, batch, model_of

from nn_manual import (
    SGD,
    BatchNorm1d,
    Dropout,
    Layer,
    Linear,
    MSELoss,
    Residual,
    Sequential,
    Tanh,
    Trainer,
    as_autograd_function,
    check_gradients,
)
from nn_manual.arrays import Array

BRANCHES: list[Callable[[], Layer]] = [
    lambda: Sequential(Linear(3, 3), Dropout(), Tanh()),
    lambda: Sequential(BatchNorm1d(3), Linear(3, 3)),
    lambda: StochasticDepth(Residual(Linear(3, 3)), p=0.2),
]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("make", BRANCHES)
def test_a_composite_with_random_numbers_of_its_own(make: Callable[[], Layer], dtype: str) -> None:
    report = check_gradients(model_of(StochasticDepth(make()), dtype), MSELoss(), *batch(dtype))
    assert report.passed, str(report)
    assert "1.infer" in [comparison.name for comparison in report.comparisons]
    model = Sequential(StochasticDepth(make()), Linear(3, 3), seed=2, dtype=dtype)
    trainer = Trainer(model, MSELoss(), SGD(model, lr=0.1))
    keeps = []
    for _ in range(8):
        assert trainer.train_step(*batch(dtype)).check is not None
        keeps.append(vars(model.layers[0])["noise"].keep.copy())
    assert set(np.unique(keeps)) == {0, 2}


class WrongEvaluation(StochasticDepth):
    def infer(self, input: Array) -> Array:
        return input + self.branch.infer(input) / (1 - self.p)


class WrongScale(StochasticDepth):
    def backward(self, saved: Any, grad_output: Array) -> Array:
        branch_saved, keep = saved
        return grad_output + self.branch.backward(branch_saved, (keep > 0) * grad_output)


@pytest.mark.parametrize(
    ("wrong", "tensor"), [(WrongEvaluation, "1.infer"), (WrongScale, "1.branch.grad_output")]
)
def test_its_mistakes_are_found(wrong: type[StochasticDepth], tensor: str) -> None:
    report = check_gradients(model_of(wrong(Linear(3, 3))), MSELoss(), *batch())
    assert (report.failures[0].name, report.failures[0].layer) == (tensor, f"1 ({wrong.__name__})"), str(report)


class Unevaluated(StochasticDepth):
    infer_reference = property()  # hasattr finds none


def test_it_must_say_what_evaluation_computes() -> None:
    report = check_gradients(model_of(Unevaluated(Linear(3, 3))), MSELoss(), *batch())
    words = "1 (Unevaluated): it draws random numbers: infer_reference(self, input, *children) says what evaluation"
    assert report.problem is not None
    assert report.problem.startswith(words)


def test_it_is_a_torch_module_that_evaluates_otherwise() -> None:
    module = as_autograd_function(Sequential(StochasticDepth(Linear(3, 3)), seed=1, dtype="float64"))
    input = torch.ones((64, 3), dtype=torch.float64)
    outputs = [module(input), module(input)]
    assert {len(output.unique(dim=0)) for output in outputs} == {2}
    assert not torch.equal(*outputs)
    module.eval()
    with pytest.raises(RuntimeError, match="evaluation differs from training here"):
        module(input)
    with torch.no_grad():
        assert torch.allclose(2 * module(input)[0], outputs[0].unique(dim=0).sum(0))
