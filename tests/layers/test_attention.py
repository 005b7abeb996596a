"""Self-attention beside its formulas, one time after the other, torch's MultiheadAttention, and differences."""

from __future__ import annotations

import inspect
import math
import re
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from comparing import DIFFERENCE_TOLERANCE, assert_equal, central_differences

from nn_manual import (
    CausalSelfAttention,
    Layer,
    MultiheadAttention,
    Padded,
    PaddedCausalSelfAttention,
    PaddedMultiheadAttention,
    Sequential,
)
from nn_manual.arrays import Array, Shape
from nn_manual.exercises.kinds.frozen import freeze
from nn_manual.layers import attention
from nn_manual.layers.attention import SelfAttention
from nn_manual.layers.attention_places import rotate as rotate_in_place
from nn_manual.layers.attention_places import slopes
from nn_manual.layers.fast_forms import rows
from nn_manual.model.initializers import Constant

#: Sums of some ten products of numbers near 1, float64.
TOLERANCE = 1e-14

EXAMPLES = [*CausalSelfAttention.examples(), *MultiheadAttention.examples()]
each_example = pytest.mark.parametrize(("layer", "shape"), EXAMPLES, ids=repr)


def bound(layer: Layer, shape: Shape) -> SelfAttention:
    """With random parameters, the biases among them, and a mask where there is dropout."""
    assert isinstance(layer, SelfAttention)
    model = Sequential(layer, dtype="float64")
    model.param_arena[:] = np.random.default_rng(2).standard_normal(model.num_parameters)
    model.forward(np.ones(shape))
    return layer


def normal(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).standard_normal(shape)


#: ALiBi's slopes, of so many heads.
SLOPES = {1: [2**-8], 2: [2**-4, 2**-8], 3: [2**-4, 2**-8, 2**-2], 4: [2**-2, 2**-4, 2**-6, 2**-8]}


def turned(vector: Array, angles: float) -> Array:
    """Pairs of features as complex numbers, turned by so many times their angle."""
    half = len(vector) // 2
    numbers = (vector[:half] + 1j * vector[half:]) * np.exp(1j * angles * 10000 ** (-np.arange(half) / half))
    return np.concatenate([numbers.real, numbers.imag])


def sees(layer: SelfAttention, t: int, s: int) -> bool:
    is_late = isinstance(layer, CausalSelfAttention) and s > t
    return not is_late and (layer.window is None or abs(t - s) < layer.window)


def by_loops(layer: SelfAttention, input: Array) -> Array:
    """The output, for each time of each example a weighted mean of the values that it sees, head by head."""
    param, mask = vars(layer.param), vars(layer.noise).get("mask")
    width, size = layer.embed_dim // layer.num_heads, layer.embed_dim
    num_kv_heads = layer.num_kv_heads or layer.num_heads
    bias = param.get("in_proj_bias", 0)
    output = np.zeros_like(input)
    for b, example in enumerate(input):
        projected = [param["in_proj_weight"] @ now + bias for now in example]
        for t in range(len(example)):
            found, seen = [], [s for s in range(len(example)) if sees(layer, t, s)]
            for head in range(layer.num_heads):
                of_keys = size + head * num_kv_heads // layer.num_heads * width
                query, key, value = (
                    [now[start : start + width] for now in projected]
                    for start in (head * width, of_keys, of_keys + num_kv_heads * width)
                )
                if layer.positions == "rotary":
                    query, key = ([turned(each, t) for t, each in enumerate(array)] for array in (query, key))
                slope = SLOPES[layer.num_heads][head] if layer.positions == "alibi" else 0
                scores = [sum(query[t] * key[s]) / math.sqrt(width) - slope * abs(t - s) for s in seen]
                weights = [math.exp(score) for score in scores]
                kept = [1.0 if mask is None else mask[b, head, t, s] for s in seen]
                parts = [weight / sum(weights) * k * value[s] for weight, k, s in zip(weights, kept, seen, strict=True)]
                found.append(np.sum(parts, axis=0))
            output[b, t] = param["out_proj.weight"] @ np.concatenate(found) + param.get("out_proj.bias", 0)
    return output


@each_example
def test_loops_agree(layer: Layer, shape: Shape) -> None:
    own, input = bound(layer, shape), normal(*shape)
    assert_equal(own.forward(input)[0], by_loops(own, input), tolerance=TOLERANCE)


