"""The memory and the multiplications of a step, from its trace."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from nn_manual import LSTM, SGD, Dropout, Linear, MSELoss, Sequential, Tanh
from nn_manual.arrays import over_time
from nn_manual.trace.step import trace_step
from nn_manual.trace.step_cost import num_multiplications, peak_memory
from nn_manual.trace.trace import Trace
from nn_manual.trace.tracer import Tracer


def trace_of(formula: Callable[..., Any], *shapes: tuple[int, ...]) -> Trace:
    with Tracer({}) as tracer:
        result = formula(*(tracer.give(str(i), np.ones(shape)) for i, shape in enumerate(shapes)))
        return tracer.trace({"result": result})


@pytest.mark.parametrize(
    ("formula", "shapes", "number"),
    [
        (lambda x, y: x @ y, [(2, 3), (3, 5)], 2 * 3 * 5),
        (lambda x, y: x @ y, [(4, 2, 3), (3, 5)], 4 * 2 * 3 * 5),
        (lambda x, y: x @ y, [(3,), (3,)], 3),
        (np.dot, [(2, 3), (3, 5)], 2 * 3 * 5),
        (np.dot, [(), (3, 5)], 3 * 5),
        (np.vecdot, [(2, 3), (2, 3)], 2 * 3),
        (np.outer, [(2,), (3,)], 2 * 3),
        (np.tensordot, [(2, 3, 4), (3, 4, 5)], 2 * 3 * 4 * 5),
        (lambda x, y: np.einsum("ij,kj->ik", x, y), [(2, 3), (5, 3)], 2 * 3 * 5),
        (lambda x, y: np.einsum("...i,...i->...", x, y), [(2, 4, 3), (2, 4, 3)], 2 * 4 * 3),
        (lambda x, y: np.einsum("ij,jk,kl", x, y, y), [(2, 3), (3, 3)], 2 * 2 * 3 * 3 * 3),
        (lambda x, y: x * y, [(2, 3), (2, 3)], 0),
    ],
)
def test_multiplications(formula: Callable[..., Any], shapes: list[tuple[int, ...]], number: int) -> None:
    assert num_multiplications(trace_of(formula, *shapes)) == number


def test_memory() -> None:
    """At the peak two arrays of 800 bytes are alive, with the second formula also one number. What the step is given
    doesn't count.
    """
    assert peak_memory(trace_of(lambda x: np.exp(np.tanh(np.exp(x)))[:10] + 1, (100,))) == 1600
    assert peak_memory(trace_of(lambda x: np.exp(x)[:10] + np.exp(x).sum(), (100,))) == 1608


def test_a_step() -> None:
    model = Sequential(Linear(3, 4), Tanh(), Dropout(), Linear(4, 2), seed=0)
    batch = np.ones((10, 3), np.float32), np.ones((10, 2), np.float32)
    trace = trace_step(model, MSELoss(), SGD(model, lr=0.1), *batch)
    forward, for_input = 10 * (3 * 4 + 4 * 2), 10 * 4 * 2
    for_biases = 10 * (4 + 2)
    assert num_multiplications(trace) == 2 * forward + for_input + for_biases
    # At the peak the loss is computed. Alive are the outputs of tanh and of dropout, the mask, the differences, their
    # squares and the sum.
    assert peak_memory(trace) == 4 * (3 * 40 + 2 * 20 + 1)


def test_a_loop_counts_each_of_its_iterations() -> None:
    model = Sequential(LSTM(3, 4), seed=0)
    batch = np.ones((7, 2, 3), np.float32), np.ones((7, 2, 4), np.float32)
    trace = trace_step(model, MSELoss(), SGD(model, lr=0.1), *batch)
    gates, rows = 4 * 4, 7 * 2
    of_input, of_state, of_bias = rows * gates * 3, rows * gates * 4, rows * gates
    # The state before the first step in time is 0: the product for the gradient of weight_hh leaves it out.
    assert num_multiplications(trace) == 3 * of_input + 2 * of_state + 6 * 2 * gates * 4 + 2 * of_bias


def test_memory_of_a_loop_does_not_grow_with_its_state() -> None:
    def formula(x: Any) -> Any:
        state = np.zeros_like(x[0])
        for t in over_time(len(x)):
            state = np.tanh(state * 2 + x[t])
        return state

    assert peak_memory(trace_of(formula, (5, 10))) == peak_memory(trace_of(formula, (50, 10)))
