"""Sequential: the chain rule, names, memory, seeds, and what it refuses."""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np
import pytest
import torch
from comparing import TOLERANCES, assert_equal, frozen
from hypothesis import given, settings
from hypothesis import strategies as st
from nested import SHAPES, as_torch, nested, torch_nested

from nn_manual import BatchNorm1d, Layer, Linear, ReLU, Residual, Sequential, Tanh
from nn_manual.arrays import Array
from nn_manual.check.catalogue.input_kinds import KINDS, draw
from nn_manual.exercises.kinds.frozen import freeze
from nn_manual.layers import Hardtanh, MaskedFill, Threshold
from nn_manual.model.initializers import Constant, KaimingNormal

each_dtype = pytest.mark.parametrize("dtype", TOLERANCES)


@each_dtype
@pytest.mark.parametrize("kind", KINDS)
def test_torch_agrees(dtype: str, kind: str) -> None:
    model = nested(seed=1, dtype=dtype)
    generator = np.random.default_rng(0)
    input, grad_output = (frozen(draw(kind, shape, dtype, generator)) for shape in [(5, 3), (5, 2)])
    output, saved = model.forward(input)
    model.grad_arena[...] = np.nan
    grad_input = model.backward(freeze(saved), grad_output)

    theirs, leaf = as_torch(model), torch.from_numpy(input.copy()).requires_grad_()
    torch_output = theirs(leaf)
    torch_output.backward(torch.from_numpy(grad_output.copy()))
    assert_equal(output, torch_output.detach().numpy())
    assert leaf.grad is not None
    assert_equal(grad_input, leaf.grad.numpy())
    for name, parameter in theirs.named_parameters():
        assert_equal(vars(model.grad)[name], parameter.grad.numpy())  # type: ignore[union-attr]  # after backward
    np.testing.assert_array_equal(model(input), output)


@st.composite
def layer_lists(draw: st.DrawFn) -> list[Layer]:
    """Layers of 3 features in any order, some of them in Sequentials, none at all included."""
    one = st.sampled_from([ReLU, Tanh, lambda: Linear(3, 3), lambda: Linear(3, 3, bias=False)])
    makers: st.SearchStrategy[list[Any]] = st.lists(one, max_size=4)
    several = st.lists(st.one_of(one, makers), max_size=4)
    return [Sequential(*(m() for m in maker)) if isinstance(maker, list) else maker() for maker in draw(several)]


@given(layer_lists())
@settings(max_examples=60, deadline=None, derandomize=True)
def test_backward_parameters_writes_what_backward_writes(layers: list[Layer]) -> None:
    model = Sequential(*layers, dtype="float64")
    generator = np.random.default_rng(0)
    input, grad_output = generator.normal(size=(4, 3)), generator.normal(size=(4, 3))
    model.backward(model.forward(input)[1], grad_output)
    expected = model.grad_arena.copy()
    model.grad_arena[...] = np.nan
    model.backward_parameters(model.forward(input)[1], grad_output)
    np.testing.assert_array_equal(model.grad_arena, expected)
    assert np.all(np.isfinite(expected))


def test_backward_parameters_stops_at_the_first_parameters(monkeypatch: pytest.MonkeyPatch) -> None:
    model = Sequential(Tanh(), Sequential(ReLU(), Linear(3, 3)), Linear(3, 2))
    _, saved = model.forward(np.ones((2, 3), np.float32))

    def never(*_: Any) -> Array:
        raise AssertionError("computed a gradient that nobody asked for")

    inner = model.layers[1]
    assert isinstance(inner, Sequential)
    for layer in (model.layers[0], inner.layers[0], inner.layers[1], inner):
        monkeypatch.setattr(layer, "backward", never)
    model.backward_parameters(saved, np.ones((2, 2), np.float32))


