"""The table of a model's layers: in a terminal, in a notebook, with and without the shape of an input."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from html_pages import page_of

from nn_manual import (
    BatchNorm1d,
    CausalSelfAttention,
    Embedding,
    Flatten,
    Layer,
    LayerNorm,
    Linear,
    Residual,
    Sequential,
    Tanh,
)
from nn_manual.arrays import Array


def small() -> Sequential:
    return Sequential(Linear(2, 8), Tanh(), Linear(8, 2))


def test_without_the_shape_of_an_input() -> None:
    assert str(small().summary()).splitlines() == [
        "layer         parameters  shapes",
        "0 Linear              24  weight 8x2, bias 8",
        "1 Tanh",
        "2 Linear              18  weight 2x8, bias 2",
        "total                 42",
    ]


@pytest.mark.parametrize("shape", [(64, 2), (1, 2), [7, 2], np.zeros((3, 2)).shape])
def test_with_the_shape_of_an_input_of_any_number_of_examples(shape: Any) -> None:
    summary = small().summary(shape)
    assert str(summary).splitlines() == [
        "layer         output  parameters  products  shapes",
        "0 Linear           8          24        16  weight 8x2, bias 8",
        "1 Tanh             8",
        "2 Linear           2          18        16  weight 2x8, bias 2",
        "total                         42        32",
        "",
        "of one example: output, and products, about the multiplications of forward",
    ]
    assert repr(summary) == str(summary)


def test_layers_in_layers_and_a_shared_parameter() -> None:
    """Long texts take several lines, and a parameter's shape stands beside its name."""
    residual = Residual(LayerNorm(8), CausalSelfAttention(8, 2))
    last = Linear(8, 5, bias=False)
    model = Sequential(Embedding(5, 8), residual, Flatten(0, 1), last, tied=[("0.weight", "3.weight")])
    assert str(model.summary((2, 4))).splitlines() == [
        "layer                    output  parameters  products  shapes",
        "0 Embedding                 4x8          40            weight 5x8",
        "1 Residual                  4x8",
        "  0 LayerNorm               4x8          16        64  weight 8, bias 8",
        "  1 CausalSelfAttention     4x8         288     1,408  in_proj_weight 24x8,",
        "                                                       in_proj_bias 24,",
        "                                                       out_proj.weight 8x8,",
        "                                                       out_proj.bias 8",
        "2 Flatten                   4x8",
        "3 Linear                    4x5          40       160  weight 5x8",
        "total                                   344     1,632",
        "",
        "of one example: output, and products, about the multiplications of forward",
        "a parameter that several layers share counts once in the total",
    ]
    assert model.num_parameters == 344


def test_batch_normalization_is_followed_though_it_takes_no_single_example() -> None:
    assert "1 BatchNorm1d       4           8" in str(Sequential(Linear(3, 4), BatchNorm1d(4)).summary((1, 3)))


def test_a_notebook_shows_the_same_table() -> None:
    model = small()
    page = page_of(model.summary((64, 2)))
    assert [row.cells for row in page.rows] == [
        ("layer", "output", "parameters", "products", "shapes"),
        ("0 Linear", "8", "24", "16", "weight 8x2, bias 8"),
        ("1 Tanh", "8", "", "", ""),
        ("2 Linear", "2", "18", "16", "weight 2x8, bias 2"),
        ("total", "", "42", "32", ""),
    ]
    assert page.texts == ["of one example: output, and products, about the multiplications of forward"]
    assert model._repr_html_() == model.summary()._repr_html_()
    assert page_of(model).rows[1].cells == ("0 Linear", "24", "weight 8x2, bias 8")


@dataclass(eq=False)
class Scale(Layer):
    def parameter_shapes(self) -> dict[str, tuple[int, ...]]:
        return {"<b>factor</b>": (1,)}

    def reset_parameters(self, generator: np.random.Generator) -> None:
        pass

    def forward(self, input: Array) -> tuple[Array, Any]:
        return input, None

    def backward(self, saved: Any, grad_output: Array) -> Array:  # noqa: ARG002 - the contract's signature
        return grad_output


def test_names_of_users_are_escaped() -> None:
    assert page_of(Sequential(Scale())).rows[1].cells == ("0 Scale", "1", "<b>factor</b> 1")


@pytest.mark.parametrize(
    ("shape", "error", "message"),
    [
        (64, TypeError, r"^input_shape must be the shape of an input, such as \(64, 2\), not 64$"),
        ((), TypeError, r"^input_shape must be the shape of an input, such as \(64, 2\), not \(\)$"),
        ((2.0, 2), TypeError, r"such as \(64, 2\), not \(2.0, 2\)$"),
        (
            (64, 3),
            ValueError,
            r"^input_shape \(64, 3\) doesn't fit the model: Linear takes in_features=2 in the last dimension, the "
            r"input has shape \(2, 3\); the number of examples comes first, as in array.shape$",
        ),
        ((2,), ValueError, r"^input_shape \(2,\) doesn't fit the model: "),
    ],
)
def test_what_is_no_shape_of_an_input(shape: Any, error: type[Exception], message: str) -> None:
    model = Sequential(Linear(2, 8), Flatten(), Tanh()) if shape == (2,) else small()
    with pytest.raises(error, match=message):
        model.summary(shape)


def test_a_model_without_layers() -> None:
    assert str(Sequential().summary()).splitlines() == ["layer         parameters  shapes", "total                  0"]
