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
from comparing import DIFFERENCE_TOLERANCE, assert_equal, central_differences, freeze

from nn_manual import CausalSelfAttention, Layer, MultiheadAttention, Sequential
from nn_manual.arrays import Array, Shape
from nn_manual.layers import attention
from nn_manual.layers.attention import SelfAttention
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


def by_loops(layer: SelfAttention, input: Array) -> Array:
    """The output, for each time of each example a weighted mean of the values that it sees, head by head."""
    param, mask = vars(layer.param), vars(layer.noise).get("mask")
    width, size = layer.embed_dim // layer.num_heads, layer.embed_dim
    bias = param.get("in_proj_bias", np.zeros(3 * size))
    output = np.zeros_like(input)
    for b, example in enumerate(input):
        projected = [param["in_proj_weight"] @ now + bias for now in example]
        for t in range(len(example)):
            found, seen = [], t + 1 if isinstance(layer, CausalSelfAttention) else len(example)
            for head in range(layer.num_heads):
                query, key, value = (slice(i * size + head * width, i * size + (head + 1) * width) for i in range(3))
                weights = [
                    math.exp(sum(projected[t][query] * projected[s][key]) / math.sqrt(width)) for s in range(seen)
                ]
                kept = [1.0] * seen if mask is None else mask[b, head, t]
                parts = [weights[s] / sum(weights) * kept[s] * projected[s][value] for s in range(seen)]
                found.append(np.sum(parts, axis=0))
            output[b, t] = param["out_proj.weight"] @ np.concatenate(found) + param.get("out_proj.bias", 0)
    return output


@each_example
def test_loops_agree(layer: Layer, shape: Shape) -> None:
    own, input = bound(layer, shape), normal(*shape)
    assert_equal(own.forward(input)[0], by_loops(own, input), tolerance=TOLERANCE)


def split(array: Array, size: int, num_heads: int) -> Array:
    """(batch, time, size) as (batch, num_heads, time, width); of (batch, time, 3 size), three such arrays."""
    heads = array.reshape(*array.shape[:2], -1, num_heads, size // num_heads).transpose(2, 0, 3, 1, 4)
    return heads[0] if len(heads) == 1 else heads


def join(*arrays: Array) -> Array:
    batch, num_heads, time, width = arrays[0].shape
    joined = [array.transpose(0, 2, 1, 3).reshape(batch, time, num_heads * width) for array in arrays]
    return np.concatenate(joined, axis=-1)


@each_example
def test_docstring_agrees(layer: Layer, shape: Shape) -> None:
    own, input, grad_output = bound(layer, shape), normal(*shape), normal(*shape, seed=1)
    output, saved = own.forward(input)
    found = {"output": output, "grad_input": own.backward(saved, grad_output)}
    found |= {f"grad_{name}": grad for name, grad in vars(own.grad).items()}

    param, size = {"in_proj_bias": 0, "out_proj.bias": 0, **vars(own.param)}, own.embed_dim
    out_proj = SimpleNamespace(weight=param["out_proj.weight"], bias=param["out_proj.bias"])
    functions: dict[str, Any] = {"split": lambda array: split(array, size, own.num_heads), "join": join, "rows": rows}
    hidden = np.triu(np.full((shape[1], shape[1]), -np.inf), 1) if isinstance(own, CausalSelfAttention) else 0
    values: dict[str, Any] = {**param, "out_proj": out_proj, "grad_out_proj": SimpleNamespace(), "hidden": hidden}
    values |= {"mask": vars(own.noise).get("mask", 1), "width": size // own.num_heads}
    values |= {"input": input, "grad_output": grad_output}
    for line in re.findall(r"^    (\w.* = .*)$", inspect.cleandoc(SelfAttention.__doc__ or ""), re.MULTILINE):
        exec(line, vars(np) | functions, values)
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
    expected.backward(torch.from_numpy(grad_output))
    output, saved = own.forward(input)
    assert_equal(output, expected.detach().numpy(), tolerance=TOLERANCE)
    assert leaf.grad is not None
    assert_equal(own.backward(saved, grad_output), leaf.grad.numpy(), tolerance=TOLERANCE)
    for name, parameter in theirs.named_parameters():
        assert_equal(vars(own.grad)[name], np.asarray(parameter.grad), tolerance=TOLERANCE)


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
