"""What holds for every plain layer: torch and differences agree with it. It keeps the contract."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from types import SimpleNamespace
from typing import Any, TypeAlias

import hypothesis.extra.numpy as hnp
import hypothesis.strategies as st
import numpy as np
import pytest
import torch
from comparing import DIFFERENCE_TOLERANCE, assert_equal, central_differences, combinations, frozen
from every_component import each
from hypothesis import given, settings
from layouts import LAYOUTS
from plain_layers import LAYERS, bound, each_layer, inputs, our_results

from nn_manual import Sequential
from nn_manual.arrays import Array, Shape
from nn_manual.layers import CELU, LSTM, Activation, Bilinear, Hardsigmoid, Layer, LayerNorm, Linear, PReLU, Tanhshrink
from nn_manual.layers.activations import Piecewise
from nn_manual.layers.recurrent import Recurrent
from nn_manual.model.initializers import Constant
from nn_manual.registry import components

#: The parameters of each layer that an initializer fills: the weights of linear maps and of tables, no other.
FILLED = {
    **{name: {"weight"} for name in ("Bilinear", "Embedding", "EmbeddingBag", "Linear")},
    **{name: {"weight"} for name in ("LearnedPositions", "PaddedEmbeddingBag")},
    **{f"{name}{num_dims}d": {"weight"} for name in ("Conv", "ConvTranspose") for num_dims in (1, 2, 3)},
    **{
        f"{name}Attention": {"in_proj_weight", "out_proj.weight"}
        for name in ("CausalSelf", "Multihead", "PaddedCausalSelf", "PaddedMultihead")
    },
    "WeightNorm": {"parametrizations.weight.original1"},
    "SpectralNorm": {"parametrizations.weight.original"},
    **{
        name: {f"weight_{map}_l{k}{way}" for map in ("ih", "hh", "hr") for k in (0, 1, 2) for way in ("", "_reverse")}
        for name in ("RNN", "LSTM", "GRU", "PaddedRNN", "PaddedLSTM", "PaddedGRU")
    },
}

#: Layers of which torch computes float64 with numbers that are rounded to float32. Their own reference doesn't.
OF_FLOAT32 = (CELU, Hardsigmoid)


@pytest.mark.parametrize("name", components(Layer))
def test_an_initializer_fills_the_weights_of_maps_and_tables_alone(name: str) -> None:
    for layer, _ in components(Layer)[name].examples():
        for _, inner in Sequential(layer, initializer=Constant(0.75)).named_layers():
            filled = {parameter for parameter, view in vars(inner.param).items() if (view == 0.75).any()}
            assert filled == FILLED.get(type(inner).__name__, set()) & vars(inner.param).keys(), inner


def torch_results(layer: Layer, input: Array, grad_output: Array) -> tuple[Array, SimpleNamespace]:
    """The output, and the gradients by the names of formulas, of torch's layer of the same name and fields."""
    given = {field.name: getattr(layer, field.name) for field in fields(layer)}  # type: ignore[arg-type]  # a dataclass
    options = {name: tuple(value) if isinstance(value, list) else value for name, value in given.items()}
    parameters = {name: torch.from_numpy(array.copy()).requires_grad_() for name, array in vars(layer.param).items()}
    leaf = torch.from_numpy(input.copy()).requires_grad_()
    if hasattr(torch.nn, type(layer).__name__) and not isinstance(layer, OF_FLOAT32):
        given_to_it = (leaf, leaf) if isinstance(layer, Bilinear) else (leaf,)  # of the input with itself
        module = getattr(torch.nn, type(layer).__name__)(**options)
        output = torch.func.functional_call(module, parameters, given_to_it)
        output = output[0] if isinstance(layer, Recurrent) else output  # without the last state
    else:
        output = layer.reference(leaf, **parameters)
    output.backward(torch.from_numpy(grad_output.copy()))
    gradients = {f"grad_{name}": np.asarray(parameter.grad) for name, parameter in parameters.items()}
    assert leaf.grad is not None
    return output.detach().numpy(), SimpleNamespace(grad_input=leaf.grad.numpy(), **gradients)


def assert_as_torch(layer: Layer, input: Array, grad_output: Array) -> None:
    output, gradients = our_results(layer, input, grad_output)
    torch_output, torch_gradients = torch_results(layer, input, grad_output)
    scale = scale_of_terms(layer, input, grad_output)
    assert_equal(output, torch_output, scale=scale)
    assert vars(gradients).keys() == vars(torch_gradients).keys()
    for name, gradient in vars(gradients).items():
        assert_equal(gradient, vars(torch_gradients)[name], scale=scale)


def scale_of_terms(layer: Layer, input: Array, grad_output: Array) -> Any:
    """How large the terms are where they cancel: in a LayerNorm of one or two numbers nothing remains of them, or what
    eps leaves; a small number is nearly its hyperbolic tangent, and torch's slope is 1 minus almost 1.
    """
    if isinstance(layer, Tanhshrink):
        return max(np.abs(array).max(initial=0) for array in (input, grad_output))
    if not isinstance(layer, LayerNorm) or layer.shape > (2,) or not input.size:
        return 0
    largest = max(np.abs(array).max() for array in (input, grad_output, *vars(layer.param).values()))
    return largest**2 / np.sqrt(input.var(axis=-1) + layer.eps).min()


