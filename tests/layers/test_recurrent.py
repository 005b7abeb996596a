"""Recurrent layers beside their formulas, one time and one example after the other."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from nn_manual import GRU, LSTM, RNN, Dropout, Flatten, Sequential, Unflatten
from nn_manual.arrays import Array
from nn_manual.layers.fast_forms import rows
from nn_manual.layers.recurrent import Recurrent
from nn_manual.model.initializers import Constant

CLASSES = (RNN, LSTM, GRU)


def bound(layer: Recurrent, seed: int = 0) -> Recurrent:
    Sequential(layer, dtype="float64", seed=seed)
    return layer


def sigmoid(x: Array) -> Array:
    result: Array = 1 / (1 + np.exp(-x))
    return result


def lstm_step(a: Array, b: Array, hidden: Array, cell: Array) -> tuple[Array, Array]:
    """The hidden numbers and the cell from the parts of the input and of the state before."""
    i, f, g, o = (a + b).reshape(4, len(hidden))
    cell = sigmoid(f) * cell + sigmoid(i) * np.tanh(g)
    return sigmoid(o) * np.tanh(cell), cell


def gru_step(a: Array, b: Array, hidden: Array, cell: Array) -> tuple[Array, Array]:
    (a_r, a_z, a_n), (b_r, b_z, b_n) = a.reshape(3, len(hidden)), b.reshape(3, len(hidden))
    z = sigmoid(a_z + b_z)
    return z * hidden + (1 - z) * np.tanh(a_n + sigmoid(a_r + b_r) * b_n), cell


def rnn_step(a: Array, b: Array, hidden: Array, cell: Array) -> tuple[Array, Array]:
    return np.tanh(a + b) + 0 * hidden, cell


def relu_step(a: Array, b: Array, hidden: Array, cell: Array) -> tuple[Array, Array]:
    return np.maximum(a + b, 0) + 0 * hidden, cell


def step_of(layer: Recurrent) -> Callable[[Array, Array, Array, Array], tuple[Array, Array]]:
    if isinstance(layer, RNN):
        return rnn_step if layer.nonlinearity == "tanh" else relu_step
    return lstm_step if isinstance(layer, LSTM) else gru_step


def by_loops(layer: Recurrent, input: Array) -> Array:
    """(time, batch, features), one example after the other, with the layer's masks of dropout."""
    param, size, step = vars(layer.param), layer.hidden_size, step_of(layer)
    for k in range(layer.num_layers):
        ways = []
        for way in ["", "_reverse"] if layer.bidirectional else [""]:
            output = np.zeros((*input.shape[:2], layer.state_size))
            for example in range(input.shape[1]):
                state, hidden, cell = np.zeros(layer.state_size), np.zeros(size), np.zeros(size)
                for time in reversed(range(len(input))) if way else range(len(input)):
                    a = param[f"weight_ih_l{k}{way}"] @ input[time, example]
                    b = param[f"weight_hh_l{k}{way}"] @ state
                    if layer.bias:
                        a, b = a + param[f"bias_ih_l{k}{way}"], b + param[f"bias_hh_l{k}{way}"]
                    hidden, cell = step(a, b, hidden, cell)
                    state = hidden
                    if getattr(layer, "proj_size", 0):
                        state = param[f"weight_hr_l{k}{way}"] @ hidden
                    output[time, example] = state
            ways.append(output)
        input = np.concatenate(ways, axis=2) * vars(layer.noise).get(f"mask_l{k}", 1)
    return input


#: The gates whose parts docstrings name, by the last of their lines: z_i of z, grad_z_i of grad_z, and so on.
PARTS = {LSTM: {"z": "ifgo"}, GRU: {"a": "rzn", "b": "rzn"}, RNN: {}}


def holds(condition: str, layer: Recurrent) -> bool:
    """Whether the layer's settings are as "nonlinearity = relu" or "proj_size > 0" says."""
    name, sign, value = condition.split()
    setting = getattr(layer, name)
    return setting > int(value) if sign == ">" else str(setting) == value


