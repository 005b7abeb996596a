"""Every operation against torch: answers and gradients, on numpy arrays and torch tensors, over drawn shapes."""

from __future__ import annotations

from typing import Any

import hypothesis.extra.numpy as hnp
import hypothesis.strategies as st
import numpy as np
import pytest
import torch
from hypothesis import given, settings

from nn_manual import ops
from nn_manual.arrays import DTYPES, Array, Shape
from nn_manual.check.catalogue.operations import torch_gradients, torch_reference

#: A fraction of the largest magnitude; correct formulas meet it with a hundredfold margin.
TOLERANCES = {"float32": 1e-5, "float64": 1e-12}

Drawn = tuple[tuple[Shape, ...], dict[str, Any]]


def shapes(min_dims: int = 0, min_side: int = 0) -> st.SearchStrategy[Shape]:
    return hnp.array_shapes(min_dims=min_dims, max_dims=3, min_side=min_side, max_side=4)


@st.composite
def one_operand(draw: st.DrawFn) -> Drawn:
    return (draw(shapes()),), {}


@st.composite
def clipped(draw: st.DrawFn) -> Drawn:
    low, high = sorted(draw(st.tuples(st.integers(-2, 2), st.integers(-2, 2))))  # limits that tied entries hit
    options = draw(st.sampled_from([{"min": low}, {"max": high}, {"min": low, "max": high}]))
    return (draw(shapes()),), options


@st.composite
def broadcast(draw: st.DrawFn) -> Drawn:
    drawn = draw(hnp.mutually_broadcastable_shapes(num_shapes=2, max_dims=3, min_side=0, max_side=4))
    return drawn.input_shapes, {}


@st.composite
def broadcast_target(draw: st.DrawFn) -> Drawn:
    drawn = draw(hnp.mutually_broadcastable_shapes(num_shapes=2, max_dims=3, min_side=0, max_side=4))
    return drawn.input_shapes[:1], {"shape": drawn.result_shape}


@st.composite
def products(draw: st.DrawFn) -> Drawn:
    signature = "(n?,k),(k,m?)->(n?,m?)"  # vectors, matrices, stacks
    drawn = draw(hnp.mutually_broadcastable_shapes(signature=signature, max_dims=2, min_side=0, max_side=4))
    return drawn.input_shapes, {}


@st.composite
def vectors(draw: st.DrawFn) -> Drawn:
    return ((draw(st.integers(0, 4)),), (draw(st.integers(0, 4)),)), {}


@st.composite
def matrix(draw: st.DrawFn) -> Drawn:
    return ((draw(st.integers(0, 4)), draw(st.integers(0, 4))),), {}


@st.composite
def diagonals(draw: st.DrawFn) -> Drawn:
    shape = draw(shapes(min_dims=2))
    axis1, axis2 = draw(st.permutations(range(-len(shape), 0)))[:2]
    offset = draw(st.integers(-shape[axis1], shape[axis2]))
    return (shape,), {"offset": offset, "axis1": axis1, "axis2": axis2 + draw(st.sampled_from([0, len(shape)]))}


@st.composite
def reshaped(draw: st.DrawFn) -> Drawn:
    shape = draw(shapes())
    target = draw(st.sampled_from([tuple(reversed(shape)), (*shape, 1), (-1,)]))
    return (shape,), {"shape": target}


@st.composite
def permuted(draw: st.DrawFn) -> Drawn:
    shape = draw(shapes())
    axes = draw(st.none() | st.permutations(range(-len(shape), 0)).map(tuple))
    return (shape,), {"axes": axes} if shape else {}


@st.composite
def joined(draw: st.DrawFn) -> Drawn:
    shape = draw(shapes(min_dims=1))
    axis = draw(st.integers(-len(shape), len(shape) - 1))
    sizes = draw(st.lists(st.integers(0, 4), min_size=1, max_size=3))
    along = axis % len(shape)
    return tuple((*shape[:along], size, *shape[along + 1 :]) for size in sizes), {"axis": axis}


@st.composite
def indexed(draw: st.DrawFn) -> Drawn:
    """Integers and slices, at most one array of integers, repeated ones among them; None and ... too."""
    shape = draw(shapes(min_dims=1, min_side=1))
    integers = [st.integers(-size, size - 1) for size in shape]
    bounds = st.none() | st.integers(-5, 5)
    key: list[Any] = [
        draw(integer | st.builds(slice, bounds, bounds, st.none() | st.integers(1, 3))) for integer in integers
    ]
    repeated = draw(st.none() | st.integers(0, len(shape) - 1))
    if repeated is not None:
        key = [entry if isinstance(entry, slice) else slice(entry, None) for entry in key]
        key[repeated] = draw(st.lists(integers[repeated], min_size=1, max_size=6))
    ending = draw(st.sampled_from([(), (...,), (..., None)]))
    return (shape,), {"key": (*key, *ending)}


@st.composite
def reduced(draw: st.DrawFn, empty: bool, several: bool) -> Drawn:
    shape = draw(shapes(min_side=0 if empty else 1))
    axes: st.SearchStrategy[Any] = st.none()
    if shape:
        axes |= st.integers(-len(shape), len(shape) - 1)
    if shape and several:
        axes |= hnp.valid_tuple_axes(len(shape), min_size=1)
    return (shape,), {"axis": draw(axes), "keepdims": draw(st.booleans())}


