"""Formulas that users may write in their layers: each is traced and replayed exactly, or refused."""

from __future__ import annotations

import copy
import math
import random
import re
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from scipy.special import erf, logsumexp

from nn_manual import SGD, Linear, MSELoss, Sequential, Tanh, Trainer
from nn_manual.arrays import Array
from nn_manual.layers import Layer
from nn_manual.trace.comparing import LOST
from nn_manual.trace.methods import OF_VALUE
from nn_manual.trace.numpy_functions import COMPOSED
from nn_manual.trace.numpy_replay import replay
from nn_manual.trace.step import trace_step
from nn_manual.trace.step_arrays import given
from nn_manual.trace.trace import CannotTrace

Formula = Callable[[Any, Any], Any]
GENERATOR = np.random.default_rng(0)


@dataclass(eq=False)
class Own(Layer):
    """A layer whose formula gets the layer and its input. Its backward isn't a real gradient."""

    def __post_init__(self) -> None:
        self.count, self.kept, self.numbers = 0, None, np.zeros(3)
        self.generator = np.random.default_rng(0)
        self.formula: Formula = np.add

    def forward(self, input: Array) -> tuple[Array, Array]:
        output: Array = self.formula(self, input)
        return output.astype(input.dtype), input

    def backward(self, saved: Array, grad_output: Array) -> Array:
        grad_input: Array = grad_output + 0 * saved
        return grad_input

    def reference(self, input: Any) -> Any:
        return input


def in_place(x: Any) -> Any:
    y = x.copy()
    y[1:] *= 2
    y[:, 0] = 0
    y[::2, 1] -= y[::2, 2]
    y[0, 1] += 1
    return y


def changed(x: Any, change: Callable[[Any], object]) -> Any:
    y = x.copy()
    change(y)
    return y


def with_numbers(x: Any) -> Any:
    """A number stays the same when the array that it was taken from changes, or a sum that begins with it."""
    y = x.copy()
    total = x.sum()
    number, more = y[0, 0], total
    more += 1
    y[0, 0] = 5
    y += number * total + more
    return y


def by_row(x: Any) -> Any:
    y = np.zeros_like(x)
    for i, row in enumerate(x):
        y[i] = row / np.sqrt((row**2).sum())
    return y


def into(x: Any) -> Any:
    y = np.empty_like(x)
    np.multiply(x, 2, out=y)
    np.cumsum(x, 1, None, y)
    return np.add(y, 1, y)


def at_indices(x: Any) -> Any:
    y, z = np.empty_like(x), np.empty(x.shape, x.dtype, like=x)
    y[:, (np.arange(3) + 1) % 3] = x
    z[np.arange(len(x))[::-1]] = y
    return z + x


def shown(x: Any) -> Any:
    assert f"{x.sum():.2f} {x} {x!r}"
    return x


def kept(self: Any, x: Any) -> Any:
    self.kept = x
    return self.kept * 2


def strided(x: Any) -> Any:
    y = x.copy()
    return np.lib.stride_tricks.as_strided(y, x.shape, (0, y.strides[1])) * x


