"""The Jacobian of a reader's backward pass beside the true one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from nn_manual import layers
from nn_manual.arrays import Array
from nn_manual.exercises.kinds.every_exercise import find_exercise
from nn_manual.exercises.running.jacobians import beside_the_true_one, first_wrong, why_none
from nn_manual.ops import matmul
from nn_manual.ops.operation import operation


@dataclass(eq=False)
class Softmax(layers.Softmax):
    """The diagonal alone."""

    def backward(self, saved: Array, grad_output: Array) -> Array:
        grad_input: Array = grad_output * saved * (1 - saved)
        return grad_input


def test_the_smallest_case_that_differs() -> None:
    exercise = find_exercise("softmax_layer")
    cases = exercise.cases()
    first = first_wrong(exercise, cases, Softmax, "grad_input")
    assert first is not None
    found = beside_the_true_one(exercise, cases, first, "grad_input")
    assert found.true.shape == (3, 3)
    assert found.title == "Softmax(-1), random input, a batch of 1"
    assert found.of == "input"
    np.testing.assert_array_equal(found.wrong, ~np.eye(3, dtype=bool))
    np.testing.assert_allclose(found.true.sum(axis=1), 0, atol=1e-15)  # the shares add up to 1, whatever the input
    np.testing.assert_allclose(np.diag(found.true), np.diag(found.theirs), rtol=1e-14)
    assert first_wrong(exercise, cases, layers.Softmax, "grad_input") is None


def test_an_operation_has_one_for_each_operand() -> None:
    exercise = find_exercise("matmul")

    @operation(analytic=True)
    def own(a: Array, b: Array, /) -> Any:
        return matmul(a, b), lambda grad: 2 * exercise.owner.rule(a, b)[1](grad), exercise.owner.rule(a, b)[2]

    first = first_wrong(exercise, exercise.cases(), own, "grad_a")
    assert first is not None
    found = beside_the_true_one(exercise, exercise.cases(), first, "grad_a")
    assert found.of == "a"
    np.testing.assert_allclose(found.theirs, 2 * found.true, rtol=1e-15)
    assert first_wrong(exercise, exercise.cases(), own, "grad_b") is None


def test_a_single_entry_shows_less_than_several() -> None:
    exercise = find_exercise("square")
    cases = exercise.cases()

    @operation(analytic=True)
    def own(input: Array, /) -> Any:
        return input * input, lambda grad: grad * input

    first = first_wrong(exercise, cases, own, "grad_input")
    assert first is not None
    found = beside_the_true_one(exercise, cases, first, "grad_input")
    assert found.output_shape == found.input_shape == (4,)


@pytest.mark.parametrize("name", ["mse_loss", "sgd"])
def test_without_an_upstream_gradient_there_is_none(name: str) -> None:
    exercise = find_exercise(name)
    own, cases = exercise.owner, exercise.cases()
    assert first_wrong(exercise, cases, own, "grad_prediction") is None
    said = "grad_prediction has no Jacobian: there is no upstream gradient to take back"
    assert why_none(exercise, cases, own, "grad_prediction") == said


@dataclass(eq=False)
class FailsOnOne(Softmax):
    """Its forward fails on a batch of 1, which is the smallest input."""

    def forward(self, input: Array) -> tuple[Array, Array]:
        if len(input) == 1:
            raise KeyError(1)
        return super().forward(input)


def test_a_case_on_which_forward_fails_is_left_out() -> None:
    exercise = find_exercise("softmax_layer")
    cases = exercise.cases()
    first = first_wrong(exercise, cases, FailsOnOne, "grad_input")
    assert first is not None
    assert str(cases[first.case]) == "Softmax(1), random input, shape (2, 3, 1)"
