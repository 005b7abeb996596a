"""The recording sees the very arrays, also where something else takes a method's place, and leaves no trace."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from nets import batch, net

from nn_manual import Linear, MSELoss
from nn_manual.arrays import Array
from nn_manual.check.step.recording import Recording


def step(model: Any, loss: Any) -> tuple[Array, list[Any], Array]:
    prediction, saved = model.forward(batch()[0])
    grad_prediction = loss.backward(loss.forward(prediction, batch()[1])[1])
    return prediction, saved, model.backward(saved, grad_prediction)


def test_the_very_arrays_are_noted() -> None:
    model, loss = net(), MSELoss()
    with Recording(model, loss) as recording:
        prediction, saved, grad_input = step(model, loss)
    labels = ["0 (Linear)", "1 (Tanh)", "2 (Linear)", "3 (ReLU)", "4 (Linear)"]
    assert [calls.label for calls in recording.layers] == labels
    assert all(calls.num_forwards == calls.num_backwards == 1 for calls in recording.layers)
    assert recording.loss.prediction is prediction is recording.layers[-1].output
    np.testing.assert_array_equal(recording.layers[0].grad_input, grad_input)  # a copy: the caller may write into it
    assert recording.layers[-1].grad_output is recording.loss.grad_prediction
    for calls, layer_saved in zip(recording.layers, saved, strict=True):
        assert calls.saved is calls.saved_again is layer_saved
    for left, right in zip(recording.layers, recording.layers[1:], strict=False):
        assert left.output is right.input
        assert left.grad_output is right.grad_input


def test_nothing_is_left_on_the_instances_even_after_an_error() -> None:
    model, loss = net(), MSELoss()
    before = [dict(vars(part)) for part in (*model.layers, loss)]
    recording = Recording(model, loss)
    with recording:
        step(model, loss)
    with pytest.raises(ZeroDivisionError), recording:
        _ = 1 / 0
    assert [dict(vars(part)) for part in (*model.layers, loss)] == before


def test_a_method_that_stands_on_the_instance_is_watched_and_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    model, loss = net(), MSELoss()
    own = model.layers[2].forward
    calls: list[Array] = []

    def standing(input: Array) -> tuple[Array, Any]:
        calls.append(input)
        return own(input)

    monkeypatch.setattr(model.layers[2], "forward", standing)
    with Recording(model, loss), Recording(model, loss) as inner:
        step(model, loss)
    assert len(calls) == 1
    assert inner.layers[2].num_forwards == 1
    assert vars(model.layers[2])["forward"] is standing


def test_a_method_that_is_replaced_between_steps_is_watched(monkeypatch: pytest.MonkeyPatch) -> None:
    model, loss = net(), MSELoss()
    recording = Recording(model, loss)
    monkeypatch.setattr(Linear, "forward", lambda _, input: (input, "replaced"))
    with recording:
        model.layers[2].forward(batch()[1])
    assert recording.layers[2].saved == "replaced"


def test_gradients_are_copied_where_they_will_be_changed() -> None:
    model, loss = net(), MSELoss()
    with Recording(model, loss, copy_grads=True) as recording:
        step(model, loss)
        right = model.grad_arena.copy()
        model.grad_arena[...] = 0
    copied = [grad.ravel() for calls in recording.layers for grad in calls.grads.values()]
    assert np.array_equal(np.concatenate(copied), right)
    with Recording(model, loss) as recording:
        step(model, loss)
    assert all(np.shares_memory(grad, model.grad_arena) for calls in recording.layers for grad in calls.grads.values())
