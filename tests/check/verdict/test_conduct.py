"""Layers that compute the right values and misbehave: each is named, with what it did."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from nets import batch, net, replace_method
from problems import problem_and_place

from nn_manual import SGD, GradientChecker, GradientMismatch, Layer, Linear, MSELoss, Sequential, check_gradients
from nn_manual.arrays import DTYPES, Array, Shape
from nn_manual.check.comparison import LARGE

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


@dataclass(eq=False)
class Cube(Layer):
    """output     = input**3
    grad_input = 3 * grad_output * input**2
    """

    def forward(self, input: Array) -> tuple[Array, Any]:
        return input**3, input

    def backward(self, saved: Any, grad_output: Array) -> Array:
        grad_input: Array = 3 * grad_output * saved**2
        return grad_input


class KeepsItsInput(Cube):
    """Right where each backward follows its own forward."""

    def forward(self, input: Array) -> tuple[Array, Any]:
        self._input = input
        return input**3, None

    def backward(self, saved: Any, grad_output: Array) -> Array:  # noqa: ARG002
        return super().backward(self._input, grad_output)


class KeepsAStack(Cube):
    """Right where the last forward is taken back first."""

    def forward(self, input: Array) -> tuple[Array, Any]:
        vars(self).setdefault("stack", []).append(input)
        return input**3, None

    def backward(self, saved: Any, grad_output: Array) -> Array:  # noqa: ARG002
        return super().backward(vars(self)["stack"].pop(), grad_output)


class KeepsAQueue(KeepsAStack):
    """Right where the first forward is taken back first."""

    def backward(self, saved: Any, grad_output: Array) -> Array:  # noqa: ARG002
        return Cube.backward(self, vars(self)["stack"].pop(0), grad_output)


class ForgetsItsInput(KeepsItsInput):
    """Raises where two forwards come before their backwards."""

    def backward(self, saved: Any, grad_output: Array) -> Array:
        grad_input = super().backward(saved, grad_output)
        del self._input
        return grad_input


@pytest.mark.parametrize("layer_class", [KeepsItsInput, KeepsAStack, KeepsAQueue, ForgetsItsInput])
def test_what_backward_needs_must_travel_in_saved(layer_class: type[Layer]) -> None:
    model = Sequential(Linear(3, 4), layer_class(), Linear(4, 4))
    problem, file, line = problem_and_place(check_gradients(model, MSELoss(), *batch()))
    assert problem == (
        f"1 ({layer_class.__name__}): backward uses what another forward left behind, grad_input differs after "
        "several forwards: what backward needs must travel in `saved`"
    )
    assert file == Path(__file__)
    assert line == layer_class.backward.__code__.co_firstlineno


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


class Locked(Cube):
    def __init__(self) -> None:
        self.lock = threading.Lock()

    def reference(self, input: torch.Tensor) -> torch.Tensor:
        return input**3


class LockedWithoutReference(Cube):
    def __init__(self) -> None:
        self.lock = threading.Lock()


@pytest.mark.parametrize("layer_class", [Locked, LockedWithoutReference])
def test_a_layer_that_cannot_be_copied_is_named(layer_class: type[Layer]) -> None:
    report = check_gradients(Sequential(Linear(3, 4), layer_class()), MSELoss(), *batch())
    assert report.problem == (
        f"1 ({layer_class.__name__}) can't be copied, which the check needs: "
        "TypeError: cannot pickle '_thread.lock' object"
    )


class KinkDistanceRaises(Cube):
    def kink_distance(self, input: Array) -> Any:
        return input.nothing  # type: ignore[attr-defined]


class KinkDistanceIsANumber(KinkDistanceRaises):
    def kink_distance(self, input: Array) -> Any:  # noqa: ARG002
        return 1


class KinkDistanceOfRows(KinkDistanceRaises):
    def kink_distance(self, input: Array) -> Any:
        return np.abs(input).min(axis=1)


class KinkDistanceWrites(KinkDistanceRaises):
    def kink_distance(self, input: Array) -> Any:
        return np.abs(input, out=input)


@pytest.mark.parametrize(
    ("layer_class", "words"),
    [
        (KinkDistanceRaises, "on a copy of the layer, kink_distance raised AttributeError: "),
        (KinkDistanceIsANumber, "kink_distance returned int, it must return an array of the input's shape (4, 4)"),
        (KinkDistanceOfRows, "kink_distance returned shape (4,), it must return an array of the input's shape (4, 4)"),
        (KinkDistanceWrites, "kink_distance wrote into its input"),
    ],
)
def test_a_wrong_kink_distance_is_named(layer_class: type[Layer], words: str) -> None:
    report = check_gradients(Sequential(Linear(3, 4), layer_class(), Linear(4, 4)), MSELoss(), *batch())
    problem, file, _ = problem_and_place(report)
    assert problem is not None
    assert problem.startswith(f"1 ({layer_class.__name__}): {words}")
    assert file == Path(__file__)


class Flip(Layer):
    """output = input, its features in reverse: negative strides."""

    def forward(self, input: Array) -> tuple[Array, Any]:
        return input[..., ::-1], None

    def backward(self, saved: Any, grad_output: Array) -> Array:  # noqa: ARG002
        return grad_output[..., ::-1]

    def reference(self, input: torch.Tensor) -> torch.Tensor:
        return input.flip(-1)


class ReadOnly(Cube):
    def forward(self, input: Array) -> tuple[Array, Any]:
        output, saved = super().forward(input)
        output.flags.writeable = False
        return output, saved

    def backward(self, saved: Any, grad_output: Array) -> Array:
        grad_input = super().backward(saved, grad_output)
        grad_input.flags.writeable = False
        return grad_input

    def reference(self, input: torch.Tensor) -> torch.Tensor:
        return input**3


class ColumnMajor(ReadOnly):
    def forward(self, input: Array) -> tuple[Array, Any]:
        return np.asfortranarray(input**3), input

    def backward(self, saved: Any, grad_output: Array) -> Array:
        return np.asfortranarray(3 * grad_output * saved**2)


class Spread(Layer):
    """output = mean(input) over the features, in each of them: strides of zero, read-only."""

    def forward(self, input: Array) -> tuple[Array, Any]:
        return np.broadcast_to(input.mean(axis=-1, keepdims=True), input.shape), None

    def backward(self, saved: Any, grad_output: Array) -> Array:  # noqa: ARG002
        return np.broadcast_to(grad_output.mean(axis=-1, keepdims=True), grad_output.shape)

    def reference(self, input: torch.Tensor) -> torch.Tensor:
        return input.mean(-1, keepdim=True).expand(input.shape)


class PassesOn(Layer):
    """output = input, the very array."""

    def forward(self, input: Array) -> tuple[Array, Any]:
        return input, None

    def backward(self, saved: Any, grad_output: Array) -> Array:  # noqa: ARG002
        return grad_output

    def reference(self, input: torch.Tensor) -> torch.Tensor:
        return input.clone()


class RunsForwardAgain(ReadOnly):
    """Keeps only its input, and computes the rest again in backward."""

    def backward(self, saved: Any, grad_output: Array) -> Array:
        output, _ = self.forward(saved)
        grad_input: Array = 3 * grad_output * np.cbrt(output) ** 2
        return grad_input


UNUSUAL = (Flip, ReadOnly, ColumnMajor, Spread, PassesOn, RunsForwardAgain)


@pytest.mark.parametrize("layer_class", UNUSUAL)
@pytest.mark.parametrize("dtype", DTYPES)
def test_without_a_reference_it_passes_too(layer_class: type[Layer], dtype: str) -> None:
    class WithoutReference(layer_class):  # type: ignore[misc, valid-type]
        @property
        def reference(self) -> Any:
            raise AttributeError("reference")

    model = Sequential(Linear(3, 4), WithoutReference(), Linear(4, 4), dtype=dtype)
    report = check_gradients(model, MSELoss(), *batch(dtype))
    assert report.passed, str(report)
    assert "WithoutReference) is compared with its own forward" in str(report)


@pytest.mark.parametrize("layer_class", UNUSUAL)
@pytest.mark.parametrize("batch_size", [4, LARGE // 4])
def test_a_layer_that_is_right_but_unusual_passes(layer_class: type[Layer], batch_size: int) -> None:
    generator = np.random.default_rng(0)
    input, target = (generator.standard_normal((batch_size, size)).astype(np.float32) for size in (3, 4))
    model = Sequential(Linear(3, 4), layer_class(), Linear(4, 4))
    report = check_gradients(model, MSELoss(), input, target)
    assert report.passed, str(report)
    optimizer = SGD(model, lr=0.1)
    checker = GradientChecker(model, MSELoss(), optimizer)
    with checker.recording():
        checker.run(input, target)
        optimizer.step()
    checker.compare()


@pytest.mark.parametrize("layer_class", [Scale, OwnBackward])
@pytest.mark.parametrize("dtype", DTYPES)
def test_a_right_backward_parameters_passes(layer_class: type[Layer], dtype: str) -> None:
    report = check_gradients(Sequential(Linear(3, 4), layer_class(), dtype=dtype), MSELoss(), *batch(dtype))
    assert report.passed, str(report)


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