def test_names_order_and_shapes_are_torchs() -> None:
    model = nested()
    assert model.parameter_shapes() == SHAPES
    names = [(name, tuple(parameter.shape)) for name, parameter in torch_nested("float32").named_parameters()]
    assert list(model.parameter_shapes().items()) == names
    assert list(model.state_dict()) == [name for name, _ in names]
    assert [name for name, _ in model.named_layers()] == ["0", "1.0", "1.1", "1.2.0", "1.2.1", "2", "3"]
    assert [type(layer).__name__ for _, layer in model.named_layers()] == [
        "Tanh", "Linear", "ReLU", "Linear", "Tanh", "ReLU", "Linear",
    ]  # fmt: skip
    assert repr(Sequential(Linear(3, 2), Sequential(ReLU()))) == (
        "Sequential(Linear(in_features=3, out_features=2, bias=True), Sequential(ReLU()))"
    )


@each_dtype
def test_views_share_the_arenas_and_cover_them(dtype: str) -> None:
    model = nested(dtype=dtype)
    for name in ("param", "grad"):
        arena, views = getattr(model, f"{name}_arena"), getattr(model, name)
        assert arena.dtype == dtype
        assert arena.flags.c_contiguous
        arena[...] = np.arange(arena.size)
        flat = np.concatenate([view.ravel() for view in vars(views).values()])
        np.testing.assert_array_equal(flat, np.arange(arena.size))
        layers = [view for _, layer in model.named_layers() for view in vars(getattr(layer, name)).values()]
        for view, other in zip(layers, vars(views).values(), strict=True):
            assert np.shares_memory(view, arena)
            np.testing.assert_array_equal(view, other)
            view[...] = -1
        assert np.all(arena == -1)
    assert not np.shares_memory(model.param_arena, model.grad_arena)


def test_the_outermost_owns_the_memory() -> None:
    inner = Sequential(Linear(2, 2), dtype="float64")
    outer = Sequential(Linear(2, 2), inner)
    assert np.shares_memory(inner.param_arena, outer.param_arena)
    assert np.shares_memory(inner.grad_arena, outer.grad_arena)
    assert inner.dtype == outer.dtype == np.float32
    inner.param_arena[...] = 7
    assert outer.param_arena.tolist()[6:] == [7] * 6


@pytest.mark.parametrize(
    ("layers", "message"),
    [
        ((Linear(4, 3), Linear(7, 2)), "1 (Linear) takes in_features=7 in the last dimension, the input has"),
        ((Tanh(), Sequential.without_memory(Linear(4, 3), Linear(7, 2))), "1.1 (Linear) takes in_features=7 in"),
        ((Tanh(), Residual(Tanh(), Linear(7, 4))), "1 (Residual): Linear takes in_features=7 in the last"),
        ((Linear(4, 3), Residual(Linear(3, 2))), "1 (Residual) adds its input of shape (5, 3) to its layers' output"),
    ],
)
def test_a_size_that_does_not_fit_is_named_with_the_layers_number(layers: Any, message: str) -> None:
    model, input = Sequential(*layers), np.ones((5, 4), np.float32)
    runs: list[Any] = [model, model.forward, lambda _: model.output_shape((5, 4))]
    for run in runs:
        with pytest.raises(ValueError, match=f"^{re.escape(message)}"):
            run(input)


def test_words_of_a_layers_own_stay_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise ValueError("is said by a layer")

    monkeypatch.setattr(Tanh, "forward", refuse)
    with pytest.raises(ValueError, match=r"^is said by a layer$"):
        Sequential(Tanh()).forward(np.ones((2, 3), np.float32))


def test_an_eps_that_would_become_0_is_refused() -> None:
    message = "1 (BatchNorm1d): eps 1e-50 is so near to 0 that it would become 0 in float32"
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        Sequential(Tanh(), BatchNorm1d(2, eps=1e-50))
    assert Sequential(BatchNorm1d(2, eps=1e-50), dtype="float64").layers[0].eps == 1e-50  # type: ignore[attr-defined]  # BatchNorm1d has it
    Sequential(BatchNorm1d(2, eps=1e-40))