TRACED: dict[str, Formula] = {
    "slices": lambda _, x: in_place(x),
    "overlap": lambda _, x: changed(x, lambda y: y.__setitem__(slice(1, None), y[1:] - y[:-1])),
    "overlap in place": lambda _, x: changed(x, lambda y: np.subtract(y[1:], y[:-1], out=y[1:])),
    "reversed": lambda _, x: changed(x, lambda y: y.__setitem__(slice(None), y[::-1])),
    "numbers": lambda _, x: with_numbers(x),
    "rows": lambda _, x: by_row(x),
    "out": lambda _, x: into(x),
    "at indices": lambda _, x: at_indices(x),
    "shown": lambda _, x: shown(x),
    "kept": kept,
    "strided": lambda _, x: strided(x),
    "windows": lambda _, x: x + np.lib.stride_tricks.sliding_window_view(x, 2, axis=1).sum(-1)[:, :1],
    "shape": lambda _, x: x * 2 if len(x) > 3 else x,
    "seed": lambda _, x: x * np.random.default_rng(3).random(x.shape),
    "setting": lambda _, x: x * math.sqrt(2),
    "norm": lambda _, x: x / np.linalg.norm(x, axis=1, keepdims=True),
    "inv": lambda _, x: x @ np.linalg.inv(x.T @ x + np.eye(3, dtype=x.dtype)),
    "sort": lambda _, x: np.sort(x, axis=1) + changed(x, lambda y: y.sort(axis=0)),
    "argsort": lambda _, x: np.take_along_axis(x, x.argsort(axis=1), axis=1),
    "pad": lambda _, x: np.pad(x, ((0, 0), (1, 1)), mode="edge")[:, 2:],
    "roll": lambda _, x: np.roll(x, 1, axis=1) + np.flip(x, 0) + np.rot90(x, 2),
    "cumsum": lambda _, x: np.cumsum(x, axis=1) + x.cumsum(axis=0) + np.maximum.accumulate(x, axis=1),
    "where": lambda _, x: np.where(x > 0.3, x, 0.1 * x) + np.select([x > 0.5, x > 0.2], [x, 2 * x], 0),
    "masked": lambda _, x: changed(x, lambda y: y.__setitem__(y < 0.5, 0)),
    "divide where": lambda _, x: np.divide(1, x, out=np.zeros_like(x), where=x > 0.5),
    "einsum": lambda _, x: np.einsum("ij,kj,kl->il", x, x, x) + np.einsum("ij,kj,kl->il", x, x, x, optimize=True),
    "products": lambda _, x: np.tensordot(x, x, 2) * np.kron(x, x)[: len(x), :3] + np.vecdot(x, x)[:, np.newaxis],
    "trace": lambda _, x: x * x.trace() + np.trace(x),
    "outer": lambda _, x: np.outer(x[:, 0], x[0]) + np.inner(x, x)[:, :1] + np.multiply.outer(x[:, 0], x[0]),
    "stack": lambda _, x: np.stack([2 * row for row in x]) + np.array([row + 1 for row in x]),
    "numbers stacked": lambda _, x: x * np.array([row.sum() for row in x])[:, np.newaxis],
    "converted": lambda _, x: np.asarray(x) * 2 + np.ascontiguousarray(x.T).T + np.copy(x) + copy.deepcopy(x),
    "one hot": lambda _, x: x * (np.arange(3) == x.argmax(axis=1)[:, np.newaxis]),
    "table": lambda _, x: x * np.array([[1.0], [2.0], [3.0]], like=x)[x.argmax(axis=1)],
    "scattered": lambda _, x: changed(x, lambda y: y.__setitem__((np.arange(len(x)), x.argmax(axis=1)), 1)),
    "added": lambda _, x: changed(x, lambda y: np.add.at(y, x.argmax(axis=1), x)),
    "put": lambda _, x: changed(x, lambda y: np.put_along_axis(y, y.argmax(axis=1)[:, np.newaxis], 0, axis=1)),
    "diagonal": lambda _, x: changed(x, lambda y: np.fill_diagonal(y, 0)) + np.triu(x) + np.tril(x, -1),
    "split": lambda _, x: np.concatenate(np.split(x, [1], axis=1)[::-1], axis=1),
    "statistics": lambda _, x: (x - x.mean(0)) / x.std(0) + np.median(x) + np.percentile(x, 30) + x.var() + np.ptp(x),
    "rounded": lambda _, x: np.clip(x, 0.3, 0.7) + x.clip(0, 1) + np.round(x, 1) + x.round(2) + abs(x),
    "counted": lambda _, x: x * np.bincount(x.argmax(axis=1), minlength=3) + np.searchsorted([0.2, 0.5], x),
    "scipy": lambda _, x: erf(x) - logsumexp(x, axis=1, keepdims=True),
    "dtypes": lambda _, x: (x.astype(np.float64) * 2 + (10 * x).astype(np.int64)).astype(x.dtype),
    "complex": lambda _, x: np.abs(x * np.exp(1j * x)).astype(x.dtype),
    "repeated": lambda _, x: np.repeat(x, 2, axis=1)[:, ::2] + np.tile(x, (2, 1))[: len(x)] + x.repeat(1, axis=0),
    "broadcast": lambda _, x: (x[:, np.newaxis] - x).sum(1) + np.broadcast_to(x.mean(0), x.shape),
    "composed": lambda _, x: x + sum(_applied(function, x) for function in COMPOSED),
}


def _applied(function: Any, x: Any) -> Any:
    """Calls a function with the arguments that it needs, and adds up its result, whose shape may differ from x's."""
    if function in (np.stack, np.vstack, np.hstack):
        return function([x, x]).sum()
    if function is np.clip:
        return function(x, 0.3, 0.6).sum()
    if function is np.reshape:
        return function(x.T, -1)[:2].sum()
    if function is np.full_like:
        return function(x, 2).sum()
    return 0 if function is np.empty_like else function(x).astype(float).sum()


def net(formula: Formula) -> tuple[Sequential, list[tuple[Array, Array]]]:
    own = Own()
    own.formula = formula
    model = Sequential(Linear(3, 3), own, Linear(3, 2), seed=0)
    model.layers[0].param.weight[...] = np.eye(3)
    target = np.zeros((5, 2), np.float32)
    return model, [(GENERATOR.uniform(0.05, 1, (5, 3)).astype(np.float32), target) for _ in range(3)]


