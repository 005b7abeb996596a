"""A step is compared with what torch computes without oneDNN."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch

from nn_manual import (
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
    check_gradients,
)
from nn_manual.arrays import Array
from nn_manual.check.twin.model import without_onednn


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
    with pytest.raises(ValueError, match=r"^within$"), without_onednn():
        raise ValueError("within")
    assert torch.backends.mkldnn.enabled


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
