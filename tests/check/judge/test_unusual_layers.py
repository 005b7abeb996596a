"""Layers that are unusual: those that are right pass, and what is wrong with the others is named."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from nets import batch
from problems import problem_and_place

from nn_manual import SGD, GradientChecker, Layer, Linear, MSELoss, Sequential, check_gradients
from nn_manual.arrays import DTYPES, Array
from nn_manual.check.compare.worst import FEW


@dataclass(eq=False)
class Cube(Layer):
    """output     = input**3
    grad_input = 3 * grad_output * input**2
    """

    def forward(self, input: Array) -> tuple[Array, Any]:
        return input**3, input

    def backward(self, saved: Any, grad_output: Array) -> Array:
        grad_input: Array = 3 * grad_output * saved**2
        return grad_input


class KeepsItsInput(Cube):
    """Right where each backward follows its own forward."""

    def forward(self, input: Array) -> tuple[Array, Any]:
        self._input = input
        return input**3, None

    def backward(self, saved: Any, grad_output: Array) -> Array:  # noqa: ARG002
        return super().backward(self._input, grad_output)


class KeepsAStack(Cube):
    """Right where the last forward is taken back first."""

    def forward(self, input: Array) -> tuple[Array, Any]:
        vars(self).setdefault("stack", []).append(input)
        return input**3, None

    def backward(self, saved: Any, grad_output: Array) -> Array:  # noqa: ARG002
        return super().backward(vars(self)["stack"].pop(), grad_output)


class KeepsAQueue(KeepsAStack):
    """Right where the first forward is taken back first."""

    def backward(self, saved: Any, grad_output: Array) -> Array:  # noqa: ARG002
        return Cube.backward(self, vars(self)["stack"].pop(0), grad_output)


class ForgetsItsInput(KeepsItsInput):
    """Raises where two forwards come before their backwards."""

    def backward(self, saved: Any, grad_output: Array) -> Array:
        grad_input = super().backward(saved, grad_output)
        del self._input
        return grad_input


@pytest.mark.parametrize("layer_class", [KeepsItsInput, KeepsAStack, KeepsAQueue, ForgetsItsInput])
def test_what_backward_needs_must_travel_in_saved(layer_class: type[Layer]) -> None:
    model = Sequential(Linear(3, 4), layer_class(), Linear(4, 4))
    problem, file, line = problem_and_place(check_gradients(model, MSELoss(), *batch()))
    assert problem == (
        f"1 ({layer_class.__name__}): backward uses what another forward left behind, grad_input differs after "
        "several forwards: what backward needs must travel in `saved`"
    )
    assert file == Path(__file__)
    assert line == layer_class.backward.__code__.co_firstlineno


class Locked(Cube):
    def __init__(self) -> None:
        self.lock = threading.Lock()

    def reference(self, input: torch.Tensor) -> torch.Tensor:
        return input**3


class LockedWithoutReference(Cube):
    def __init__(self) -> None:
        self.lock = threading.Lock()


@pytest.mark.parametrize("layer_class", [Locked, LockedWithoutReference])
def test_a_layer_that_cannot_be_copied_is_named(layer_class: type[Layer]) -> None:
    report = check_gradients(Sequential(Linear(3, 4), layer_class()), MSELoss(), *batch())
    assert report.problem == (
        f"1 ({layer_class.__name__}) can't be copied, which the check needs: "
        "TypeError: cannot pickle '_thread.lock' object"
    )


class KinkDistanceRaises(Cube):
    def kink_distance(self, input: Array) -> Any:
        return input.nothing  # type: ignore[attr-defined]


class KinkDistanceIsANumber(KinkDistanceRaises):
    def kink_distance(self, input: Array) -> Any:  # noqa: ARG002
        return 1


class KinkDistanceOfRows(KinkDistanceRaises):
    def kink_distance(self, input: Array) -> Any:
        return np.abs(input).min(axis=1)


class KinkDistanceWrites(KinkDistanceRaises):
    def kink_distance(self, input: Array) -> Any:
        return np.abs(input, out=input)


@pytest.mark.parametrize(
    ("layer_class", "words"),
    [
        (KinkDistanceRaises, "on a copy of the layer, kink_distance raised AttributeError: "),
        (KinkDistanceIsANumber, "kink_distance returned int, it must return an array of the input's shape (4, 4)"),
        (KinkDistanceOfRows, "kink_distance returned shape (4,), it must return an array of the input's shape (4, 4)"),
        (KinkDistanceWrites, "kink_distance wrote into its input"),
    ],
)
def test_a_wrong_kink_distance_is_named(layer_class: type[Layer], words: str) -> None:
    report = check_gradients(Sequential(Linear(3, 4), layer_class(), Linear(4, 4)), MSELoss(), *batch())
    problem, file, _ = problem_and_place(report)
    assert problem is not None
    assert problem.startswith(f"1 ({layer_class.__name__}): {words}")
    assert file == Path(__file__)


class Flip(Layer):
    """output = input, its features in reverse: negative strides."""

    def forward(self, input: Array) -> tuple[Array, Any]:
        return input[..., ::-1], None

    def backward(self, saved: Any, grad_output: Array) -> Array:  # noqa: ARG002
        return grad_output[..., ::-1]

    def reference(self, input: torch.Tensor) -> torch.Tensor:
        return input.flip(-1)


class ReadOnly(Cube):
    def forward(self, input: Array) -> tuple[Array, Any]:
        output, saved = super().forward(input)
        output.flags.writeable = False
        return output, saved

    def backward(self, saved: Any, grad_output: Array) -> Array:
        grad_input = super().backward(saved, grad_output)
        grad_input.flags.writeable = False
        return grad_input

    def reference(self, input: torch.Tensor) -> torch.Tensor:
        return input**3


class ColumnMajor(ReadOnly):
    def forward(self, input: Array) -> tuple[Array, Any]:
        return np.asfortranarray(input**3), input

    def backward(self, saved: Any, grad_output: Array) -> Array:
        return np.asfortranarray(3 * grad_output * saved**2)


class Spread(Layer):
    """output = mean(input) over the features, in each of them: strides of zero, read-only."""

    def forward(self, input: Array) -> tuple[Array, Any]:
        return np.broadcast_to(input.mean(axis=-1, keepdims=True), input.shape), None

    def backward(self, saved: Any, grad_output: Array) -> Array:  # noqa: ARG002
        return np.broadcast_to(grad_output.mean(axis=-1, keepdims=True), grad_output.shape)

    def reference(self, input: torch.Tensor) -> torch.Tensor:
        return input.mean(-1, keepdim=True).expand(input.shape)


class PassesOn(Layer):
    """output = input, the very array."""

    def forward(self, input: Array) -> tuple[Array, Any]:
        return input, None

    def backward(self, saved: Any, grad_output: Array) -> Array:  # noqa: ARG002
        return grad_output

    def reference(self, input: torch.Tensor) -> torch.Tensor:
        return input.clone()


class RunsForwardAgain(ReadOnly):
    """Keeps only its input, and computes the rest again in backward."""

    def backward(self, saved: Any, grad_output: Array) -> Array:
        output, _ = self.forward(saved)
        grad_input: Array = 3 * grad_output * np.cbrt(output) ** 2
        return grad_input


UNUSUAL = (Flip, ReadOnly, ColumnMajor, Spread, PassesOn, RunsForwardAgain)


@pytest.mark.parametrize("layer_class", UNUSUAL)
@pytest.mark.parametrize("dtype", DTYPES)
def test_without_a_reference_it_passes_too(layer_class: type[Layer], dtype: str) -> None:
    class WithoutReference(layer_class):  # type: ignore[misc, valid-type]
        @property
        def reference(self) -> Any:
            raise AttributeError("reference")

    model = Sequential(Linear(3, 4), WithoutReference(), Linear(4, 4), dtype=dtype)
    report = check_gradients(model, MSELoss(), *batch(dtype))
    assert report.passed, str(report)
    assert "WithoutReference) is compared with its own forward" in str(report)


@pytest.mark.parametrize("layer_class", UNUSUAL)
@pytest.mark.parametrize("batch_size", [4, FEW // 4])
def test_a_layer_that_is_right_but_unusual_passes(layer_class: type[Layer], batch_size: int) -> None:
    generator = np.random.default_rng(0)
    input, target = (generator.standard_normal((batch_size, size)).astype(np.float32) for size in (3, 4))
    model = Sequential(Linear(3, 4), layer_class(), Linear(4, 4))
    report = check_gradients(model, MSELoss(), input, target)
    assert report.passed, str(report)
    optimizer = SGD(model, lr=0.1)
    checker = GradientChecker(model, MSELoss(), optimizer)
    with checker.recording():
        checker.run(input, target)
        optimizer.step()
    checker.compare()
