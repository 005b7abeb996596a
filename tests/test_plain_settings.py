"""Settings in Python: NumPy's numbers and tuples are taken as plain ones, and other types are refused with the name."""

from __future__ import annotations

import inspect
import re
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch

import nn_manual
from nn_manual import Tanh
from nn_manual.layers import Layer
from nn_manual.registry import components

#: Any: mypy refuses some of the settings as well.
nn: Any = nn_manual
TWO = np.int64(2)


@pytest.mark.parametrize(
    ("given", "plain"),
    [
        (lambda: nn.MaxPool2d((3, 2), stride=(2, TWO), padding=TWO // 2), nn.MaxPool2d([3, 2], [2, 2], 1)),
        (lambda: nn.AvgPool2d(TWO, divisor_override=TWO), nn.AvgPool2d(2, divisor_override=2)),
        (lambda: nn.AdaptiveAvgPool2d((TWO, None)), nn.AdaptiveAvgPool2d([2, None])),
        (lambda: nn.Conv2d(TWO, np.int32(4), (1, TWO), padding=(0, 1)), nn.Conv2d(2, 4, [1, 2], padding=[0, 1])),
        (lambda: nn.Conv2d(2, 2, (2, 2), padding="same"), nn.Conv2d(2, 2, [2, 2], padding="same")),
        (lambda: nn.ZeroPad2d((1, 0, TWO, 0)), nn.ZeroPad2d([1, 0, 2, 0])),
        (lambda: nn.ConstantPad1d((1, 2), np.float32(0.5)), nn.ConstantPad1d([1, 2], 0.5)),
        (lambda: nn.Upsample((2, TWO)), nn.Upsample([2, 2])),
        (lambda: nn.Upsample(None, (2, np.float64(1.5)), "bilinear"), nn.Upsample(None, [2, 1.5], "bilinear")),
        (lambda: nn.Unflatten(TWO, (TWO, -1)), nn.Unflatten(2, [2, -1])),
        (lambda: nn.LayerNorm((TWO, 3)), nn.LayerNorm([2, 3])),
        (lambda: nn.Dropout(np.float64(0.25)), nn.Dropout(0.25)),
        (lambda: nn.InstanceNorm2d(TWO, np.float64(0.1), affine=np.True_), nn.InstanceNorm2d(2, 0.1, affine=True)),
        (lambda: nn.HuberLoss(delta=np.float32(2)), nn.HuberLoss(delta=2.0)),
        (lambda: nn.CrossEntropyLoss(weight=(1, TWO)), nn.CrossEntropyLoss(weight=[1, 2])),
        (lambda: nn.BCELoss(weight=np.array([1, 0.5])), nn.BCELoss(weight=[1.0, 0.5])),
        (lambda: nn.BCELoss(weight=torch.tensor([1, 0.5])), nn.BCELoss(weight=[1.0, 0.5])),
        (lambda: nn.MaskedFill(np.array([0, -1e4])), nn.MaskedFill([0.0, -1e4])),
    ],
)
def test_numbers_of_numpy_and_tuples_are_taken(given: Any, plain: Any) -> None:
    """As torch takes them: what the layer or the loss keeps is plain."""
    assert repr(given()) == repr(plain)


def test_a_number_of_numpy_keeps_the_dtype() -> None:
    """A product with NumPy's own float64 would be float64."""
    model = nn.Sequential(nn.Linear(2, 2), nn.GroupNorm(1, 2, eps=np.float64(1e-3)))
    assert model(np.ones((3, 2), np.float32)).dtype == np.float32


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: nn.MaxPool2d("3"), "MaxPool2d: kernel_size must be an integer or a list of integers, not '3'"),
        (lambda: nn.MaxPool2d(2.0), "MaxPool2d: kernel_size must be an integer or a list of integers, not 2.0"),
        (lambda: nn.MaxPool2d(3, 2, 1, 1, True), None),  # in torch that is return_indices
        (lambda: nn.AvgPool2d(2, [1, None]), "AvgPool2d: stride must be an integer or a list of integers or None, not"),
        (lambda: nn.Conv2d(1, "2", 3), "Conv2d: out_channels must be an integer, not '2'"),
        (lambda: nn.Conv2d(1, 2, None), "Conv2d: kernel_size must be an integer or a list of integers, not None"),
        (lambda: nn.Conv2d(1, 2, 3, bias=0.1), "Conv2d: bias must be True or False, not 0.1"),
        (
            lambda: nn.Conv2d(1, 2, 3, padding=1.0),
            "Conv2d: padding must be an integer or a list of integers or 'same' or 'valid', not 1.0",
        ),
        (lambda: nn.Upsample(scale_factor="2"), "Upsample: scale_factor must be a number or a list of numbers or None"),
        (lambda: nn.ZeroPad2d([1, 1, 1, 0.5]), "ZeroPad2d: padding must be an integer or a list of integers, not [1"),
        (lambda: nn.Unflatten(1, 4), "Unflatten: unflattened_size must be a list of integers, not 4"),
        (lambda: nn.Dropout("0.5"), "Dropout: p must be a number, not '0.5'"),
        (lambda: nn.Dropout(True), "Dropout: p must be a number, not True"),
        (lambda: nn.Linear(True, 2), "Linear: in_features must be an integer, not True"),
        (lambda: nn.AdaptiveAvgPool2d(None), "AdaptiveAvgPool2d: output_size must be an integer or a list of integers"),
        (lambda: nn.Concat([nn.Tanh()], dim=True), "Concat: dim must be an integer, not True"),
        (lambda: nn.BCELoss(weight=0.5), "BCELoss: weight must be a list of numbers or None, not 0.5"),
        (lambda: nn.HuberLoss(delta="1"), "HuberLoss: delta must be a number, not '1'"),
        (lambda: nn.MSELoss(True), "MSELoss: reduction must be text, not True"),
        (lambda: nn.Residual([nn.ReLU()]), "layers.0 must be a layer, not list"),
        (lambda: nn.Residual(nn.Linear(2, 2), nn.ReLU), "layers.1 must be a layer, not the class ReLU"),
    ],
)
def test_other_types_are_refused(make: Any, message: str | None) -> None:
    expected = re.escape(message) if message else "takes .* positional arguments"
    with pytest.raises(TypeError, match=expected):
        make()


@dataclass(eq=False)
class Sloppy(Tanh):
    """A layer of one's own whose default isn't of the type it states, and one whose type nobody knows."""

    size: int = None  # type: ignore[assignment]
    table: np.ndarray | None = None


def test_an_own_default_and_an_unknown_type_are_taken() -> None:
    assert Sloppy().size is None
    assert Sloppy(2, np.ones(2)).size == 2
    with pytest.raises(TypeError, match=r"^Sloppy: size must be an integer, not 'a'$"):
        Sloppy("a")  # type: ignore[arg-type]


def positional(owner: Any) -> list[str]:
    parameters = inspect.signature(owner).parameters.values()
    return [each.name for each in parameters if each.kind is each.POSITIONAL_OR_KEYWORD]


@pytest.mark.parametrize("name", [name for name in components(Layer) if hasattr(torch.nn, name)])
def test_positional_arguments_are_torchs(name: str) -> None:
    """An argument without a name means what it means in torch."""
    ours, theirs = positional(components(Layer)[name]), positional(getattr(torch.nn, name))
    if theirs:  # a recurrent net's own signature is *args
        assert ours == theirs[: len(ours)]
