"""The LSTM beside its formulas, one time and one example after the other."""

from __future__ import annotations

import inspect
import re
from typing import Any

import numpy as np
import pytest

from nn_manual import LSTM, Sequential
from nn_manual.arrays import Array
from nn_manual.layers.fast_forms import rows
from nn_manual.model.initializers import Constant


def bound(layer: LSTM, seed: int = 0) -> LSTM:
    Sequential(layer, dtype="float64", seed=seed)
    return layer


def sigmoid(x: Array) -> Array:
    result: Array = 1 / (1 + np.exp(-x))
    return result


def by_loops(lstm: LSTM, input: Array) -> Array:
    """(time, batch, hidden_size), with every number of the gates on its own line of the formula."""
    param, size = vars(lstm.param), lstm.hidden_size
    for k in range(lstm.num_layers):
        output = np.zeros((*input.shape[:2], size))
        for example in range(input.shape[1]):
            hidden, cell = np.zeros(size), np.zeros(size)
            for time in range(len(input)):
                gates = param[f"weight_ih_l{k}"] @ input[time, example] + param[f"weight_hh_l{k}"] @ hidden
                if lstm.bias:
                    gates += param[f"bias_ih_l{k}"] + param[f"bias_hh_l{k}"]
                i, f, g, o = gates[:size], gates[size : 2 * size], gates[2 * size : 3 * size], gates[3 * size :]
                cell = sigmoid(f) * cell + sigmoid(i) * np.tanh(g)
                hidden = output[time, example] = sigmoid(o) * np.tanh(cell)
        input = output
    return input


def run(lines: str, values: dict[str, Any]) -> None:
    """Formulas of the docstring, one after the other; the parts of z and grad_z have names of their own."""
    for line in lines.splitlines():
        exec(line.strip(), {**vars(np), "expit": sigmoid, "rows": rows}, values)
        if line.split()[0] == "z":
            values |= dict(zip(("z_i", "z_f", "z_g", "z_o"), np.split(values["z"], 4, axis=1), strict=True))
        if line.split()[0] == "grad_z_o":
            values["grad_z"] = np.hstack([values[f"grad_z_{gate}"] for gate in "ifgo"])


def test_docstring_agrees() -> None:
    lstm, generator = bound(LSTM(3, 2)), np.random.default_rng(0)
    input, grad_output = generator.standard_normal((5, 4, 3)), generator.standard_normal((5, 4, 2))
    output, saved = lstm.forward(input)
    found = {"output": output, "grad_input": lstm.backward(saved, grad_output)}
    found |= {f"grad_{name}": grad for name, grad in vars(lstm.grad).items()}
    paragraphs = inspect.cleandoc(LSTM.__doc__ or "").split("\n\n")
    forward, derivatives, backward, over_time = (each for each in paragraphs if each.startswith("    "))

    stated: dict[str, Any] = {name.removesuffix("_l0"): parameter for name, parameter in vars(lstm.param).items()}
    stated |= {"input": input, "grad_output": grad_output, "output": np.empty_like(output)}
    h = c = np.zeros((4, 2))
    at_time = []
    for t in range(5):
        at_time.append({**stated, "t": t, "h": h, "c_before": c})
        run(forward, at_time[t])
        h, c = at_time[t]["h"], at_time[t]["c"]
    grad_h = grad_c = np.zeros((4, 2))
    for now in reversed(at_time):
        now |= {"grad_h": grad_h, "grad_c": grad_c}
        run(derivatives, now)
        run(backward, now)
        grad_h, grad_c = now["grad_h"], now["grad_c"]
    stated["grad_z"] = np.stack([now["grad_z"] for now in at_time])
    run(over_time, stated)
    for name, value in found.items():
        np.testing.assert_allclose(value, stated[name.removesuffix("_l0")], rtol=0, atol=1e-14)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("num_layers", [1, 3])
def test_loops_agree(num_layers: int, bias: bool) -> None:
    lstm = bound(LSTM(3, 2, num_layers, bias))
    input = np.random.default_rng(0).standard_normal((5, 4, 3))
    np.testing.assert_allclose(lstm.forward(input)[0], by_loops(lstm, input), rtol=0, atol=1e-15)


def test_batch_first_changes_the_order_alone() -> None:
    first, last = bound(LSTM(3, 2, 2, batch_first=True)), bound(LSTM(3, 2, 2))
    input = np.random.default_rng(0).standard_normal((4, 5, 3))
    output, saved = first.forward(input)
    other_output, other_saved = last.forward(input.swapaxes(0, 1))
    np.testing.assert_array_equal(output, other_output.swapaxes(0, 1))
    grad_output = np.random.default_rng(1).standard_normal(output.shape)
    grad_input = first.backward(saved, grad_output)
    np.testing.assert_array_equal(grad_input, last.backward(other_saved, grad_output.swapaxes(0, 1)).swapaxes(0, 1))
    for name, grad in vars(first.grad).items():
        np.testing.assert_array_equal(grad, vars(last.grad)[name])


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