def split(array: Array, layer: SelfAttention) -> Any:
    """(batch, time, size) as (batch, num_heads, time, width); of queries, keys and values, three such arrays."""
    batch, time, size = array.shape
    heads = array.reshape(batch, time, -1, layer.embed_dim // layer.num_heads).transpose(0, 2, 1, 3)
    num_kv_heads = layer.num_kv_heads or layer.num_heads
    ends = [layer.num_heads, layer.num_heads + num_kv_heads]
    return heads if size == layer.embed_dim else np.split(heads, ends, axis=1)


def rotate(array: Array, direction: int = 1) -> Array:
    return np.array([[[turned(each, direction * t) for t, each in enumerate(h)] for h in example] for example in array])


def join(*arrays: Array) -> Array:
    batch, _, time, _ = arrays[0].shape
    joined = [array.transpose(0, 2, 1, 3).reshape(batch, time, -1) for array in arrays]
    return np.concatenate(joined, axis=-1)


@each_example
def test_docstring_agrees(layer: Layer, shape: Shape) -> None:
    own, input, grad_output = bound(layer, shape), normal(*shape), normal(*shape, seed=1)
    output, saved = own.forward(input)
    found = {"output": output, "grad_input": own.backward(saved, grad_output)}
    found |= {f"grad_{name}": grad for name, grad in vars(own.grad).items()}

    param, size = {"in_proj_bias": 0, "out_proj.bias": 0, **vars(own.param)}, own.embed_dim
    out_proj = SimpleNamespace(weight=param["out_proj.weight"], bias=param["out_proj.bias"])
    num_shared = own.num_heads // (own.num_kv_heads or own.num_heads)
    functions: dict[str, Any] = {
        "split": lambda array: split(array, own),
        "join": join,
        "rows": rows,
        "rotate": rotate,
        "rotate_back": lambda array: rotate(array, -1),
        "repeat": lambda array: np.repeat(array, num_shared, axis=1),
        "add_up": lambda array: array.reshape(len(array), -1, num_shared, *array.shape[2:]).sum(axis=2),
    }
    places = range(shape[1])
    offset = np.array([[0 if sees(own, t, s) else -np.inf for s in places] for t in places])
    if own.positions == "alibi":
        distance = np.abs(np.subtract.outer(places, places))
        offset = offset - np.multiply.outer(SLOPES[own.num_heads], distance)
    values: dict[str, Any] = {**param, "out_proj": out_proj, "grad_out_proj": SimpleNamespace(), "offset": offset}
    values |= {"mask": vars(own.noise).get("mask", 1), "width": size // own.num_heads}
    values |= {"input": input, "grad_output": grad_output}
    for line in re.findall(r"^    (\w.* = .*)$", inspect.cleandoc(SelfAttention.__doc__ or ""), re.MULTILINE):
        formula, _, condition = line.partition(" where ")
        if condition in ("", f"positions = {own.positions}"):
            exec(formula, vars(np) | functions, values)
    values |= {f"grad_out_proj.{name}": grad for name, grad in vars(values["grad_out_proj"]).items()}
    for name, value in found.items():
        assert_equal(value, values[name], tolerance=TOLERANCE, scale=1)


@each_example
def test_differences_agree(layer: Layer, shape: Shape) -> None:
    own, input, grad_output = bound(layer, shape), normal(*shape), normal(*shape, seed=1)
    _, saved = own.forward(input)
    gradients = {"input": own.backward(freeze(saved), grad_output), **vars(own.grad)}

    def of_input(values: Array) -> float:
        return float((own.forward(values)[0] * grad_output).sum())

    assert_equal(gradients["input"], central_differences(of_input, input), tolerance=DIFFERENCE_TOLERANCE)
    for name, parameter in vars(own.param).items():

        def of_parameter(values: Array, name: str = name) -> float:
            vars(own.param)[name] = values
            return of_input(input)

        differences = central_differences(of_parameter, parameter)
        assert_equal(gradients[name], differences, tolerance=DIFFERENCE_TOLERANCE, scale=1)
        vars(own.param)[name] = parameter


@pytest.mark.parametrize("owner", [CausalSelfAttention, MultiheadAttention])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("shape", [(3, 7, 6), (1, 1, 6), (2, 40, 6)])
def test_torch_agrees(owner: Any, shape: Shape, bias: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """The batch taken in several parts, too."""
    monkeypatch.setattr(attention, "NUM_SCORES", 200)
    own, input, grad_output = bound(owner(6, 3, bias=bias), shape), normal(*shape), normal(*shape, seed=1)
    theirs = torch.nn.MultiheadAttention(6, 3, bias=bias, batch_first=True, dtype=torch.float64)
    theirs.load_state_dict({name: torch.from_numpy(parameter) for name, parameter in vars(own.param).items()})
    leaf = torch.from_numpy(input).requires_grad_()
    later = torch.ones(shape[1], shape[1], dtype=torch.bool).triu(1) if owner is CausalSelfAttention else None
    expected = theirs(leaf, leaf, leaf, attn_mask=later)[0]
    torch.autograd.backward(expected, torch.from_numpy(grad_output))
    output, saved = own.forward(input)
    assert_equal(output, expected.detach().numpy(), tolerance=TOLERANCE)
    assert leaf.grad is not None
    assert_equal(own.backward(saved, grad_output), leaf.grad.numpy(), tolerance=TOLERANCE)
    for name, parameter in theirs.named_parameters():
        assert_equal(vars(own.grad)[name], np.asarray(parameter.grad), tolerance=TOLERANCE)


@pytest.mark.parametrize("owner", [CausalSelfAttention, MultiheadAttention])
@pytest.mark.parametrize(("window", "positions"), [(1, None), (3, None), (None, "alibi"), (4, "alibi")])
def test_torch_agrees_on_windows_and_distances(owner: Any, window: int | None, positions: Any) -> None:
    """torch's own class takes numbers to add to its scores."""
    own, input = bound(owner(8, 4, window=window, positions=positions), (2, 7, 8)), normal(2, 7, 8)
    theirs = torch.nn.MultiheadAttention(8, 4, batch_first=True, dtype=torch.float64)
    theirs.load_state_dict({name: torch.from_numpy(parameter) for name, parameter in vars(own.param).items()})
    distance = np.abs(np.subtract.outer(range(7), range(7)))
    offset = -np.multiply.outer(SLOPES[4] if positions else [0.0] * 4, distance)
    offset[:, [[not sees(own, t, s) for s in range(7)] for t in range(7)]] = -np.inf
    leaf, grad_output = torch.from_numpy(input).requires_grad_(), normal(2, 7, 8, seed=1)
    expected = theirs(leaf, leaf, leaf, attn_mask=torch.from_numpy(np.tile(offset, (2, 1, 1))))[0]
    torch.autograd.backward(expected, torch.from_numpy(grad_output))
    output, saved = own.forward(input)
    assert_equal(output, expected.detach().numpy(), tolerance=TOLERANCE)
    assert leaf.grad is not None
    assert_equal(own.backward(saved, grad_output), leaf.grad.numpy(), tolerance=TOLERANCE)
    for name, parameter in theirs.named_parameters():
        assert_equal(vars(own.grad)[name], np.asarray(parameter.grad), tolerance=TOLERANCE, scale=1)


@pytest.mark.parametrize("num_kv_heads", [1, 2, 4])
@pytest.mark.parametrize("is_causal", [False, True])
def test_torch_agrees_on_keys_of_several_heads(is_causal: bool, num_kv_heads: int) -> None:
    """scaled_dot_product_attention with enable_gqa."""
    owner: Any = CausalSelfAttention if is_causal else MultiheadAttention
    own, input = bound(owner(8, 4, num_kv_heads=num_kv_heads), (2, 7, 8)), normal(2, 7, 8)
    param = {name: torch.from_numpy(parameter).requires_grad_() for name, parameter in vars(own.param).items()}
    leaf, grad_output = torch.from_numpy(input).requires_grad_(), normal(2, 7, 8, seed=1)
    projected = leaf @ param["in_proj_weight"].mT + param["in_proj_bias"]
    query, key, value = (
        torch.unflatten(part, 2, (-1, 2)).transpose(1, 2)
        for part in torch.split(projected, [8, 2 * num_kv_heads, 2 * num_kv_heads], 2)
    )
    attended = torch.nn.functional.scaled_dot_product_attention(query, key, value, is_causal=is_causal, enable_gqa=True)
    expected = attended.transpose(1, 2).flatten(2) @ param["out_proj.weight"].mT + param["out_proj.bias"]
    torch.autograd.backward(expected, torch.from_numpy(grad_output))
    output, saved = own.forward(input)
    assert_equal(output, expected.detach().numpy(), tolerance=TOLERANCE)
    assert leaf.grad is not None
    assert_equal(own.backward(saved, grad_output), leaf.grad.numpy(), tolerance=TOLERANCE)
    for name, parameter in param.items():
        assert_equal(vars(own.grad)[name], np.asarray(parameter.grad), tolerance=TOLERANCE, scale=1)


@pytest.mark.parametrize("num_heads", [1, 2, 3, 4, 6, 8])
def test_slopes(num_heads: int) -> None:
    """Of powers of 2 as ALiBi's paper states them; others have those of the next lower power, and more between them."""
    found = slopes(num_heads)
    assert len(set(found)) == num_heads
    if num_heads in (1, 2, 4, 8):
        np.testing.assert_allclose(found, 2.0 ** (-8 / num_heads * np.arange(1, num_heads + 1)), rtol=1e-15)
    else:
        lower = slopes(2 if num_heads == 3 else 4)
        np.testing.assert_array_equal(found[: len(lower)], lower)
        np.testing.assert_array_equal(found[len(lower) :], slopes(2 * len(lower))[::2][: num_heads - len(lower)])


def test_a_rotation_keeps_lengths_and_is_undone() -> None:
    array = normal(2, 3, 5, 4)
    once = array.copy()
    rotate_in_place(once)
    np.testing.assert_array_equal(once[:, :, 0], array[:, :, 0])
    assert (once[:, :, 1:] != array[:, :, 1:]).all()
    np.testing.assert_allclose((once**2).sum(axis=-1), (array**2).sum(axis=-1), rtol=1e-14)
    rotate_in_place(once, back=True)
    np.testing.assert_allclose(once, array, rtol=0, atol=1e-15)


def test_rotary_scores_depend_on_the_difference_of_times() -> None:
    """A sequence that comes 3 times later, behind times that nobody sees, attends as before."""
    own, input = bound(CausalSelfAttention(8, 2, window=2, positions="rotary"), (1, 9, 8)), normal(1, 9, 8)
    late, _ = own.forward(input)
    early, _ = own.forward(input[:, 3:])
    np.testing.assert_allclose(late[:, 4:], early[:, 1:], rtol=1e-12)
    plain = bound(CausalSelfAttention(8, 2, window=2), (1, 9, 8))
    assert np.abs(plain.forward(input)[0][:, 1:] - late[:, 1:]).min() > 1e-9


LENGTHS = np.array([4, 1, 6])


def padded(owner: Any, **settings: Any) -> tuple[Sequential, SelfAttention]:
    layer = owner(8, 4, **settings)
    model = Sequential(layer, dtype="float64", seed=1)
    model.param_arena[:] = np.random.default_rng(2).standard_normal(model.num_parameters)
    return model, layer


@pytest.mark.parametrize("is_causal", [False, True])
def test_torch_agrees_on_a_padding_mask(is_causal: bool) -> None:
    model, own = padded(PaddedCausalSelfAttention if is_causal else PaddedMultiheadAttention)
    input, grad_output = normal(3, 6, 8), normal(3, 6, 8, seed=1)
    counts = np.arange(6) < LENGTHS[:, np.newaxis]
    theirs = torch.nn.MultiheadAttention(8, 4, batch_first=True, dtype=torch.float64)
    theirs.load_state_dict({name: torch.from_numpy(parameter) for name, parameter in vars(own.param).items()})
    leaf = torch.from_numpy(input).requires_grad_()
    later = torch.ones(6, 6, dtype=torch.bool).triu(1) if is_causal else None
    expected = theirs(leaf, leaf, leaf, attn_mask=later, key_padding_mask=torch.from_numpy(~counts))[0]
    kept = torch.where(torch.from_numpy(counts)[..., None], expected, 0)
    torch.autograd.backward(kept, torch.from_numpy(grad_output))
    output, saved = model.forward(Padded(input, LENGTHS))
    assert_equal(output, kept.detach().numpy(), tolerance=TOLERANCE)
    assert leaf.grad is not None
    assert_equal(model.backward(saved, grad_output), leaf.grad.numpy(), tolerance=TOLERANCE)
    for name, parameter in theirs.named_parameters():
        assert_equal(vars(own.grad)[name], np.asarray(parameter.grad), tolerance=TOLERANCE, scale=1)


@pytest.mark.parametrize("owner", [PaddedCausalSelfAttention, PaddedMultiheadAttention])
@pytest.mark.parametrize("settings", [{}, {"window": 2, "positions": "rotary", "num_kv_heads": 2, "dropout": 0.25}])
def test_padding_changes_nothing_and_gets_nothing(owner: Any, settings: dict[str, Any]) -> None:
    model, _ = padded(owner, **settings)
    input, grad_output = normal(3, 6, 8), normal(3, 6, 8, seed=1)
    is_padding = np.arange(6) >= LENGTHS[:, np.newaxis]
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


@pytest.mark.parametrize("owner", [CausalSelfAttention, MultiheadAttention])
def test_each_sequence_is_as_it_would_be_alone(owner: Any) -> None:
    settings: dict[str, Any] = {"window": 3, "positions": "alibi"}
    of_lengths = PaddedCausalSelfAttention if owner is CausalSelfAttention else PaddedMultiheadAttention
    model, plain = (padded(each, **settings)[0] for each in (of_lengths, owner))
    input = normal(3, 6, 8)
    output = model(Padded(input, LENGTHS))
    for index, length in enumerate(LENGTHS):
        own = slice(index, index + 1), slice(length)
        np.testing.assert_allclose(output[own], plain(input[own]), rtol=1e-12)
    np.testing.assert_array_equal(model(Padded(input, np.full(3, 6))), plain(input))


def test_a_time_depends_on_no_later_one() -> None:
    own, input = bound(CausalSelfAttention(4, 2), (2, 6, 4)), normal(2, 6, 4)
    output, saved = own.forward(input)
    changed = input.copy()
    changed[:, 3] += 1
    other, _ = own.forward(changed)
    np.testing.assert_array_equal(other[:, :3], output[:, :3])
    assert (other[:, 3:] != output[:, 3:]).all()
    grad_output = np.zeros_like(output)
    grad_output[:, 2] = 1
    grad_input = own.backward(saved, grad_output)
    assert (grad_input[:, 3:] == 0).all()
    assert (grad_input[:, :3] != 0).all()


def test_a_time_depends_on_all_where_none_is_hidden() -> None:
    own, input = bound(MultiheadAttention(4, 2), (2, 6, 4)), normal(2, 6, 4)
    output, saved = own.forward(input)
    changed = input.copy()
    changed[:, 3] += 1
    assert (own.forward(changed)[0] != output).all()
    grad_output = np.zeros_like(output)
    grad_output[:, 2] = 1
    assert (own.backward(saved, grad_output) != 0).all()


def test_a_case_by_hand() -> None:
    """Query and key are 0, so each time is the mean of the values up to it."""
    own = bound(CausalSelfAttention(1, 1, bias=False), (1, 3, 1))
    own.param.in_proj_weight[...] = [[0], [0], [2]]
    vars(own.param)["out_proj.weight"][...] = 5
    output, _ = own.forward(np.array([[[1.0], [4], [7]]]))
    np.testing.assert_allclose(output.ravel(), [10, 25, 40], rtol=1e-15)
    every = bound(MultiheadAttention(1, 1, bias=False), (1, 3, 1))
    vars(every.param).update(vars(own.param))
    np.testing.assert_allclose(every.forward(np.array([[[1.0], [4], [7]]]))[0].ravel(), [40, 40, 40], rtol=1e-15)


def test_probabilities_of_one_have_no_gradient() -> None:
    """Keys of 1e4 would enlarge what rounding leaves of a difference; of a difference of equals nothing is left."""
    own = bound(CausalSelfAttention(4, 2), (2, 5, 4))
    _, saved = own.forward(1e4 * normal(2, 5, 4))
    own.backward(saved, normal(2, 5, 4, seed=1))
    query_and_key, value = np.split(own.grad.in_proj_weight, [8])
    assert (query_and_key == 0).all()
    assert (value != 0).all()


def test_evaluation_drops_nothing() -> None:
    dropping, whole = (bound(CausalSelfAttention(4, 2, dropout), (2, 5, 4)) for dropout in (0.5, 0))
    input = normal(2, 5, 4)
    np.testing.assert_array_equal(dropping.infer(input), whole.forward(input)[0])
    np.testing.assert_array_equal(whole.infer(input), whole.forward(input)[0])
    assert (dropping.forward(input)[0] != whole.forward(input)[0]).any()
    assert set(np.unique(dropping.noise.mask)) == {0, 2}
    assert dropping.noise.mask.shape == (2, 2, 5, 5)
    assert vars(whole.noise) == {}


def test_initial_values_are_torchs() -> None:
    layer = CausalSelfAttention(100, 4)
    Sequential(layer, dtype="float64")
    values = vars(layer.param)
    for name, bound in (("in_proj_weight", math.sqrt(6 / 400)), ("out_proj.weight", 0.1)):
        assert 0.999 * bound < np.abs(values[name]).max() <= bound
        assert abs(values[name].std() - bound / 3**0.5) < 0.01 * bound
    assert not values["in_proj_bias"].any()
    assert not values["out_proj.bias"].any()
    Sequential(layer, initializer=Constant(0.75))
    assert {name: set(np.unique(values)) for name, values in vars(layer.param).items()} == {
        "in_proj_weight": {0.75},
        "in_proj_bias": {0},
        "out_proj.weight": {0.75},
        "out_proj.bias": {0},
    }


def test_its_size() -> None:
    layer = CausalSelfAttention(6, 2)
    assert layer.num_parameters == 4 * 36 + 4 * 6
    # Each weight for each of 2 * 5 times; for each of the 2 * 25 pairs of times 6 products with keys, 6 with values.
    assert layer.num_products((2, 5, 6)) == 10 * layer.num_parameters + 2 * 25 * 12


@pytest.mark.parametrize("shape", [(4, 6), (2, 4, 5), (2, 3, 4, 6)])
def test_inputs_that_do_not_fit(shape: Shape) -> None:
    words = f"CausalSelfAttention takes (batch, time, embed_dim=6), the input has shape {shape}"
    for method in ("forward", "infer"):
        with pytest.raises(ValueError, match=f"^{re.escape(words)}$"):
            getattr(bound(CausalSelfAttention(6, 2), (2, 4, 6)), method)(np.zeros(shape))


def test_a_gradient_that_would_broadcast_is_refused() -> None:
    layer = bound(CausalSelfAttention(6, 2), (2, 4, 6))
    _, saved = layer.forward(normal(2, 4, 6))
    with pytest.raises(ValueError, match=r"its output's shape \(2, 4, 6\), not \(1, 4, 6\)"):
        layer.backward(saved, normal(1, 4, 6))


def test_a_mask_of_another_shape_is_refused() -> None:
    layer = bound(CausalSelfAttention(6, 2, dropout=0.5), (2, 4, 6))
    layer.noise = SimpleNamespace(mask=np.ones((1, 2, 4, 4)))
    with pytest.raises(ValueError, match=r"has a mask of shape \(1, 2, 4, 4\), .* and needs \(2, 2, 4, 4\)"):
        layer.forward(normal(2, 4, 6))


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ((6, 4), "num_heads must divide embed_dim=6, 4 doesn't"),
        ((0, 1), "embed_dim must be at least 1, not 0"),
        ((6, 0), "num_heads must be at least 1, not 0"),
        ((6, 2, 1.5), "dropout must be between 0 and 1, not 1.5"),
        ((6, 2, math.nan), "dropout must be between 0 and 1, not nan"),
    ],
)
def test_settings_that_are_none(settings: tuple[int, int], words: str) -> None:
    with pytest.raises(ValueError, match=f"^{words}$"):
        CausalSelfAttention(*settings)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"num_kv_heads": 0}, "num_kv_heads must be at least 1, not 0"),
        ({"num_kv_heads": 3}, "num_kv_heads must divide num_heads=4, 3 doesn't"),
        ({"window": 0}, "window must be at least 1, not 0"),
        ({"positions": "learned"}, "positions must be rotary or alibi, not 'learned'"),
        ({"positions": "rotary"}, "positions: rotary needs an even number of features for each head, not 12 / 4"),
    ],
)
def test_other_settings_that_are_none(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=f"^{words}$"):
        MultiheadAttention(12, 4, **settings)
