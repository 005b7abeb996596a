"""Padded recurrent layers beside torch's between pack_padded_sequence and pad_packed_sequence."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import nn_manual
from nn_manual import LSTM, Padded, PaddedGRU, PaddedLSTM, PaddedRNN, Sequential
from nn_manual.arrays import Array
from nn_manual.layers.padded_recurrent import PaddedRecurrent

LENGTHS = np.array([4, 1, 3, 2])


CLASSES = [(PaddedRNN, torch.nn.RNN), (PaddedLSTM, torch.nn.LSTM), (PaddedGRU, torch.nn.GRU)]


def net(
    layer_class: type[PaddedRecurrent] = PaddedLSTM, num_layers: int = 1, bidirectional: bool = False
) -> Sequential:
    return Sequential(layer_class(3, 2, num_layers, bidirectional=bidirectional), seed=1, dtype="float64")


def drawn(seed: int, *shape: int) -> Array:
    return np.random.default_rng(seed).standard_normal(shape)


@pytest.mark.parametrize("num_layers", [1, 2])
@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize(("layer_class", "torch_class"), CLASSES)
def test_torch_s_packed_sequences_agree(
    layer_class: type[PaddedRecurrent], torch_class: Callable[..., Any], bidirectional: bool, num_layers: int
) -> None:
    model = net(layer_class, num_layers, bidirectional)
    input, grad_output = drawn(0, 4, 5, 3), drawn(1, 4, 5, 2 * (1 + bidirectional))
    theirs: Any = torch_class(3, 2, num_layers, batch_first=True, bidirectional=bidirectional).double()
    theirs.load_state_dict({n.removeprefix("0."): torch.from_numpy(v.copy()) for n, v in model.state_dict().items()})
    tensor = torch.from_numpy(input.copy()).requires_grad_()
    packed = torch.nn.utils.rnn.pack_padded_sequence(
        tensor, torch.from_numpy(LENGTHS), batch_first=True, enforce_sorted=False
    )
    expected, _ = torch.nn.utils.rnn.pad_packed_sequence(theirs(packed)[0], batch_first=True, total_length=5)
    expected.backward(torch.from_numpy(grad_output))  # type: ignore[no-untyped-call]  # torch's
    output, saved = model.forward(Padded(input, LENGTHS))
    grad_input = model.backward(saved, grad_output)
    np.testing.assert_allclose(output, expected.detach().numpy(), rtol=1e-12, atol=1e-15)
    assert tensor.grad is not None
    np.testing.assert_allclose(grad_input, tensor.grad.numpy(), rtol=1e-12, atol=1e-15)
    for name, parameter in theirs.named_parameters():
        assert parameter.grad is not None
        grad = vars(model.grad)[f"0.{name}"]
        np.testing.assert_allclose(grad, parameter.grad.numpy(), rtol=1e-11, atol=1e-14)
    np.testing.assert_array_equal(model(Padded(input, LENGTHS)), output)


@pytest.mark.parametrize("layer_class", [each for each, _ in CLASSES])
def test_padding_changes_nothing_and_gets_nothing(layer_class: type[PaddedRecurrent]) -> None:
    model, input, grad_output = net(layer_class, 2, bidirectional=True), drawn(0, 4, 5, 3), drawn(1, 4, 5, 4)
    is_padding = np.arange(5) >= LENGTHS[:, np.newaxis]
    results = []
    for filled in (0.0, np.nan, np.inf, 7.0):
        input[is_padding] = grad_output[is_padding] = filled
        output, saved = model.forward(Padded(input.copy(), LENGTHS))
        results.append((output, model.backward(saved, grad_output.copy()), model.grad_arena.copy()))
    for result in results[1:]:
        for array, first in zip(result, results[0], strict=True):
            np.testing.assert_array_equal(array, first)
    assert not results[0][0][is_padding].any()
    assert not results[0][1][is_padding].any()
    assert results[0][0][~is_padding].all()


@pytest.mark.parametrize("bidirectional", [False, True])
def test_whole_sequences_are_an_lstm_s(bidirectional: bool) -> None:
    model, input = net(bidirectional=bidirectional), drawn(0, 4, 5, 3)
    plain = Sequential(LSTM(3, 2, batch_first=True, bidirectional=bidirectional), seed=1, dtype="float64")
    np.testing.assert_array_equal(model(Padded(input, np.full(4, 5))), plain(input))
    np.testing.assert_array_equal(plain(Padded(input, LENGTHS)), plain(input))  # it takes no notice of lengths


@pytest.mark.parametrize("layer_class", [each for each, _ in CLASSES])
def test_dropout_of_each_sequence_is_a_plain_layer_s(layer_class: type[PaddedRecurrent]) -> None:
    padded = layer_class(3, 2, 2, dropout=0.5, bidirectional=True)
    model, input = Sequential(padded, seed=1, dtype="float64"), drawn(0, 4, 5, 3)
    output, saved = model.forward(Padded(input, LENGTHS))
    grad_output = drawn(1, *output.shape)
    grad_input, mask = model.backward(saved, grad_output), padded.noise.mask_l0
    assert 0 < (mask == 0).mean() < 1
    name = layer_class.__name__.removeprefix("Padded")
    plain = getattr(nn_manual, name)(3, 2, 2, batch_first=True, dropout=0.5, bidirectional=True)
    alone = Sequential(plain, seed=1, dtype="float64")
    for index, length in enumerate(LENGTHS):
        own = slice(index, index + 1), slice(length)
        alone.forward(input[own])
        plain.noise.mask_l0[...] = mask[own]
        expected, of_plain = plain.forward(input[own])
        np.testing.assert_allclose(output[own], expected, rtol=1e-12, atol=1e-15)
        np.testing.assert_allclose(grad_input[own], plain.backward(of_plain, grad_output[own]), rtol=1e-12, atol=1e-15)
    assert model(Padded(input, LENGTHS)).shape == output.shape
    assert padded.noise.lengths.dtype.kind == "i"


def test_it_needs_lengths() -> None:
    for call in (net().forward, net().infer, net()):
        with pytest.raises(ValueError, match=r"^0 \(PaddedLSTM\) needs the length of each sequence"):
            call(drawn(0, 4, 5, 3))
    with pytest.raises(ValueError, match=r"^batch_first must be true: the rows of the data are the sequences$"):
        PaddedLSTM(3, 2, batch_first=False)