@st.composite
def normalised(draw: st.DrawFn) -> Drawn:
    shape = draw(shapes(min_dims=1))
    return (shape,), {"axis": draw(st.integers(-len(shape), len(shape) - 1))}


OPERANDS: dict[ops.Operation, st.SearchStrategy[Drawn]] = {
    **dict.fromkeys((ops.square, ops.reciprocal, ops.sqrt, ops.exp, ops.log), one_operand()),
    **dict.fromkeys((ops.tanh, ops.relu, ops.abs), one_operand()),
    ops.clip: clipped(),
    **dict.fromkeys((ops.add, ops.subtract, ops.multiply, ops.divide, ops.power), broadcast()),
    **dict.fromkeys((ops.maximum, ops.minimum), broadcast()),
    ops.outer: vectors(),
    ops.matmul: products(),
    ops.trace: matrix(),
    ops.diagonal: diagonals(),
    ops.reshape: reshaped(),
    ops.transpose: permuted(),
    ops.broadcast_to: broadcast_target(),
    ops.concatenate: joined(),
    ops.index: indexed(),
    ops.sum: reduced(empty=True, several=True),
    ops.mean: reduced(empty=False, several=True),
    ops.max: reduced(empty=False, several=False),
    ops.min: reduced(empty=False, several=False),
    ops.logsumexp: reduced(empty=True, several=True),
    ops.softmax: normalised(),
}

#: Drawn from [0.5, ...): roots, logarithms and powers are defined there, and no divisor is small. Their edges have
#: tests of their own.
POSITIVE = {ops.reciprocal, ops.sqrt, ops.log, ops.divide, ops.power}


def draw_values(kind: str, shape: Shape, generator: np.random.Generator) -> Array:
    if kind == "tied":  # few values, zeros among them: ties and kinks
        return generator.integers(-2, 3, shape).astype(np.float64)
    return generator.standard_normal(shape) * (1e-3 if kind == "tiny" else 1)


def lay_out(values: Array, layout: str) -> Array:
    """The same values, their memory in another order or with gaps."""
    if layout == "reversed axes":
        return np.asarray(values, order="F")
    wide = np.full((*values.shape, 2), np.nan, values.dtype)
    wide[..., 0] = values
    return wide[..., 0] if layout == "gaps" else values


def assert_equal(ours: Any, reference: Array, what: str) -> None:
    assert tuple(ours.shape) == reference.shape, what
    ours = np.asarray(ours)
    assert ours.dtype == reference.dtype, what
    if ours.size:
        bound = TOLERANCES[reference.dtype.name] * np.abs(reference).max(where=np.isfinite(reference), initial=0)
        finite = np.isfinite(reference)
        assert np.array_equal(ours[~finite], reference[~finite]), what
        assert np.all(np.abs(ours[finite] - reference[finite]) <= bound), f"{what}: {ours} is not {reference}"


each_operation = pytest.mark.parametrize("operation", OPERANDS, ids=lambda operation: operation.__name__)


@each_operation
@settings(max_examples=20, deadline=None, derandomize=True)
@given(data=st.data())
def test_answer_and_gradients_are_torchs(operation: ops.Operation, data: st.DataObject) -> None:
    compare_with_torch(operation, data)


@pytest.mark.slow
@each_operation
@settings(max_examples=60, deadline=None, derandomize=True)
@given(data=st.data())
def test_more_answers_and_gradients_are_torchs(operation: ops.Operation, data: st.DataObject) -> None:
    """It alone draws so many operands of each operation."""
    compare_with_torch(operation, data)


def compare_with_torch(operation: ops.Operation, data: st.DataObject) -> None:
    operand_shapes, options = data.draw(OPERANDS[operation], label="operands")
    dtype = data.draw(st.sampled_from(list(DTYPES)), label="dtype")
    kind = data.draw(st.sampled_from(["normal", "tied", "tiny"]), label="values")
    layout = data.draw(st.sampled_from(["contiguous", "reversed axes", "gaps"]), label="layout")
    negative = data.draw(st.booleans(), label="negative upstream")
    generator = np.random.default_rng(data.draw(st.integers(0, 99), label="seed"))

    operands = [draw_values(kind, shape, generator) for shape in operand_shapes]
    if operation in POSITIVE:
        operands[0] = np.abs(operands[0]) + 0.5
        operands[1:] = operands[1:] if operation is ops.power else [np.abs(b) + 0.5 for b in operands[1:]]
    operands = [lay_out(np.asarray(operand, dtype), layout) for operand in operands]
    answer = torch_reference(operation)(*map(torch.tensor, operands), **options).numpy()
    grad_answer = generator.standard_normal(answer.shape).astype(dtype)
    grad_answer = -np.abs(grad_answer) if negative else grad_answer
    gradients = torch_gradients(operation, operands, options, grad_answer)

    for as_ours in (np.asarray, torch.from_numpy):
        ours, backward = ops.vjp(operation, *map(as_ours, operands), **options)
        assert_equal(ours, answer, "answer")
        grad_ours = backward(as_ours(np.asarray(grad_answer)))
        grad_ours = (grad_ours,) if len(operands) == 1 else grad_ours
        for ours, reference in zip(grad_ours, gradients, strict=True):
            assert_equal(ours, reference, f"gradient, {as_ours.__name__}")


def test_every_operation_is_tested() -> None:
    public = {getattr(ops, name) for name in ops.__all__}
    assert set(OPERANDS) == {operation for operation in public if isinstance(operation, ops.Operation)}
