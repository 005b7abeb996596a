"""Layers that compute the right values and misbehave: each is named, with what it did."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from nets import batch, net, replace_method
from problems import problem_and_place

from nn_manual import SGD, GradientChecker, GradientMismatch, Layer, MSELoss, Sequential, check_gradients
from nn_manual.arrays import Array

Right = Callable[..., Any]


def forward_writes_into_its_input(right: Right, layer: Layer, input: Array) -> Any:
    output, saved = right(layer, input.copy())
    input *= 2
    return output, saved


def backward_writes_into_grad_output(right: Right, layer: Layer, saved: Any, grad_output: Array) -> Any:
    grad_input = right(layer, saved, grad_output)
    grad_output *= 2
    return grad_input


def backward_writes_into_saved(right: Right, layer: Layer, saved: Any, grad_output: Array) -> Any:
    grad_input = right(layer, saved, grad_output)
    saved += 1
    return grad_input


def backward_replaces_a_gradient(right: Right, layer: Layer, saved: Any, grad_output: Array) -> Any:
    grad_input = right(layer, saved, grad_output)
    layer.grad.weight = layer.grad.weight.copy()
    return grad_input


def backward_is_random(right: Right, layer: Layer, saved: Any, grad_output: Array) -> Any:
    layer.seed = getattr(layer, "seed", 0) + 1  # type: ignore[attr-defined]
    return right(layer, saved, grad_output) * np.float32(np.random.default_rng(layer.seed).random())  # type: ignore[attr-defined]


BUFFERS: dict[tuple[int, ...], Array] = {}


def forward_returns_a_buffer(right: Right, layer: Layer, input: Array) -> Any:
    output, saved = right(layer, input)
    buffer = BUFFERS.setdefault(output.shape, np.zeros_like(output))
    buffer[...] = output
    return buffer, saved


def backward_returns_a_buffer(right: Right, layer: Layer, saved: Any, grad_output: Array) -> Any:
    grad_input = right(layer, saved, grad_output)
    buffer = BUFFERS.setdefault(grad_input.shape, np.zeros_like(grad_input))
    buffer[...] = grad_input
    return buffer


def forward_saves_a_buffer(right: Right, layer: Layer, input: Array) -> Any:
    output, saved = right(layer, input)
    buffer = BUFFERS.setdefault(saved.shape, np.zeros_like(saved))
    buffer[...] = saved
    return output, buffer


def forward_works_once(right: Right, layer: Layer, input: Array) -> Any:
    if hasattr(layer, "used"):
        raise RuntimeError("used up")
    layer.used = True  # type: ignore[attr-defined]
    return right(layer, input)


def forward_maps_its_input_in_place(right: Right, layer: Layer, input: Array) -> Any:
    np.maximum(input, 0, out=input)  # which changes nothing the second time
    return right(layer, input)


def backward_clears_saved(right: Right, layer: Layer, saved: Any, grad_output: Array) -> Any:
    grad_input = right(layer, saved, grad_output)
    saved[...] = 0
    return grad_input


def forward_counts(right: Right, layer: Layer, input: Array) -> Any:
    layer.count = getattr(layer, "count", 0) + 1  # type: ignore[attr-defined]
    output, saved = right(layer, input)
    return output * np.float32(layer.count), saved  # type: ignore[attr-defined]


def forward_shrinks_the_weight(right: Right, layer: Layer, input: Array) -> Any:
    layer.param.weight *= np.float32(0.9)
    return right(layer, input)


def backward_moves_the_weight(right: Right, layer: Layer, saved: Any, grad_output: Array) -> Any:
    grad_input = right(layer, saved, grad_output)
    layer.param.weight -= np.float32(0.1) * layer.grad.weight
    return grad_input


def forward_replaces_the_weight(right: Right, layer: Layer, input: Array) -> Any:
    layer.param.weight = layer.param.weight * np.float32(1)
    return right(layer, input)


DEEDS: list[tuple[str, Callable[..., Any], str]] = [
    ("forward", forward_writes_into_its_input, "forward wrote into its input"),
    ("backward", backward_writes_into_grad_output, "backward wrote into grad_output"),
    ("backward", backward_writes_into_saved, "backward wrote into its input"),  # what Linear saves is its input
    ("backward", backward_replaces_a_gradient, "backward replaced grad.weight: write into it, grad.weight[...] = ..."),
    ("backward", backward_is_random, "backward is not deterministic: run twice on the same, grad_input differs"),
    ("forward", forward_returns_a_buffer, "run again on other values, it overwrote its output"),
    ("backward", backward_returns_a_buffer, "run again on other values, it overwrote the grad_input"),
    ("forward", forward_saves_a_buffer, "run again on other values, it overwrote what forward saved"),
    ("forward", forward_works_once, "on a copy of the layer, forward raised RuntimeError: used up"),
    ("forward", forward_maps_its_input_in_place, "forward wrote into its input"),
    ("backward", backward_clears_saved, "backward wrote into its input"),
    ("forward", forward_counts, "forward is not deterministic: run twice on the same, output differs"),
    ("forward", forward_shrinks_the_weight, "forward wrote into param.weight"),
    ("backward", backward_moves_the_weight, "backward wrote into param.weight"),
    ("forward", forward_replaces_the_weight, "forward replaced param.weight: it may only be read"),
]


@pytest.mark.parametrize(("method", "deed", "words"), DEEDS)
def test_a_layer_that_misbehaves_is_named(method: str, deed: Callable[..., Any], words: str) -> None:
    model = net()
    BUFFERS.clear()
    replace_method(model.layers[2], method, deed)
    problem, file, _ = problem_and_place(check_gradients(model, MSELoss(), *batch()))
    assert problem == f"2 (Linear): {words}"
    assert file is not None
    assert file.name == "nets.py"  # where replace_method makes the method


@pytest.mark.parametrize(
    ("method", "deed", "words"),
    [
        ("forward", forward_maps_its_input_in_place, "forward wrote into its input"),
        ("backward", backward_clears_saved, "backward wrote into its input"),
        ("backward", backward_moves_the_weight, "backward wrote into param.weight"),
    ],
)
def test_in_training_neither_the_layer_before_it_nor_the_optimizer_is_blamed(
    method: str, deed: Callable[..., Any], words: str
) -> None:
    model = net()
    replace_method(model.layers[2], method, deed)
    optimizer = SGD(model, lr=0.1)
    checker = GradientChecker(model, MSELoss(), optimizer)
    with checker.recording():
        checker.run(*batch())
        optimizer.step()
    with pytest.raises(GradientMismatch) as caught:
        checker.compare()
    assert problem_and_place(caught.value.report)[0] == f"2 (Linear): {words}"


def test_a_first_layer_that_maps_the_models_input_in_place_is_named() -> None:
    model, (input, target) = net(), batch()
    replace_method(model.layers[0], "forward", forward_maps_its_input_in_place)
    before = input.copy()
    assert problem_and_place(check_gradients(model, MSELoss(), input, target))[0] == (
        "0 (Linear): forward wrote into its input"
    )
    assert np.array_equal(input, before)


def test_what_forward_saves_is_watched_wherever_it_is() -> None:
    def saves_more(right: Right, layer: Layer, input: Array) -> Any:
        output, saved = right(layer, input)
        return output, {"input": saved, "more": [np.zeros(2), (np.zeros(3),)]}

    def writes(right: Right, layer: Layer, saved: Any, grad_output: Array) -> Any:
        saved["more"][1][0][1] = 7
        return right(layer, saved["input"], grad_output)

    model = net()
    replace_method(model.layers[2], "forward", saves_more)
    replace_method(model.layers[2], "backward", writes)
    report = check_gradients(model, MSELoss(), *batch())
    assert problem_and_place(report)[0] == "2 (Linear): backward wrote into what forward saved['more'][1][0]"


def test_forward_that_draws_anew_is_not_deterministic() -> None:
    def noisy(right: Right, layer: Layer, input: Array) -> Any:
        output, saved = right(layer, input)
        return output + np.float32(len(calls.append(0) or calls)), saved  # type: ignore[func-returns-value]

    calls: list[int] = []
    model = net()
    replace_method(model.layers[2], "forward", noisy)
    problem, _, _ = problem_and_place(check_gradients(model, MSELoss(), *batch()))
    assert problem == "2 (Linear): forward is not deterministic: run twice on the same, output differs"


def test_the_check_leaves_the_layer_as_it_was() -> None:
    model: Sequential = net()
    before = [dict(vars(layer)) for layer in model.layers]
    check_gradients(model, MSELoss(), *batch())
    assert [dict(vars(layer)) for layer in model.layers] == before