def run(lines: str, values: dict[str, Any], layer: Recurrent) -> None:
    """Formulas of the docstring, one after the other; the parts of z and grad_z have names of their own."""
    parts = PARTS[type(layer)]
    for line in lines.splitlines():
        formula, _, condition = line.partition(" where ")
        if condition and not holds(condition, layer):
            continue
        exec(formula.strip(), {**vars(np), "expit": sigmoid, "rows": rows}, values)
        name = formula.split()[0]
        if name in parts:
            gates = np.split(values[name], len(parts[name]), axis=1)
            values |= {f"{name}_{part}": gate for part, gate in zip(parts[name], gates, strict=True)}
        for whole, letters in parts.items():
            if name == f"grad_{whole}_{letters[-1]}":
                values[f"grad_{whole}"] = np.hstack([values[f"grad_{whole}_{gate}"] for gate in letters])


@pytest.mark.parametrize(
    "layer", [RNN(3, 2), RNN(3, 2, nonlinearity="relu"), LSTM(3, 2), LSTM(3, 4, proj_size=2), GRU(3, 2)], ids=repr
)
def test_docstring_agrees(layer: Recurrent) -> None:
    bound(layer)
    generator = np.random.default_rng(0)
    input, grad_output = generator.standard_normal((5, 4, 3)), generator.standard_normal((5, 4, 2))
    output, saved = layer.forward(input)
    found = {"output": output, "grad_input": layer.backward(saved, grad_output)}
    found |= {f"grad_{name}": grad for name, grad in vars(layer.grad).items()}
    paragraphs = inspect.cleandoc(type(layer).__doc__ or "").split("\n\n")
    forward, derivatives, backward, over_time = (each for each in paragraphs if each.startswith("    "))

    stated: dict[str, Any] = {name.removesuffix("_l0"): parameter for name, parameter in vars(layer.param).items()}
    stated |= {"input": input, "grad_output": grad_output, "output": np.empty_like(output)}
    h, c = np.zeros((4, layer.state_size)), np.zeros((4, layer.hidden_size))
    at_time = []
    for t in range(5):
        at_time.append({**stated, "t": t, "h": h, "c_before": c})
        run(forward, at_time[t], layer)
        h, c = at_time[t]["h"], at_time[t].get("c", c)
    grad_h, grad_c = np.zeros_like(h), np.zeros_like(c)
    for now in reversed(at_time):
        now |= {"grad_h": grad_h, "grad_after": grad_h, "grad_c": grad_c}
        run(derivatives, now, layer)
        run(backward, now, layer)
        grad_h, grad_c = now["grad_after" if isinstance(layer, LSTM) else "grad_h"], now["grad_c"]
    for name in {"grad_z", "grad_a", "grad_b", "grad_h", "gated"} & at_time[0].keys():
        stated[name] = np.stack([now[name] for now in at_time])
    run(over_time, stated, layer)
    for name, value in found.items():
        np.testing.assert_allclose(value, stated[name.removesuffix("_l0")], rtol=0, atol=1e-14)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("num_layers", [1, 3])
@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("layer_class", [*CLASSES, partial(RNN, nonlinearity="relu")])
def test_loops_agree(
    layer_class: Callable[..., Recurrent], bidirectional: bool, num_layers: int, bias: bool
) -> None:
    layer = bound(layer_class(3, 2, num_layers, bias, bidirectional=bidirectional))
    input = np.random.default_rng(0).standard_normal((5, 4, 3))
    np.testing.assert_allclose(layer.forward(input)[0], by_loops(layer, input), rtol=0, atol=1e-15)


@pytest.mark.parametrize("layer_class", CLASSES)
@pytest.mark.parametrize("bidirectional", [False, True])
def test_batch_first_changes_the_order_alone(layer_class: type[Recurrent], bidirectional: bool) -> None:
    first = bound(layer_class(3, 2, 2, batch_first=True, bidirectional=bidirectional))
    last = bound(layer_class(3, 2, 2, bidirectional=bidirectional))
    input = np.random.default_rng(0).standard_normal((4, 5, 3))
    output, saved = first.forward(input)
    other_output, other_saved = last.forward(input.swapaxes(0, 1))
    np.testing.assert_array_equal(output, other_output.swapaxes(0, 1))
    grad_output = np.random.default_rng(1).standard_normal(output.shape)
    grad_input = first.backward(saved, grad_output)
    np.testing.assert_array_equal(grad_input, last.backward(other_saved, grad_output.swapaxes(0, 1)).swapaxes(0, 1))
    for name, grad in vars(first.grad).items():
        np.testing.assert_array_equal(grad, vars(last.grad)[name])