#: torch says that its own convolution makes a copy for an even kernel.
@pytest.mark.filterwarnings("ignore:Using padding='same' with even kernel lengths")
@pytest.mark.filterwarnings("ignore:LSTM with projections is not supported with oneDNN")  # torch's choice, said once
@each("layer, shape", LAYERS)
@combinations
def test_torch_agrees(layer: Layer, shape: Shape, kind: str, other_kind: str, dtype: str) -> None:
    may_lose_digits = isinstance(layer, Recurrent) and (layer.bidirectional or not isinstance(layer, LSTM))
    if may_lose_digits and "scattered" in (kind, other_kind):
        return  # 1 - h * h of a number near 1 is mostly rounding, in torch too: the catalogue measures how much
    input, grad_output = inputs(layer, shape, kind, other_kind, dtype)
    assert_as_torch(bound(layer, dtype, kind), input, grad_output)
    assert_as_torch(bound(layer, dtype, "random"), input, grad_output)


#: How an array can lie in memory.
Layout: TypeAlias = Callable[[Array], Array]
any_layout = st.sampled_from([np.ascontiguousarray, *LAYOUTS.values()])


@st.composite
def shaped_layers(draw: st.DrawFn) -> tuple[Layer, Shape]:
    """Any layer, with any leading dimensions: none, empty, one, several."""
    shape = draw(hnp.array_shapes(min_dims=1, max_dims=4, min_side=0, max_side=4))
    features = max(shape[-1], 1)
    linear = st.builds(Linear, st.just(features), st.integers(1, 4), st.booleans())
    norm = st.builds(LayerNorm, st.just(features), st.just(1e-5), st.booleans(), st.booleans())
    shape = (*shape[:-1], features)
    slopes = st.builds(PReLU, st.sampled_from([1, *(size for size in shape[1:2] if size)]))
    elementwise = [each for each in components(Layer).values() if issubclass(each, Activation | Piecewise)]
    others = [st.sampled_from([layer for layer, _ in each.examples()]) for each in elementwise if each is not PReLU]
    return draw(st.one_of(linear, norm, slopes, *others)), shape


@given(shaped_layers(), any_layout, any_layout, st.integers(0, 99))
@settings(max_examples=200, deadline=None, derandomize=True)
def test_shapes_and_layouts(example: tuple[Layer, Shape], layout: Layout, other_layout: Layout, seed: int) -> None:
    layer, shape = example
    input, grad_output = inputs(layer, shape, "random", "random", "float64", seed)
    assert layer.output_shape(shape) == grad_output.shape
    assert_as_torch(bound(layer, "float64"), frozen(layout(input)), frozen(other_layout(grad_output)))


@each("layer, shape", LAYERS)
def test_differences_agree(layer: Layer, shape: Shape) -> None:
    input, grad_output = inputs(layer, shape, "random", "random", "float64")
    _, gradients = our_results(bound(layer, "float64"), input, grad_output)

    def of_input(input: Array) -> Any:
        return (layer.forward(input)[0] * grad_output).sum()

    scale = np.abs(layer.forward(input)[0] * grad_output).max()  # of what is subtracted
    differences = central_differences(of_input, input)
    assert_equal(gradients.grad_input, differences, tolerance=DIFFERENCE_TOLERANCE, scale=scale)
    for name, parameter in vars(layer.param).items():

        def of_parameter(values: Array, name: str = name) -> Any:
            setattr(layer.param, name, values)
            return of_input(input)

        expected = central_differences(of_parameter, parameter)
        assert_equal(vars(gradients)[f"grad_{name}"], expected, tolerance=DIFFERENCE_TOLERANCE, scale=scale)
        setattr(layer.param, name, parameter)


@each_layer
def test_runs_twice_before_either_is_taken_back(layer: Layer, shape: Shape) -> None:
    bound(layer, "float64")
    first, second = (inputs(layer, shape, "random", "random", "float64", seed) for seed in (1, 2))
    expected = [our_results(layer, *arrays)[1] for arrays in (first, second)]
    saved = [layer.forward(input)[1] for input, _ in (first, second)]
    for index in (0, 1):
        grad_input = layer.backward(saved[index], (first, second)[index][1])
        np.testing.assert_array_equal(grad_input, expected[index].grad_input)
        for name, gradient in vars(layer.grad).items():
            np.testing.assert_array_equal(gradient, vars(expected[index])[f"grad_{name}"])


@each_layer
def test_backward_parameters_writes_what_backward_writes(layer: Layer, shape: Shape) -> None:
    bound(layer, "float32")
    input, grad_output = inputs(layer, shape, "random", "negative", "float32")
    _, gradients = our_results(layer, input, grad_output)
    bound(layer, "float32")
    layer.backward_parameters(layer.forward(input)[1], grad_output)
    for name, gradient in vars(layer.grad).items():
        np.testing.assert_array_equal(gradient, vars(gradients)[f"grad_{name}"])


@each_layer
def test_a_gradient_that_would_broadcast_is_refused(layer: Layer, shape: Shape) -> None:
    _, saved = bound(layer, "float64").forward(np.ones(shape))
    output_shape = layer.output_shape(shape)
    flattened = (int(np.prod(output_shape[:-1])), 1, output_shape[-1])
    for wrong in [(1,), output_shape[1:], (1, *output_shape), flattened, (*output_shape[:-1], output_shape[-1] + 1)]:
        with pytest.raises(ValueError, match=type(layer).__name__) as caught:
            layer.backward(saved, np.ones(wrong))
        assert str(output_shape) in str(caught.value)
        assert str(wrong) in str(caught.value)
