"""The arrays that a tracer hands out, and the loops that it notes."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable

import numpy as np
import pytest

from nn_manual import arrays
from nn_manual.arrays import Array, one_operation, over_time
from nn_manual.layers.embedding import one_hot_product
from nn_manual.trace.numpy_replay import replay
from nn_manual.trace.trace import CannotTrace, FixedValue, View
from nn_manual.trace.traced import Traced
from nn_manual.trace.tracer import Tracer


@one_operation
def doubled(values: Array) -> Array:
    return np.add(values, values)


def test_a_function_that_is_one_operation() -> None:
    with Tracer({}) as tracer:
        x = tracer.give("x", np.arange(3.0))
        assert type(doubled(np.ones(2))) is np.ndarray  # no array of the trace
        result = doubled(x)
        assert isinstance(result, Traced)
        trace = tracer.trace({"result": result})
    (operation,) = trace.operations
    assert (operation.name, operation.arguments) == ("doubled", (View(0, 0, (3,), (8,), np.dtype(float)),))
    assert replay(trace, {"x": np.full(3, 2.0)})["result"].tolist() == [4.0] * 3
    assert doubled(np.ones(2)).tolist() == [2.0, 2.0]


def test_the_sum_over_equal_indices_is_one_operation() -> None:
    indices, values = np.array([2, 0, 2]), np.arange(6.0).reshape(3, 2)
    with Tracer({}) as tracer:
        product = one_hot_product(tracer.give("indices", indices), tracer.give("values", values), 4)
        trace = tracer.trace({"product": product})
    (operation,) = trace.operations
    assert operation.name == "one_hot_product"
    assert operation.arguments[2] == FixedValue(4)
    found = replay(trace, {"indices": indices[::-1], "values": values})["product"]
    np.testing.assert_array_equal(found, [[2, 3], [0, 0], [4, 6], [0, 0]])


def test_an_array_from_outside_keeps_its_layout() -> None:
    """On some processors a BLAS rounds a product with a transposed matrix otherwise than with a copy of it."""
    outside = np.arange(12.0).reshape(3, 4).T
    with Tracer({}) as tracer:
        product = tracer.give("x", np.ones((2, 4))) @ outside
        trace = tracer.trace({"product": product})
    value = trace.operations[0].arguments[1].value
    assert value is not outside
    assert value.strides == outside.strides
    np.testing.assert_array_equal(value, outside)


def test_a_loop_is_a_range_outside_of_a_trace() -> None:
    assert over_time(3) == range(3)
    assert list(over_time(3, backward=True)) == [2, 1, 0]
    with Tracer({}) as tracer:
        x = tracer.give("x", np.zeros((3, 2)))
        for t in over_time(3, backward=True):
            x[t] += t
        assert tracer.loops == [[0, 1, 2, 3]]


def test_inner_loops_come_first() -> None:
    with Tracer({}) as tracer:
        x = tracer.give("x", np.zeros((2, 3)))
        for t in reversed(over_time(2)):
            for i in over_time(3):
                x[t, i : i + 1] += t
        assert tracer.loops == [[0, 1, 2, 3], [3, 4, 5, 6], [0, 3, 6]]


def test_a_loop_that_is_left_is_none() -> None:
    with Tracer({}) as tracer:
        x = tracer.give("x", np.zeros((6, 3)))
        for t in over_time(len(x)):
            x[t] *= 2
            if t == 3:
                break
        assert tracer.loops == []


def test_what_a_view_is_of() -> None:
    with Tracer({}) as tracer:
        x = tracer.give("x", np.zeros((4, 3)))
        for view, place in (
            (x[1:], (24, (3, 3), (24, 8))),
            (x[::-1], (72, (4, 3), (-24, 8))),
            (x.T[1], (8, (4,), (24,))),
            (x.reshape(-1)[3:], (24, (9,), (8,))),
            (np.lib.stride_tricks.as_strided(x[1], (2, 2), (0, 8)), (24, (2, 2), (0, 8))),
            (np.frombuffer(x.reshape(-1))[5:], (40, (7,), (8,))),
        ):
            assert tracer.memory.view(view)[:4] == (0, *place)


def test_an_array_has_no_trace_after_its_end() -> None:
    with Tracer({}) as tracer:
        x = tracer.give("x", np.ones(3))
    assert arrays.recorder is None
    with pytest.raises(CannotTrace, match=r"^an array of a trace is used after its end$"):
        x + 1


def test_memory_that_is_free_may_become_another_array() -> None:
    """Nothing keeps the arrays of a formula alive: NumPy gives the same memory again, to a storage of its own."""
    with Tracer({}) as tracer:
        x = tracer.give("x", np.arange(1000.0))
        y = x
        addresses = set()
        for i in range(50):
            y = (y * 1.5 - i) + x
            addresses.add(y.__array_interface__["data"][0])
        trace = tracer.trace({"y": y})
    assert len(addresses) < 50, "no memory was given again: this test shows nothing"
    assert len(trace.storages) == 1 + 3 * 50
    expected = values = np.linspace(-3, 4, 1000)
    for i in range(50):
        expected = (expected * 1.5 - i) + values
    assert np.array_equal(replay(trace, {"x": values})["y"], expected)


def test_a_replay_takes_little_memory_and_may_work_in_place() -> None:
    with Tracer({}) as tracer:
        x = y = tracer.give("x", np.zeros(1 << 17))
        for _ in range(50):
            y = y + 1
        x += y
        trace = tracer.trace({"y": y})
    values = np.zeros(1 << 17)
    tracemalloc.start()
    found = replay(trace, {"x": values})
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert np.all(found["y"] == 50)
    assert np.all(found["x"] == 50)
    assert np.all(values == 0)
    assert peak < 5 * values.nbytes, "51 arrays were made, but at most three are used at a time"
    assert replay(trace, {"x": values}, in_place=True)["x"] is values
    assert np.all(values == 50)


@pytest.mark.parametrize(
    "write",
    [
        lambda x: np.copyto(x, 2.0),
        lambda x: np.put(x, [0, 1, 2], 2.0),
        lambda x: np.put_along_axis(x, np.arange(3), 2.0, axis=0),
        lambda x: np.add.at(x, np.arange(3), 2.0),
        lambda x: np.add(x, 2.0, out=x),
    ],
)
def test_what_is_written_is_there_while_it_is_traced(write: Callable[[Array], None]) -> None:
    """A formula may make indices of it, whose shapes NumPy then says."""
    array = np.zeros(3)
    with Tracer({}) as tracer:
        write(tracer.give("x", array))
    assert array.tolist() == [2.0, 2.0, 2.0]
