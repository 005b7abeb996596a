"""A layer's backward and its backward_parameters write the same gradients, into the model's arrays."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from nets import batch
from problems import problem_and_place

from nn_manual import GradientChecker, GradientMismatch, Layer, Linear, MSELoss, Sequential, check_gradients
from nn_manual.arrays import DTYPES, Array, Shape


class Scale(Layer):
    """output = input * weight + shift, whose backward_parameters is right."""

    def parameter_shapes(self) -> dict[str, Shape]:
        return {"weight": (4,), "shift": (4,)}

    def reset_parameters(self, generator: np.random.Generator) -> None:
        self.param.weight[...] = generator.standard_normal(4)
        self.param.shift[...] = generator.standard_normal(4)

    def forward(self, input: Array) -> tuple[Array, Any]:
        return input * self.param.weight + self.param.shift, input

    def backward(self, saved: Any, grad_output: Array) -> Array:
        self.backward_parameters(saved, grad_output)
        grad_input: Array = grad_output * self.param.weight
        return grad_input

    def backward_parameters(self, saved: Any, grad_output: Array) -> None:
        self.grad.weight[...] = (saved * grad_output).sum(axis=0)
        self.grad.shift[...] = np.ones(len(saved), saved.dtype) @ grad_output


class OwnBackward(Scale):
    """Two formulas, each right."""

    def backward(self, saved: Any, grad_output: Array) -> Array:
        self.grad.weight[...] = (saved * grad_output).sum(axis=0)
        self.grad.shift[...] = grad_output.sum(axis=0)
        grad_input: Array = grad_output * self.param.weight
        return grad_input


class Means(OwnBackward):
    def backward_parameters(self, saved: Any, grad_output: Array) -> None:
        super().backward_parameters(saved, grad_output)
        self.grad.weight /= len(saved)


class Forgets(OwnBackward):
    def backward_parameters(self, saved: Any, grad_output: Array) -> None:
        self.grad.weight[...] = (saved * grad_output).sum(axis=0)


class Adds(OwnBackward):
    def backward_parameters(self, saved: Any, grad_output: Array) -> None:
        self.grad.weight[...] = (saved * grad_output).sum(axis=0)
        self.grad.shift += grad_output.sum(axis=0)


class Raises(OwnBackward):
    def backward_parameters(self, saved: Any, grad_output: Array) -> None:  # noqa: ARG002
        raise KeyError("weights")


class Exits(OwnBackward):
    def backward_parameters(self, saved: Any, grad_output: Array) -> None:  # noqa: ARG002
        sys.exit(0)


class Writes(OwnBackward):
    def backward_parameters(self, saved: Any, grad_output: Array) -> None:
        super().backward_parameters(saved, grad_output)
        grad_output *= 2


@pytest.mark.parametrize(
    ("layer_class", "words"),
    [
        (Means, "backward_parameters and backward write different values into grad.weight"),
        (Forgets, "backward_parameters and backward write different values into grad.shift"),
        (Adds, "backward_parameters and backward write different values into grad.shift"),
        (Raises, "on a copy of the layer, backward_parameters raised KeyError: 'weights'"),
        (Exits, "on a copy of the layer, backward_parameters raised SystemExit: 0"),
        (Writes, "backward_parameters wrote into grad_output"),
    ],
)
@pytest.mark.parametrize("dtype", DTYPES)
def test_backward_parameters_must_write_what_backward_writes(
    layer_class: type[Layer], words: str, dtype: str
) -> None:
    model = Sequential(Linear(3, 4), layer_class(), Linear(4, 4), dtype=dtype)
    problem, file, line = problem_and_place(check_gradients(model, MSELoss(), *batch(dtype)))
    assert problem == f"1 ({layer_class.__name__}): {words}"
    assert file == Path(__file__)
    assert 0 <= line - layer_class.backward_parameters.__code__.co_firstlineno <= 1


def test_in_training_a_wrong_backward_parameters_is_named_where_it_runs() -> None:
    model = Sequential(Means(), Linear(4, 4))
    checker = GradientChecker(model, MSELoss())
    with checker.recording():
        checker.run(batch()[1], batch()[1])
    with pytest.raises(GradientMismatch) as caught:
        checker.compare()
    words = "backward_parameters and backward write different values into grad.weight"
    assert problem_and_place(caught.value.report)[0] == f"0 (Means): {words}"


class HalfOfLinear(Linear):
    torch_class = "Linear"

    def backward(self, saved: Array, grad_output: Array) -> Array:
        self.grad.weight[...] = 2 * (grad_output.T @ saved)
        self.grad.bias[...] = grad_output.sum(axis=0)
        grad_input: Array = grad_output @ self.param.weight
        return grad_input


def test_one_that_is_inherited_is_said_to_be() -> None:
    """Training runs the inherited one for the first layer, which is right: so backward goes unused there."""
    input, target = np.ones((2, 4, 3), np.float32)
    report = check_gradients(Sequential(HalfOfLinear(3, 3)), MSELoss(), input, target)
    words = "HalfOfLinear has its own backward, and backward_parameters from Linear"
    assert problem_and_place(report)[0] == (
        f"0 (HalfOfLinear): backward_parameters and backward write different values into grad.weight: {words}"
    )


class ReplacesAtFirst(OwnBackward):
    def reset_parameters(self, generator: np.random.Generator) -> None:
        self.param.weight = generator.standard_normal(4).astype(np.float32)
        self.param.shift[...] = 0


class ReplacesByAnotherDtype(OwnBackward):
    def reset_parameters(self, generator: np.random.Generator) -> None:
        self.param.weight = generator.standard_normal(4)
        self.param.shift[...] = 0


@pytest.mark.parametrize("layer_class", [ReplacesAtFirst, ReplacesByAnotherDtype])
def test_a_parameter_that_is_no_longer_the_models_is_named(layer_class: type[Layer]) -> None:
    model = Sequential(Linear(3, 4), layer_class(), Linear(4, 4))
    problem, _, line = problem_and_place(check_gradients(model, MSELoss(), *batch()))
    words = "param.weight was replaced: write into it, param.weight[...] = ..."
    assert problem == f"1 ({layer_class.__name__}): {words}"
    assert line == layer_class.reset_parameters.__code__.co_firstlineno


@pytest.mark.parametrize("layer_class", [Scale, OwnBackward])
@pytest.mark.parametrize("dtype", DTYPES)
def test_a_right_backward_parameters_passes(layer_class: type[Layer], dtype: str) -> None:
    report = check_gradients(Sequential(Linear(3, 4), layer_class(), dtype=dtype), MSELoss(), *batch(dtype))
    assert report.passed, str(report)
