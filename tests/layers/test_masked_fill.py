"""Numbers behind the sequences: by hand, and as the times that torch's CTCLoss leaves out."""

from __future__ import annotations

import re
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from comparing import evaluate

from nn_manual import CTCLoss, LogSoftmax, MaskedFill, Padded, Permute, Sequential, check_gradients
from nn_manual.exercises.kinds.formula_words import words_of_layer

LENGTHS = np.array([9, 5, 3])
FILL = [0.0, -1e4, -1e4, -1e4]


def filling(value: float | list[float], lengths: list[int]) -> MaskedFill:
    layer = MaskedFill(value)
    layer.noise = SimpleNamespace(lengths=np.array(lengths))
    return layer


@pytest.mark.parametrize(
    ("value", "expected"),
    [(0.5, [[[1, 2], [0.5, 0.5]], [[5, 6], [7, 8]]]), ([0.0, -3.0], [[[1, 2], [0, -3]], [[5, 6], [7, 8]]])],
)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_by_hand(value: float | list[float], expected: Any, dtype: str) -> None:
    """What stands in the padding changes nothing, and gets nothing."""
    layer = filling(value, [1, 2])
    input = np.array([[[1, 2], [np.nan, np.inf]], [[5, 6], [7, 8]]], dtype)
    output, saved = layer.forward(input)
    np.testing.assert_array_equal(output, expected)
    grad_input = layer.backward(saved, input + 1)
    np.testing.assert_array_equal(grad_input, [[[2, 3], [0, 0]], [[6, 7], [8, 9]]])
    assert output.dtype == grad_input.dtype == np.dtype(dtype)


def test_the_docstrings_formulas() -> None:
    for layer, shape in MaskedFill.examples():
        input, grad_output = np.random.default_rng(0).standard_normal((2, *shape))
        lengths = np.arange(shape[0]) % shape[1] + 1
        layer.noise = SimpleNamespace(lengths=lengths)
        known = words_of_layer(layer, Padded(input, lengths))
        stated = evaluate(layer, {**known, "input": input, "grad_output": grad_output})
        output, saved = layer.forward(input)
        np.testing.assert_array_equal(output, stated["output"])
        np.testing.assert_array_equal(layer.backward(saved, grad_output), stated["grad_input"])


def test_more_dimensions() -> None:
    input = np.arange(24.0).reshape(2, 3, 2, 2)
    output, _ = filling([7.0, 9.0], [1, 3]).forward(input)
    np.testing.assert_array_equal(output[0, 1:], np.broadcast_to([7, 9], (2, 2, 2)))
    np.testing.assert_array_equal(output[1], input[1])


@pytest.mark.parametrize("reduction", ["mean", "sum"])
def test_blanks_behind_the_sequences_are_torchs_input_lengths(reduction: str) -> None:
    """The value, and the gradient of the input of the softmax."""
    numbers = np.random.default_rng(0).standard_normal((3, 9, 4))
    target = np.array([[1, 2, 2], [3, 3, 0], [2, 1, 3]])
    model = Sequential(LogSoftmax(dim=2), MaskedFill(FILL), Permute([0, 2, 1]), dtype="float64")
    loss = CTCLoss(reduction=reduction)
    output, saved = model.forward(Padded(numbers, LENGTHS))
    value, saved_loss = loss.forward(output, target)
    grad_input = model.backward(saved, loss.backward(saved_loss))

    given = torch.from_numpy(numbers).requires_grad_()
    torchs = torch.nn.CTCLoss(reduction=reduction)
    of_torch = torchs(
        given.log_softmax(2).swapaxes(0, 1),
        torch.from_numpy(target),
        torch.from_numpy(LENGTHS),
        torch.tensor([3, 2, 3]),
    )
    (expected,) = torch.autograd.grad(of_torch, given)
    assert value == pytest.approx(of_torch.item(), rel=1e-13)
    np.testing.assert_allclose(grad_input, expected.numpy(), rtol=0, atol=1e-14)
    assert check_gradients(model, loss, Padded(numbers, LENGTHS), target).passed


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ([], "value must be a number, or have one for each of the last dimension, not none at all"),
        (np.inf, "value must be finite, not inf"),
        ([0.0, np.nan], "value must be finite, not [0.0, nan]"),
    ],
)
def test_values_that_are_refused(value: Any, message: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        MaskedFill(value)


def test_what_does_not_fit() -> None:
    with pytest.raises(ValueError, match=r"^MaskedFill takes \(batch, time, \.\.\.\), the input has shape \(2, 3\)$"):
        filling(0.0, [1, 2]).forward(np.ones((2, 3)))
    with pytest.raises(ValueError, match=r"^MaskedFill has 2 values, and the input's last dimension is 3$"):
        filling([0.0, 1.0], [1, 2]).forward(np.ones((2, 3, 3)))
    model = Sequential(MaskedFill())
    with pytest.raises(ValueError, match=r"^0 \(MaskedFill\) needs the length of each sequence: an input that is Pad"):
        model(np.ones((2, 3, 3), np.float32))