@pytest.mark.parametrize(
    ("layer", "words"),
    [
        (MaskedFill([0.0, -1e300]), "value -1e+300"),
        (Threshold(0, 10**39), f"value 1{39 * '0'}"),
        (BatchNorm1d(2, eps=3.5e38), "eps 3.5e+38"),
    ],
)
def test_a_setting_beyond_what_the_dtype_can_hold_is_refused(layer: Layer, words: str) -> None:
    message = f"1 ({type(layer).__name__}): {words} is beyond what float32 can hold"
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        Sequential(Tanh(), layer)
    Sequential(Tanh(), layer, dtype="float64")


def test_infinity_and_the_largest_number_are_settings() -> None:
    Sequential(Hardtanh(-math.inf, math.inf), Threshold(0.0, float(np.finfo(np.float32).max)))


def test_what_is_no_layer_is_refused() -> None:
    with pytest.raises(TypeError, match=r"^layer 1 is <class '.*Tanh'>, not a Layer$"):
        Sequential(ReLU(), Tanh)  # type: ignore[arg-type]  # the mistake
    with pytest.raises(TypeError, match=r"^layer 0 is \[ReLU\(\)\], not a Layer$"):
        Sequential([ReLU()])  # type: ignore[arg-type]  # the mistake


@pytest.mark.parametrize("dtype", ["float16", "int64", "complex128"])
def test_other_dtypes_are_refused(dtype: str) -> None:
    with pytest.raises(ValueError, match=f"^dtype must be one of float32, float64, not {dtype}$"):
        Sequential(dtype=dtype)


@pytest.mark.parametrize(
    ("seed", "message"),
    [("x", "an integer, not 'x'"), (True, "an integer, not True"), (-1, "at least 0, not -1")],
)
def test_what_is_no_seed_is_refused(seed: Any, message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=f"^seed must be {re.escape(message)}$"):
        Sequential(Linear(4, 2), seed=seed)


@pytest.mark.parametrize("initializer", [5, "xavier_uniform"])
def test_what_is_no_initializer_is_refused(initializer: Any) -> None:
    with pytest.raises(TypeError, match=f"^initializer must be an Initializer, not {initializer!r}$"):
        Sequential(Linear(4, 2), initializer=initializer)


def test_an_input_of_another_dtype_is_refused() -> None:
    for dtype, other in [("float32", "float64"), ("float64", "float32"), ("float32", "int64")]:
        with pytest.raises(TypeError, match=f"^the model is {dtype}, its input {other}$"):
            nested(dtype=dtype).forward(np.ones((2, 3), other))


def test_sizes_that_do_not_fit_each_other_are_refused() -> None:
    message = "2 (Linear) takes in_features=5 in the last dimension, the input has shape (2, 4)"
    model = Sequential(Linear(3, 4), ReLU(), Linear(5, 1))
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        model.output_shape((2, 3))
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        model.forward(np.ones((2, 3), np.float32))
    assert nested().output_shape((7, 2, 3)) == (7, 2, 2)


def test_saved_values_of_another_model_are_refused() -> None:
    _, saved = Sequential(Linear(3, 3)).forward(np.ones((2, 3), np.float32))
    longer, grad_output = Sequential(Linear(3, 3), Tanh()), np.ones((2, 3), np.float32)
    with pytest.raises(ValueError, match="zip"):
        longer.backward(saved, grad_output)
    with pytest.raises(ValueError, match="zip"):
        longer.backward_parameters(saved, grad_output)


def test_no_layers_pass_everything_through() -> None:
    model, input = Sequential(), np.ones((2, 3), np.float32)
    output, saved = model.forward(input)
    np.testing.assert_array_equal(output, input)
    np.testing.assert_array_equal(model.backward(saved, 2 * input), 2 * input)
    model.backward_parameters(saved, input)
    assert model.num_parameters == 0