@pytest.mark.parametrize("layer_class", CLASSES)
def test_the_way_back_is_a_layer_of_its_own_in_reversed_time(layer_class: type[Recurrent]) -> None:
    both, alone = bound(layer_class(3, 2, bidirectional=True)), bound(layer_class(3, 2))
    for name, parameter in vars(alone.param).items():
        parameter[...] = vars(both.param)[f"{name}_reverse"]
    generator = np.random.default_rng(0)
    input, grad_output = generator.standard_normal((5, 4, 3)), generator.standard_normal((5, 4, 4))
    grad_output[:, :, :2] = 0  # nothing comes back from the other way
    output, saved = both.forward(input)
    other_output, other_saved = alone.forward(input[::-1])
    np.testing.assert_array_equal(output[:, :, 2:], other_output[::-1])
    grad_input = both.backward(saved, grad_output)
    np.testing.assert_array_equal(grad_input, alone.backward(other_saved, grad_output[::-1, :, 2:])[::-1])
    for name, grad in vars(alone.grad).items():
        np.testing.assert_array_equal(grad, vars(both.grad)[f"{name}_reverse"])
        assert not vars(both.grad)[name].any()


DROPPING = [
    *(layer_class(3, 2, 3, dropout=0.5, bidirectional=True) for layer_class in CLASSES),
    LSTM(3, 4, 2, dropout=0.25, proj_size=3),
    LSTM(3, 4, 3, bias=False, bidirectional=True, proj_size=2),
]


@pytest.mark.parametrize("layer", DROPPING, ids=repr)
def test_loops_agree_with_dropout_and_projections(layer: Recurrent) -> None:
    model, input = Sequential(layer, dtype="float64", seed=0), np.random.default_rng(0).standard_normal((5, 4, 3))
    output, _ = model.forward(input)
    np.testing.assert_allclose(output, by_loops(layer, input), rtol=0, atol=1e-15)
    layer.noise = SimpleNamespace()
    np.testing.assert_allclose(model(input), by_loops(layer, input), rtol=0, atol=1e-15)


@pytest.mark.parametrize("layer_class", CLASSES)
def test_dropout_stands_between_the_layers(layer_class: type[Recurrent]) -> None:
    """Two layers with a Dropout between them, with the same mask, have the same gradients bit for bit."""
    layer, input = layer_class(3, 2, 2, dropout=0.5), np.random.default_rng(0).standard_normal((5, 4, 3))
    model = Sequential(layer, dtype="float64", seed=0)
    output, saved = model.forward(input)
    mask = layer.noise.mask_l0
    assert set(mask.ravel()) == {0, 2}
    apart = [layer_class(3, 2), layer_class(2, 2)]
    for k, alone in enumerate(apart):
        bound(alone)
        for name, parameter in vars(alone.param).items():
            parameter[...] = vars(layer.param)[name.replace("_l0", f"_l{k}")]
    first, saved_first = apart[0].forward(input)
    last, saved_last = apart[1].forward(first * mask)
    np.testing.assert_array_equal(output, last)
    grad_output = np.random.default_rng(1).standard_normal(output.shape)
    grad_input = model.backward(saved, grad_output)
    through = apart[0].backward(saved_first, apart[1].backward(saved_last, grad_output) * mask)
    np.testing.assert_array_equal(grad_input, through)
    for k, alone in enumerate(apart):
        for name, grad in vars(alone.grad).items():
            np.testing.assert_array_equal(grad, vars(layer.grad)[name.replace("_l0", f"_l{k}")])


