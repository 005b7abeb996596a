"""Marked loops are loops in the trace, and its operations, one by one, are those that were recorded."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from nn_manual import LSTM, AdamW, MSELoss, Sequential
from nn_manual.arrays import Array, over_time
from nn_manual.trace.loops import folded
from nn_manual.trace.operation import Loop, Step, Trace, views
from nn_manual.trace.replay import replay
from nn_manual.trace.step import trace_step
from nn_manual.trace.tracer import Tracer

Formula = Callable[[Any], Any]


def traces(formula: Formula, num_steps: int = 6) -> tuple[Trace, Trace]:
    """As recorded, and with loops. Both repeat the formula on other values."""
    generator = np.random.default_rng(0)
    with Tracer({}) as tracer:
        result = formula(tracer.give("x", generator.standard_normal((num_steps, 3))))
        flat = tracer.trace({"result": result})
    other = generator.standard_normal((num_steps, 3))
    expected = formula(other.copy())
    trace = folded(flat, tracer.loops)
    for each in (flat, trace):
        np.testing.assert_array_equal(replay(each, {"x": other})["result"], expected)
    flat_names = [operation.name for operation in flat.unrolled()]
    assert [operation.name for operation in trace.unrolled()] == flat_names
    return flat, trace


def shape_of(steps: list[Step]) -> list[Any]:
    """How many iterations, and of how many operations, the loops have; and what stands between them."""
    return [(step.num_iterations, shape_of(step.operations)) if isinstance(step, Loop) else step.name for step in steps]


def forward(x: Any) -> Any:
    output, state = np.zeros_like(x), np.zeros_like(x[0])
    for t in over_time(len(x)):
        state = np.tanh(state * 0.5 + x[t])
        output[t] = state
    return output


def test_a_state_is_in_one_place() -> None:
    _, trace = traces(forward)
    assert shape_of(trace.operations) == ["copyto", "copyto", (6, ["multiply", "add", "tanh", "copyto"])]
    loop = trace.operations[-1]
    assert isinstance(loop, Loop)
    multiply, add, tanh, write = loop.operations
    advances = [[view.advance for view in views(step)] for step in loop.operations]
    assert advances == [[(0,), (0,)], [(0,), (24,), (0,)], [(0,), (0,)], [(0,), (24,)]]
    assert multiply.arguments[0] == tanh.output == write.arguments[0]  # type: ignore[union-attr]
    assert add.arguments[1].offset == 0  # type: ignore[union-attr]


def backward(x: Any) -> Any:
    grad = total = np.zeros_like(x[0])
    for t in over_time(len(x), backward=True):
        grad = grad * 0.5 + x[t]
        total = total + grad
    return total


def turned_around(x: Any) -> Any:
    grad = total = np.zeros_like(x[0])
    for t in reversed(over_time(len(x))):
        grad = grad * 0.5 + x[t]
        total = total + grad
    return total


def listed(x: Any) -> Any:
    state, states = x[0], []
    for t in over_time(len(x)):
        state = np.tanh(state + x[t])
        states.append(state)
    return np.stack(states)


def in_place(x: Any) -> Any:
    state = np.zeros_like(x[0])
    for t in over_time(len(x)):
        state *= 0.5
        state += x[t]
        x[t] = state
    return x


def buffers(x: Any) -> Any:
    """np.zeros in each iteration holds what a formula reads."""
    total = np.zeros_like(x[0])
    for t in over_time(len(x)):
        buffer = np.ones(3)
        np.add(buffer[:2], x[t, :2], out=buffer[:2])
        total += buffer
    return total


def nested(x: Any) -> Any:
    total = np.zeros_like(x)
    for t in over_time(len(x)):
        for i in over_time(3):
            total[t, i] = np.tanh(x[t, i : i + 1] * 2)[0] + x[t].sum()
    return total


def two_back(x: Any) -> Any:
    """A state that two times later is needed again."""
    before = state = x[0]
    for t in over_time(len(x)):
        before, state = state, before * 0.5 + state + x[t]
    return state


@pytest.mark.parametrize(
    ("formula", "shape"),
    [
        (backward, ["copyto", "multiply", "add", "add", (5, ["multiply", "add", "add"])]),
        (turned_around, ["copyto", "multiply", "add", "add", (5, ["multiply", "add", "add"])]),
        (listed, ["add", "tanh", (5, ["add", "tanh"]), "concatenate"]),
        (in_place, ["copyto", (6, ["multiply", "add", "copyto"])]),
        (buffers, ["copyto", (6, ["add", "add"])]),
        (nested, ["copyto", (6, [(3, ["multiply", "tanh", "copyto", "add.reduce", "add", "copyto"])])]),
        (two_back, ["multiply", "add", "add"] * 2 + [(4, ["multiply", "add", "add"])]),
    ],
)
def test_loops(formula: Formula, shape: list[Any]) -> None:
    flat, trace = traces(formula)
    assert shape_of(trace.operations) == shape
    assert len(trace.storages) <= len(flat.storages)


def test_views_advance_in_each_loop_around_them() -> None:
    _, trace = traces(nested)
    outer = trace.operations[-1]
    assert isinstance(outer, Loop)
    (inner,) = outer.operations
    assert isinstance(inner, Loop)
    assert inner.operations[0].arguments[0].advance == (24, 8)  # type: ignore[union-attr]
    offsets = [operation.arguments[0].offset for operation in trace.unrolled() if operation.name == "multiply"]
    assert offsets == list(range(0, 6 * 24, 8))


def growing(x: Any) -> Any:
    total = np.zeros_like(x[0])
    for t in over_time(len(x)):
        total = total + x[: t + 1].sum(axis=0)
    return total


def quadratic(x: Any) -> Any:
    for t in over_time(6):
        x[t * t % 6] *= 2
    return x


def every_other(x: Any) -> Any:
    for t in over_time(len(x)):
        x[t] = np.tanh(x[t]) if t % 2 else np.exp(x[t])
    return x


def scaled(x: Any) -> Any:
    for t in over_time(len(x)):
        x[t] *= t
    return x


@pytest.mark.parametrize("formula", [growing, quadratic, every_other, scaled])
def test_what_differs_from_iteration_to_iteration_stays_unrolled(formula: Formula) -> None:
    flat, trace = traces(formula)
    assert shape_of(trace.operations) == shape_of(flat.operations)


def test_a_loop_that_is_left_is_none() -> None:
    def formula(x: Any) -> Any:
        for t in over_time(len(x)):
            x[t] *= 2
            if t == 3:
                break
        return x

    _, trace = traces(formula)
    assert shape_of(trace.operations) == ["multiply"] * 4


def lstm_trace(num_steps: int) -> Trace:
    model = Sequential(LSTM(3, 4, num_layers=2), seed=0)
    batch: tuple[Array, Array] = np.ones((num_steps, 2, 3), np.float32), np.ones((num_steps, 2, 4), np.float32)
    return trace_step(model, MSELoss(), AdamW(model), *batch)


def test_a_trace_does_not_grow_with_time() -> None:
    short, long = lstm_trace(5), lstm_trace(20)
    assert [step.num_iterations for step in long.operations if isinstance(step, Loop)] == [19] * 4
    assert len(short.operations) == len(long.operations)
    assert len(short.storages) == len(long.storages)