def test_runs_twice_before_either_is_taken_back() -> None:
    model = nested(dtype="float64")
    generator = np.random.default_rng(0)
    inputs, grads = generator.normal(size=(2, 5, 3)), generator.normal(size=(2, 5, 2))
    expected = []
    for input, grad_output in zip(inputs, grads, strict=True):
        grad_input = model.backward(model.forward(input)[1], grad_output)
        expected.append((grad_input, model.grad_arena.copy()))
    saved = [model.forward(input)[1] for input in inputs]
    for its_saved, grad_output, (grad_input, grad) in zip(saved, grads, expected, strict=True):
        np.testing.assert_array_equal(model.backward(its_saved, grad_output), grad_input)
        np.testing.assert_array_equal(model.grad_arena, grad)


def test_the_seed_decides_and_no_global_state_is_touched() -> None:
    before = np.random.get_state(legacy=False)
    first, again, other = nested(seed=1), nested(seed=1), nested(seed=2)
    first.backward(first.forward(np.ones((2, 3), np.float32))[1], np.ones((2, 2), np.float32))
    np.testing.assert_equal(np.random.get_state(legacy=False), before)
    np.testing.assert_array_equal(first.param_arena, again.param_arena)
    assert not np.any(first.param_arena == other.param_arena)
    np.testing.assert_array_equal(nested().param_arena, nested(seed=0).param_arena)


@pytest.mark.parametrize("initializer", [None, KaimingNormal()])
def test_float32_starts_at_the_rounded_float64(initializer: KaimingNormal | None) -> None:
    single, double = (nested(seed=3, dtype=dtype, initializer=initializer) for dtype in TOLERANCES)
    np.testing.assert_array_equal(single.param_arena, double.param_arena.astype(np.float32))
    assert not np.array_equal(single.param_arena, double.param_arena)


def test_the_outermost_seed_and_initializer_fill_everything() -> None:
    layers = [Linear(3, 3), Linear(3, 3)]
    inner = Sequential(layers[1], seed=5, initializer=Constant(9.0))
    outer = Sequential(layers[0], inner, seed=1)
    flat = Sequential(Linear(3, 3), Linear(3, 3), seed=1)
    np.testing.assert_array_equal(outer.param_arena, flat.param_arena)

    model = nested(initializer=Constant(0.5))
    for name, value in model.state_dict().items():
        assert np.all(value == (0.5 if name.endswith("weight") else 0))


def test_parameters_can_be_drawn_anew() -> None:
    model = nested(seed=1)
    first = model.param_arena.copy()
    model.reset_parameters(np.random.default_rng(2))
    assert not np.any(model.param_arena == first)
    model.reset_parameters(np.random.default_rng(1))
    np.testing.assert_array_equal(model.param_arena, first)


def test_evaluation_and_buffers_go_through_all_layers() -> None:
    model = Sequential(Linear(3, 4), Sequential(BatchNorm1d(4), ReLU()), Linear(4, 2), dtype="float64", seed=1)
    theirs = torch.nn.Sequential(
        torch.nn.Linear(3, 4), torch.nn.Sequential(torch.nn.BatchNorm1d(4), torch.nn.ReLU()), torch.nn.Linear(4, 2)
    ).double()
    theirs.load_state_dict({name: torch.from_numpy(array.copy()) for name, array in model.state_dict().items()})
    for seed in range(3):
        input = np.random.default_rng(seed).normal(size=(5, 3))
        _, saved = model.forward(input)
        model.update_buffers(saved)
        theirs(torch.from_numpy(input))
    theirs.eval()
    assert_equal(model(input), theirs(torch.from_numpy(input)).detach().numpy())
    for name, tensor in theirs.state_dict().items():
        assert_equal(np.asarray(model.state_dict()[name], np.float64), tensor.double().numpy())