@pytest.mark.parametrize("name", TRACED)
def test_what_is_traced(name: str) -> None:
    model, batches = net(TRACED[name])
    optimizer = SGD(model, lr=1e-3)
    trace = trace_step(model, MSELoss(), optimizer, *batches[0])
    trainer = Trainer(model, MSELoss(), optimizer, check_every=0)
    for batch in batches[1:]:
        after = replay(trace, given(model, optimizer, *batch))
        assert float(after["loss"]) == trainer.train_step(*batch).loss
        assert np.array_equal(after["param"], model.param_arena)


def counting(self: Any, x: Any) -> Any:
    self.count += 1
    return x * self.count


def seldom(self: Any, x: Any) -> Any:
    self.count += 1
    return x * (2 if self.count % 10 == 0 else 1)


def counting_in_an_array(self: Any, x: Any) -> Any:
    self.numbers += 1
    return x


def locking(self: Any, x: Any) -> Any:
    with self.kept:
        return x


def first(self: Any, x: Any) -> Any:
    if self.kept is None:
        self.kept = np.abs(x).mean()
    return x / self.kept


def running(self: Any, x: Any) -> Any:
    self.numbers *= 0.9
    self.numbers += 0.1 * x.mean(axis=0)
    return x - self.numbers


def swallowing(x: Any) -> Any:
    try:
        return x if x.sum() > 0 else -x
    except Exception:
        return x


def written(x: Any, write: Callable[[Any], object], y: Any = None) -> Any:
    y = np.zeros(x.shape, x.dtype) if y is None else y
    write(y)
    return y


HERE = r"^1 \(Own\)\.[\w<>]+, test_formulas\.py:\d+: "
LOST_HERE = HERE + "(multiply|subtract|divide) takes " + re.escape(LOST[:30])
RETURNED = HERE + "it returns " + re.escape(LOST[:30])
MASK = HERE + "an array picked by a mask"
INDICES = HERE + ".* its result has a shape that depends on values"
SEVERAL = HERE + ".* has several results"
CALLED = HERE + "a function of Python's is called with values"
VALUE = HERE + OF_VALUE[:40]
UNTRACED = r"^[12] .*: \w+ takes what was written in a way that isn't traced"