def test_without_dropout_nothing_is_drawn() -> None:
    """The layers behind it have the numbers that they had without it."""
    dropout, behind = Dropout(), Dropout()
    Sequential(dropout, seed=0).forward(np.ones((4, 3), np.float32))
    lstm = LSTM(3, 3, batch_first=True)
    Sequential(Unflatten(1, [1, 3]), lstm, Flatten(), behind, seed=0).forward(np.ones((4, 3), np.float32))
    assert not lstm.draws
    assert not vars(lstm.noise)
    np.testing.assert_array_equal(dropout.noise.mask, behind.noise.mask)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: GRU(3, 2, 2, dropout=1.5), "dropout must be between 0 and 1, not 1.5"),
        (lambda: RNN(3, 2, dropout=0.5), "dropout=0.5 stands between layers: it needs num_layers of at least 2, not 1"),
        (lambda: LSTM(3, 2, proj_size=2), "proj_size must be at least 0 and below hidden_size=2, not 2"),
        (lambda: LSTM(3, 2, proj_size=-1), "proj_size must be at least 0 and below hidden_size=2, not -1"),
    ],
)
def test_settings_out_of_range(make: Callable[[], Recurrent], message: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        make()


@pytest.mark.parametrize("layer_class", CLASSES)
def test_shapes_and_names_of_two_ways_are_torchs(layer_class: type[Recurrent]) -> None:
    layer = layer_class(3, 2, num_layers=2, bidirectional=True)
    theirs = getattr(torch.nn, layer_class.__name__)(3, 2, num_layers=2, bidirectional=True)
    assert layer.parameter_shapes() == {name: tuple(each.shape) for name, each in theirs.named_parameters()}
    assert list(layer.parameter_shapes()) == [name for name, _ in theirs.named_parameters()]
    assert layer.output_shape((5, 4, 3)) == (5, 4, 4)


@pytest.mark.parametrize("bias", [False, True])
def test_shapes_and_names_of_projections_are_torchs(bias: bool) -> None:
    layer = LSTM(3, 5, 2, bias, bidirectional=True, proj_size=2)
    theirs = torch.nn.LSTM(3, 5, 2, bias, bidirectional=True, proj_size=2)
    assert list(layer.parameter_shapes().items()) == [(name, tuple(p.shape)) for name, p in theirs.named_parameters()]
    assert layer.output_shape((5, 4, 3)) == (5, 4, 4)


def test_another_nonlinearity() -> None:
    with pytest.raises(ValueError, match=r"^nonlinearity must be tanh or relu, not 'elu'$"):
        RNN(3, 2, nonlinearity="elu")  # type: ignore[arg-type]  # on purpose


def test_a_time_depends_on_those_before_it_alone() -> None:
    lstm = bound(LSTM(3, 2))
    input = np.random.default_rng(0).standard_normal((5, 4, 3))
    output, saved = lstm.forward(input)
    grad_output = np.zeros_like(output)
    grad_output[2] = 1
    grad_input = lstm.backward(saved, grad_output)
    assert (grad_input[:3] != 0).all()
    assert (grad_input[3:] == 0).all()


def test_a_case_by_hand() -> None:
    """All gates are 0 but for the new value: each is half open, and the cell halves and gains half of tanh(1)."""
    lstm = LSTM(1, 1)
    Sequential(lstm, dtype="float64", initializer=Constant(0))
    lstm.param.weight_ih_l0[2] = 1
    output, _ = lstm.forward(np.ones((3, 1, 1)))
    half = np.tanh(1) / 2
    np.testing.assert_allclose(output.ravel(), np.tanh([half, 1.5 * half, 1.75 * half]) / 2, rtol=1e-15)


def test_initial_values_are_torchs() -> None:
    values = bound(LSTM(20, 100)).param.weight_hh_l0
    assert 0.0999 < np.abs(values).max() <= 0.1
    assert abs(values.std() - 0.2 / 12**0.5) < 1e-3


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        ((4, 3), "LSTM takes (time, batch, input_size=3), the input has shape (4, 3)"),
        ((4, 2, 5), "LSTM takes (time, batch, input_size=3), the input has shape (4, 2, 5)"),
        ((0, 2, 3), "LSTM takes (time, batch, input_size=3), the input has shape (0, 2, 3)"),
    ],
)
def test_inputs_that_do_not_fit(shape: tuple[int, ...], message: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        bound(LSTM(3, 2)).forward(np.zeros(shape))


@pytest.mark.parametrize("sizes", [(0, 1, 1), (1, 0, 1), (1, 1, 0)])
def test_sizes_below_one(sizes: tuple[int, int, int]) -> None:
    with pytest.raises(ValueError, match=r"_(size|layers) must be at least 1, not 0$"):
        LSTM(*sizes)


def test_more_layers_than_anybody_trains() -> None:
    assert LSTM(1, 1, num_layers=1000).num_layers == 1000
    with pytest.raises(ValueError, match=r"^num_layers must be at most 1000, not 1001$"):
        LSTM(1, 1, num_layers=1001)
