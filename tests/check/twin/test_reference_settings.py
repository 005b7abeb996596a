"""A step is compared with what torch computes without oneDNN, and with gradients, whatever the caller has set."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch

from nn_manual import (
    SGD,
    BatchNorm1d,
    BatchNorm2d,
    Conv2d,
    CrossEntropyLoss,
    Flatten,
    GradientChecker,
    Layer,
    Linear,
    MaxPool2d,
    MSELoss,
    ReLU,
    Sequential,
    Slicing,
    Trainer,
    check_gradients,
)
from nn_manual.arrays import Array
from nn_manual.check.twin.model import reference_settings


@dataclass(eq=False)
class Witness(Layer):
    """The identity, whose reference notes whether oneDNN is on, in forward and in backward."""

    def __post_init__(self) -> None:
        self.seen: list[object] = []

    def forward(self, input: Array) -> tuple[Array, None]:
        return input.copy(), None

    def backward(self, saved: None, grad_output: Array) -> Array:  # noqa: ARG002 - the contract's
        return grad_output.copy()

    def reference(self, input: Any) -> Any:
        self.seen.append(torch.backends.mkldnn.enabled)
        output = input * 1
        if output.requires_grad:
            output.register_hook(lambda grad: self.seen.append(torch.backends.mkldnn.enabled))  # noqa: ARG005 - torch's
        return output


def test_the_reference_runs_without_it() -> None:
    witness = Witness()
    checker = GradientChecker(Sequential(Linear(3, 2), witness), MSELoss())
    witness.seen.clear()  # the twin has tried it
    with checker.recording():
        checker.run(np.ones((2, 3), np.float32), np.zeros((2, 2), np.float32))
    checker.compare()
    assert witness.seen == [False, False]  # one forward, one backward
    assert torch.backends.mkldnn.enabled


def test_it_is_on_again_after_an_error() -> None:
    with pytest.raises(ValueError, match=r"^within$"), reference_settings():
        raise ValueError("within")
    assert torch.backends.mkldnn.enabled


def proven_steps(**way: Any) -> list[bool]:
    """Whether each step of an epoch was proven; in evaluation, the layers are compared, too."""
    model = Sequential(Linear(3, 4), BatchNorm1d(4), Witness(), Linear(4, 2), seed=0)
    generator = np.random.default_rng(0)
    data = generator.standard_normal((8, 3), np.float32), generator.standard_normal((8, 2), np.float32)
    trainer = Trainer(model, MSELoss(), SGD(model, lr=0.1, momentum=0.9), **way)
    steps = list(trainer.epoch(data, 4, seed=0, epoch=0))
    trainer.evaluate(data)
    assert trainer.prover is None or not trainer.prover.groups.reason
    return [step.check is not None and step.check.proven for step in steps]


@pytest.mark.parametrize("off", [torch.no_grad, torch.inference_mode])
@pytest.mark.parametrize("way", [{"check_memory": 0}, {}, {"slicing": Slicing(num_slices=2)}])
def test_gradients_that_the_caller_has_switched_off(off: Callable[[], Any], way: dict[str, Any]) -> None:
    with off():
        assert proven_steps(**way) == [True, True]
        assert not torch.is_grad_enabled()


@pytest.mark.parametrize("off", [torch.no_grad, torch.inference_mode])
def test_check_gradients_where_they_are_off(off: Callable[[], Any]) -> None:
    model = Sequential(Linear(3, 4), BatchNorm1d(4), Witness(), Linear(4, 2), seed=0)
    generator = np.random.default_rng(0)
    input, target = generator.standard_normal((8, 3), np.float32), generator.standard_normal((8, 2), np.float32)
    with off():
        report = check_gradients(model, MSELoss(), input, target)
    assert report.passed
    assert str(report) == str(check_gradients(model, MSELoss(), input, target))


def test_fifty_thousand_terms_that_cancel_need_no_appeal() -> None:
    """The gradient of a convolution before batch normalization, of images with a blank frame and a gradient that is
    almost everywhere the same: on processors with AVX-512, oneDNN's is more than 1e-4 off.
    """
    generator = np.random.default_rng(0)
    images = np.full((64, 1, 28, 28), -0.8, np.float32)
    images[:, :, 7:21, 7:21] += 2 * generator.random((64, 1, 14, 14), np.float32)
    layers = Conv2d(1, 16, 3, padding=1, bias=False), BatchNorm2d(16), ReLU(), MaxPool2d(2), Flatten()
    report = check_gradients(Sequential(*layers, seed=0), CrossEntropyLoss(), images, generator.integers(0, 9, 64))
    assert report.agrees
    assert not report.rounding
