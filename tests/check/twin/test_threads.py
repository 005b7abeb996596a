"""Torch works on one thread where there is little to multiply, and on all of them again afterwards."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pytest
import torch

from nn_manual import GradientChecker, GradientMismatch, Layer, Linear, MSELoss, Sequential
from nn_manual.arrays import Array
from nn_manual.check.twin.model import FEW_PRODUCTS, threads_for

NUM_THREADS = torch.get_num_threads() + 2


@pytest.fixture(autouse=True)
def _threads() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(NUM_THREADS)
    yield
    torch.set_num_threads(before)


@dataclass(eq=False)
class Witness(Layer):
    """The identity; its reference notes how many threads torch has, and may fail."""

    fails: bool = False

    def __post_init__(self) -> None:
        self.seen: list[int] = []

    def forward(self, input: Array) -> tuple[Array, None]:
        return input.copy(), None

    def backward(self, saved: None, grad_output: Array) -> Array:  # noqa: ARG002 - the contract's
        return grad_output.copy()

    def reference(self, input: torch.Tensor) -> torch.Tensor:
        self.seen.append(torch.get_num_threads())
        return input * (2 if self.fails else 1)


def check(batch: int, *, fails: bool = False) -> Witness:
    witness = Witness(fails)
    checker = GradientChecker(Sequential(Linear(64, 64), witness), MSELoss())
    witness.seen.clear()  # the twin has tried it
    input, target = np.random.default_rng(0).standard_normal((2, batch, 64), np.float32)
    with checker.recording():
        checker.run(input, target)
    checker.compare()
    return witness


@pytest.mark.parametrize(("batch", "num_threads"), [(4, 1), (250, 1), (260, NUM_THREADS)])
def test_a_small_step_is_checked_on_one_thread(batch: int, num_threads: int) -> None:
    assert ((64 * 64 + 64) * batch < FEW_PRODUCTS) == (num_threads == 1)
    assert check(batch).seen[-1:] == [num_threads]
    assert torch.get_num_threads() == NUM_THREADS


def test_a_mismatch_leaves_the_threads_as_they_were() -> None:
    with pytest.raises(GradientMismatch):
        check(4, fails=True)
    assert torch.get_num_threads() == NUM_THREADS


def test_one_thread_stays_one() -> None:
    torch.set_num_threads(1)
    with threads_for(10 * FEW_PRODUCTS):
        assert torch.get_num_threads() == 1
    assert torch.get_num_threads() == 1
