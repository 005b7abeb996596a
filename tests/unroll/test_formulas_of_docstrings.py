"""The formulas above the lines: those of a component's own docstring, in each form that docstrings have."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pytest

from nn_manual import Linear, Sequential
from nn_manual.arrays import Array
from nn_manual.layers import Layer
from nn_manual.optim import Optimizer
from nn_manual.unroll.formulas import formulas, of_update


class Cube(Layer):
    """The third power.

    output     = input**3
    grad_input = 3 * input**2 * grad_output

    Why: input**3 = input * input * input
    """

    def forward(self, input: Array) -> tuple[Array, Array]:
        return input**3, input

    def backward(self, saved: Array, grad_output: Array) -> Array:
        result: Array = 3 * saved**2 * grad_output
        return result


FORMULAS = "output = input**3\n    grad_input = 3 * input**2 * grad_output"
INDENTED = FORMULAS.replace("    ", " " * 8)


@pytest.mark.parametrize(
    "text",
    [
        f"{FORMULAS}\n    ",
        f"The third power.\n\n        {INDENTED}\n    ",
        f"The third power.\n\n        {INDENTED}\n\n    The end.\n    ",
        f"The third power:\n        {INDENTED}\n    of reals.\n    ",
        f"The third power.\n\n{FORMULAS.replace('    ', '')}\n\nWhy: a = b\n",
    ],
)
def test_each_form_of_a_docstring(text: str) -> None:
    layer = type("Own", (Cube,), {"__doc__": text})()
    assert formulas(layer) == (["output = input**3"], ["grad_input = 3 * input**2 * grad_output"])


def test_what_goes_on_in_the_next_line_stays_with_its_formula() -> None:
    text = "output = input**3\n    grad_input = grad_output * slope,\n                 slope = 3 * input**2\n    "
    _, backward = formulas(type("Own", (Cube,), {"__doc__": text})())
    assert backward == ["grad_input = grad_output * slope,", "             slope = 3 * input**2"]


@pytest.mark.parametrize(
    ("stated", "shown"),
    [
        ("(1 - z) * (1 - n)", "(1 - z) * (1 - n)"),
        ("((1 - z) * (1 - n))", "(1 - z) * (1 - n)"),
        ("(input * input)", "input * input"),
        ("(input)", "input"),
        ("(1 - z) * n", "(1 - z) * n"),
        ("n * (1 - z)", "n * (1 - z)"),
    ],
)
def test_brackets_around_all_of_a_formula_go_and_no_others(stated: str, shown: str) -> None:
    text = f"output = input**3\n    grad_input = {stated}\n    "
    _, backward = formulas(type("Own", (Cube,), {"__doc__": text})())
    assert backward == [f"grad_input = {shown}"]


def test_a_class_without_formulas_has_those_of_its_base() -> None:
    layer = type("Own", (Cube,), {"__doc__": "The third power again, for any input. n = 3."})()
    assert formulas(layer) == (["output = input**3"], ["grad_input = 3 * input**2 * grad_output"])


@dataclass(eq=False)
class Plain(Optimizer):
    """Gradient descent.

        param = param - lr * grad
    """  # fmt: skip

    def check_settings(self) -> None:
        """Any will do."""

    @classmethod
    def examples(cls) -> list[dict[str, float]]:
        return [{}]

    def vector_names(self) -> list[str]:
        return []

    def coefficients(self, step: int) -> dict[str, float]:  # noqa: ARG002 - the contract's signature
        return {"lr": self.lr}

    def move(
        self, param: Array, grad: Array, vectors: Mapping[str, Array], coefficients: Mapping[str, Array]
    ) -> None:
        assert not vectors
        param -= np.multiply(coefficients["lr"], grad)


class Wordless(Plain):
    """Gradient descent, in no formula."""


class Unsaid(Optimizer):
    """Gradient descent, in no formula."""

    check_settings, vector_names = Plain.check_settings, Plain.vector_names
    coefficients, move = Plain.coefficients, Plain.move


def test_the_contract_s_docstring_is_nobody_s_formula() -> None:
    """Optimizer's has an example of groups, with = signs, in an indented block."""
    model = Sequential(Linear(2, 2), seed=0)
    assert of_update(Plain(model)) == ["param = param - lr * grad"]
    assert of_update(Wordless(model)) == ["param = param - lr * grad"]
    assert of_update(Unsaid(model)) == []
