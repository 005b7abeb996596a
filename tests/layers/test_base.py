"""What a layer that somebody else writes gets from its base class."""

from __future__ import annotations

import math
import pydoc
import re
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import pytest

from nn_manual import Layer, Sequential
from nn_manual.arrays import Array, Shape

T = TypeVar("T")


@dataclass(eq=False)
class Scale(Layer):
    def parameter_shapes(self) -> dict[str, Shape]:
        return {"factor": (), "offset": (2,)}

    def forward(self, input: Array) -> tuple[Array, Array]:
        return input * self.param.factor + self.param.offset, input

    def backward(self, saved: Array, grad_output: Array) -> Array:
        self.grad.factor[...] = (grad_output * saved).sum()
        self.grad.offset[...] = grad_output.sum(axis=0)
        grad_input: Array = grad_output * self.param.factor
        return grad_input


def test_two_formulas_make_a_layer() -> None:
    layer = Scale()
    model = Sequential(layer, dtype="float64")
    assert layer.num_parameters == 3
    assert model.param_arena.tolist() == [0, 0, 0]  # nothing says how to fill them
    model.param_arena[...] = [2, 10, 20]
    output, saved = model.forward(np.array([[1.0, 2.0]]))
    assert output.tolist() == [[12, 24]]
    model.backward_parameters(saved, np.array([[3.0, -1.0]]))
    assert model.grad_arena.tolist() == [3 - 2, 3, -1]
    assert layer.output_shape((4, 2)) == (4, 2)
    assert model.backward(saved, np.array([[3.0, -1.0]])).tolist() == [[6, -2]]


def test_both_formulas_are_needed() -> None:
    class Forward(Layer):
        def forward(self, input: Array) -> tuple[Array, None]:
            return input, None

    with pytest.raises(TypeError, match="backward"):
        Forward()  # type: ignore[abstract]  # the mistake


@pytest.mark.parametrize("domain", ["real", "positive", "nonzero", (-20, 20), (0, math.inf), range(5)])
def test_a_domain(domain: Any) -> None:
    assert Layer.domain == "real"
    assert type("Log", (Scale,), {"domain": domain}).domain == domain  # type: ignore[attr-defined]  # made at run time


@pytest.mark.parametrize(
    "domain", ["negative", range(0, 9, 2), (1, 1), (2, 1), (0, 1, 2), [0, 1], ("a", "b"), (math.nan, 1), None]
)
def test_no_domain(domain: Any) -> None:
    with pytest.raises(ValueError, match=r"^Log\.domain is \"real\", .* or a pair \(low, high\) .*, not ") as caught:
        type("Log", (Scale,), {"domain": domain})
    assert str(caught.value).endswith(f"not {domain!r}")




def test_help_shows_six_names_and_the_reference_first() -> None:
    shown = pydoc.plain(pydoc.render_doc(Layer)).split("Methods inherited from")[0]
    methods = [line for line in shown.splitlines() if re.match(r" \|  \w+\(.*\) -> ", line)]
    assert [line.split("(")[0].removeprefix(" |  ") for line in methods] == [
        *("backward", "forward", "output_shape", "parameter_shapes", "reference", "reset_parameters", "examples"),
    ]