REFUSED: dict[str, tuple[Formula, str]] = {
    "random": (lambda _, x: x * GENERATOR.random(x.shape), LOST_HERE),
    "own random": (lambda self, x: x * self.generator.random(x.shape), LOST_HERE),
    "random order": (lambda _, x: changed(x, GENERATOR.shuffle), HERE + "on other values, or in another step, "),
    "branch": (lambda _, x: x if x.max() > 0 else -x, VALUE),
    "branch of a plain array": (lambda _, x: x if np.asarray(x).max() < 1e6 else -x, VALUE),
    "float": (lambda _, x: x * float(x[0, 0]), VALUE),
    "item": (lambda _, x: x * x.sum().item(), VALUE),
    "tolist": (lambda _, x: x * x.tolist()[0][0], VALUE),
    "max": (lambda _, x: x * max(x[0, 0], 0), VALUE),
    "sqrt": (lambda _, x: x * math.sqrt(x.sum()), VALUE),
    "slice": (lambda _, x: x[:, : x[0].argmax()], VALUE),
    "caught": (lambda _, x: swallowing(x), VALUE),
    "set": (lambda _, x: x * len({x.sum()}), VALUE),
    "equal": (lambda _, x: x * np.array_equal(x, x), HERE + "np.array_equal: its result decides what comes next"),
    "number": (lambda _, x: x * np.float32(x.sum()), LOST_HERE),
    "picked": (lambda _, x: x + x[x > 0.5].sum(), MASK),
    "indices": (lambda _, x: x + x[np.where(x > 0.5)].sum(), INDICES),
    "unique": (lambda _, x: x * len(np.unique(x)), INDICES),
    "divmod": (lambda _, x: sum(np.divmod(x, 0.3)), SEVERAL),
    "svd": (lambda _, x: np.linalg.svd(x)[0], HERE + "numpy.linalg.svd doesn't give one array"),
    "type": (lambda _, x: 2 * x if type(x) is np.ndarray else x, "^on other values the step gives another param"),
    "counting": (counting, LOST_HERE),
    "seldom": (seldom, r"^1 \(Own\)\.count changes from step to step"),
    "numbers": (counting_in_an_array, r"^1 \(Own\)\.numbers changes from step to step"),
    "lock": (locking, r"^the model can't be copied: TypeError: "),
    "first": (first, HERE + "on other values, or in another step, it does something else"),
    "running": (running, LOST_HERE),
    "table": (lambda _, x: x * np.eye(3, dtype=x.dtype)[x.argmax(axis=1)], LOST_HERE),
    "plain": (lambda _, x: written(x, lambda y: y.__setitem__(0, x[0])), RETURNED),
    "plain later": (lambda _, x: 3 * written(x, lambda y: np.multiply(x, 2, out=y)), RETURNED),
    "memory": (lambda _, x: 2 * changed(x, lambda y: memoryview(y).cast("B").__setitem__(3, 64)), UNTRACED),
    "data": (lambda _, x: 2 * x if x.data[0, 0] < 1e9 else x, HERE + r"ndarray\.data: "),
    "viewed": (lambda _, x: 2 * x if x.view(type=np.ndarray).max() < 1e9 else x, VALUE),
    "flat": (lambda _, x: changed(x, lambda y: y.flat.__setitem__(0, 1)), HERE + r"ndarray\.flat: .*: use reshape"),
    "iterator": (lambda _, x: x * sum(np.ravel(list(np.nditer(x)))), LOST_HERE),
    "by row": (lambda _, x: np.apply_along_axis(lambda row: row / row.sum(), 1, x), CALLED),
    "vectorize": (lambda _, x: np.vectorize(lambda number: 2 * number)(x), HERE + ".* gives objects of Python's"),
    "error": (lambda _, x: x @ x, HERE + "ValueError: matmul: Input operand 1 has a mismatch"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused(name: str) -> None:
    formula, message = REFUSED[name]
    model, batches = net(formula)
    model.layers[1].kept = threading.Lock() if name == "lock" else None  # type: ignore[attr-defined]  # Own's
    with pytest.raises(CannotTrace, match=message):
        trace_step(model, MSELoss(), SGD(model, lr=1e-3), *batches[0])


def test_numpy_is_its_own_after_a_trace() -> None:
    before = np.array, np.asarray, np.ascontiguousarray
    model, batches = net(lambda _, x: x if x.max() > 0 else -x)
    with pytest.raises(CannotTrace):
        trace_step(model, MSELoss(), SGD(model, lr=1e-3), *batches[0])
    assert before == (np.array, np.asarray, np.ascontiguousarray)


class Spread(Tanh):
    """Its gradient is written to an array that isn't the trace's."""

    def backward(self, saved: Any, grad_output: Array) -> Array:
        grad_input: Array = np.zeros(grad_output.shape, grad_output.dtype)
        grad_input[...] = super().backward(saved, grad_output)
        return grad_input


def test_a_gradient_that_lost_its_trace_is_not_blamed_on_the_layer_before() -> None:
    """Linear looks at the rows of what it gets."""
    model = Sequential(Linear(3, 3), Spread(), Linear(3, 2))
    message = r"^1 \(Spread\)\.backward, test_formulas\.py:\d+: it returns an array that lost its trace"
    with pytest.raises(CannotTrace, match=message):
        trace_step(model, MSELoss(), SGD(model, lr=1e-3), np.ones((4, 3), np.float32), np.ones((4, 2), np.float32))


STEPS = [0, 0]
COUNT = 0


def _late() -> bool:
    global COUNT
    COUNT += 1
    return COUNT > 150


class CountedInAList(Tanh):
    """Wrong after many steps."""

    def backward(self, saved: Any, grad_output: Array) -> Array:
        STEPS[0] += 1
        return super().backward(saved, grad_output) * (1.5 if STEPS[0] > 150 else 1)


class CountedByAFunction(Tanh):
    """Wrong after many steps."""

    def backward(self, saved: Any, grad_output: Array) -> Array:
        return super().backward(saved, grad_output) * (1.5 if _late() else 1)


class SeldomDrawn(Tanh):
    """Wrong now and then."""

    def backward(self, saved: Any, grad_output: Array) -> Array:
        return super().backward(saved, grad_output) * (1.5 if np.random.rand() < 0.01 else 1)


class SeldomDrawnByPython(Tanh):
    """Wrong now and then."""

    def backward(self, saved: Any, grad_output: Array) -> Array:
        return super().backward(saved, grad_output) * (1.5 if random.random() < 0.01 else 1)


@pytest.mark.parametrize(
    ("layer", "what"),
    [
        (CountedInAList(), r"1 \(CountedInAList\): the global STEPS"),
        (CountedByAFunction(), r"1 \(CountedByAFunction\): the global COUNT"),
        (SeldomDrawn(), "the state of NumPy's random numbers"),
        (SeldomDrawnByPython(), "the state of Python's random numbers"),
    ],
    ids=lambda each: type(each).__name__,
)
def test_what_a_step_keeps_outside_of_its_objects_is_seen(layer: Tanh, what: str) -> None:
    model = Sequential(Linear(3, 3), layer, Linear(3, 2))
    with pytest.raises(CannotTrace, match=f"^{what} changes from step to step"):
        trace_step(model, MSELoss(), SGD(model, lr=1e-3), np.ones((4, 3), np.float32), np.ones((4, 2), np.float32))
