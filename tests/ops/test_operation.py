"""What all operations have in common: vjp's conventions, docstrings that are true, errors in the operation's words."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from nn_manual import ops
from nn_manual.check.catalogue.operation_cases import CASES, OperationCase
from nn_manual.ops.reductions import chosen, spread

FORMULA = re.compile(r"^    (\w+) += (.+)$", re.MULTILINE)


def label(case: OperationCase) -> str:
    return f"{case.operation.__name__}-{case.shapes}-{case.options}"


@pytest.mark.parametrize("case", CASES, ids=label)
def test_the_formulas_in_the_docstring_are_what_the_code_computes(case: OperationCase) -> None:
    generator = np.random.default_rng(1)
    operands = [generator.uniform(0.5, 2, shape) for shape in case.shapes]
    answer, backward = ops.vjp(case.operation, *operands, **case.options)
    grad_answer = generator.standard_normal(answer.shape)
    gradients = backward(grad_answer)

    signature = inspect.signature(case.operation)
    arguments = signature.bind(*operands, **case.options)
    arguments.apply_defaults()
    names: dict[str, Any] = {**vars(np), "unbroadcast": ops.unbroadcast, "spread": spread, "chosen": chosen}
    names |= {**arguments.arguments, "grad_answer": grad_answer}
    formulas = FORMULA.findall(inspect.cleandoc(case.operation.__doc__ or ""))
    for name, formula in formulas:
        names[name] = eval(formula, names)

    np.testing.assert_allclose(names["answer"], answer, rtol=1e-14)
    gradients = gradients if len(operands) > 1 else (gradients,)
    for operand, gradient in zip(case.operand_names, gradients, strict=True):
        np.testing.assert_allclose(eval(f"grad_{operand}", names), gradient, rtol=1e-14)  # grad_a, grad_inputs[0]
    assert "Derivation: " in (case.operation.__doc__ or "")


def test_gradients_come_for_the_arrays_only_and_one_comes_without_a_tuple() -> None:
    a, b = np.array([1.0, -2.0, 3.0]), np.array([4.0, 5.0, 6.0])
    _, backward = ops.vjp(ops.multiply, a, b)
    grad_a, grad_b = backward(np.array([1.0, 10.0, 100.0]))
    assert grad_a.tolist() == [4, 50, 600]
    assert grad_b.tolist() == [1, -20, 300]
    for operands in ((2, a), (a, 2.0)):
        answer, backward = ops.vjp(ops.multiply, *operands)
        assert answer.tolist() == [2, -4, 6]
        assert backward(np.array([1.0, 10.0, 100.0])).tolist() == [2, 20, 200]
    _, backward = ops.vjp(ops.power, a, 2)  # the exponent's gradient would need the logarithm of -2
    assert backward(a).tolist() == [2, 8, 18]


def test_backwards_chain_and_can_be_called_again() -> None:
    x = np.array([1.0, 2.0])
    exponential, backward_exp = ops.vjp(ops.exp, x)
    total, backward_sum = ops.vjp(ops.sum, exponential)
    assert total == np.exp(1) + np.exp(2)
    for upstream in (1.0, -3, np.float64(0.5)):
        np.testing.assert_allclose(backward_exp(backward_sum(upstream)), float(upstream) * np.exp(x), rtol=1e-15)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_numbers_do_not_change_the_dtype(dtype: str) -> None:
    x = np.array([1.0, 2.0], dtype)
    for operation in (ops.add, ops.subtract, ops.multiply, ops.divide, ops.power, ops.maximum, ops.minimum):
        for array in (x, torch.from_numpy(x)):
            answer, backward = ops.vjp(operation, array, 1.5)
            assert answer.dtype == array.dtype
            assert backward(array).dtype == array.dtype


def test_integers_have_answers() -> None:
    assert ops.matmul(np.array([1, 2]), np.array([3, 4])) == 11
    assert ops.multiply(np.array([1, 2]), 2.5).tolist() == [2.5, 5.0]
    assert ops.min(np.array([3, 5], np.uint8)) == 3


def test_torch_tensors_pass_through_autograd() -> None:
    """An operation is made of the library's own, so torch can differentiate it, too; vjp then agrees with it."""
    x = torch.tensor([0.3, -1.2], requires_grad=True)
    answer, backward = ops.vjp(ops.tanh, x)
    upstream = torch.tensor([2.0, -0.5])
    answer.backward(upstream)
    assert x.grad is not None
    torch.testing.assert_close(backward(upstream), x.grad)


class TestUnbroadcast:
    def test_sums_over_what_was_repeated(self) -> None:
        grad = np.arange(24.0).reshape(2, 3, 4)
        np.testing.assert_array_equal(ops.unbroadcast(grad, (3, 1)), grad.sum(axis=(0, 2)).reshape(3, 1))
        np.testing.assert_array_equal(ops.unbroadcast(grad, (2, 3, 4)), grad)
        np.testing.assert_array_equal(ops.unbroadcast(grad, ()), grad.sum())
        np.testing.assert_array_equal(ops.unbroadcast(torch.from_numpy(grad), (1, 4)), grad.sum(axis=(0, 1))[None])

    def test_sizes_0_and_1(self) -> None:
        assert ops.unbroadcast(np.ones((0, 3)), (1, 3)).tolist() == [[0, 0, 0]]
        assert ops.unbroadcast(np.ones((0, 3)), (3,)).tolist() == [0, 0, 0]
        assert ops.unbroadcast(np.ones((1, 1)), (1,)).tolist() == [1]
        assert ops.unbroadcast(np.ones((2, 0)), (2, 0)).shape == (2, 0)

    @pytest.mark.parametrize("shape", [(2,), (3, 1), (1, 2, 3), (0,)])
    def test_refuses_a_shape_that_does_not_broadcast(self, shape: tuple[int, ...]) -> None:
        with pytest.raises(ValueError, match=re.escape(f"shape {shape} does not broadcast to (2, 3)")):
            ops.unbroadcast(np.ones((2, 3)), shape)


TWO_BY_THREE = np.arange(1.0, 7.0).reshape(2, 3)
VECTOR = np.array([1.0, -2.0])
NUMPYS_EXP: Any = np.exp


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: ops.add(TWO_BY_THREE, VECTOR), ValueError, "add of (2, 3) and (2,): (2, 3) and (2,) do not broadcast"),
        (lambda: ops.matmul(TWO_BY_THREE, VECTOR), ValueError, "matmul of (2, 3) and (2,): rows of a have 3 entries"),
        (lambda: ops.matmul(TWO_BY_THREE, 2.0), ValueError, "matmul of (2, 3) and (): a number isn't a matrix"),
        (
            lambda: ops.matmul(np.ones((2, 1, 3)), np.ones((4, 3, 1))),
            ValueError,
            "matmul of (2, 1, 3) and (4, 3, 1): (2,) and (4,) do not broadcast",
        ),
        (
            lambda: ops.outer(TWO_BY_THREE, VECTOR),
            ValueError,
            "outer of (2, 3) and (2,): both operands must be vectors",
        ),
        (lambda: ops.trace(VECTOR), ValueError, "trace of (2,): the input must be a matrix"),
        (lambda: ops.sum(VECTOR, axis=1), ValueError, "sum of (2,): axis 1 is out of range for 1 dimension"),
        (lambda: ops.mean(VECTOR, axis=-2), ValueError, "mean of (2,): axis -2 is out of range for 1 dimension"),
        (
            lambda: ops.sum(TWO_BY_THREE, axis=(0, -2)),
            ValueError,
            "sum of (2, 3): axis (0, -2) names a dimension twice",
        ),
        (lambda: ops.sum(VECTOR, axis=()), ValueError, "sum of (2,): axis is an empty tuple"),
        (lambda: ops.mean(VECTOR[:0]), ValueError, "mean of (0,): there are no entries along axis (0,)"),
        (lambda: ops.max(TWO_BY_THREE[:0], axis=0), ValueError, "max of (0, 3): there are no entries along axis (0,)"),
        (lambda: ops.min(TWO_BY_THREE, axis=(0, 1)), ValueError, "min of (2, 3): axis is None or one integer"),
        (lambda: ops.softmax(VECTOR, axis=1), ValueError, "softmax of (2,): axis 1 is out of range"),
        (lambda: ops.diagonal(TWO_BY_THREE, axis2=2), ValueError, "diagonal of (2, 3): axis 2 is out of range"),
        (lambda: ops.transpose(TWO_BY_THREE, axes=(0,)), ValueError, "transpose of (2, 3): axes (0,) must name each"),
        (lambda: ops.reshape(TWO_BY_THREE, shape=(4,)), ValueError, "reshape of (2, 3): "),
        (
            lambda: ops.broadcast_to(TWO_BY_THREE, shape=(2, 1)),
            ValueError,
            "broadcast_to of (2, 3): does not broadcast to (2, 1)",
        ),
        (
            lambda: ops.concatenate(TWO_BY_THREE, VECTOR),
            ValueError,
            "concatenate of (2, 3) and (2,): the shapes must agree but for axis 0",
        ),
        (lambda: ops.index(VECTOR, key=5), ValueError, "index of (2,): index 5 is out of bounds"),
        (lambda: ops.clip(VECTOR, min=2, max=1), ValueError, "clip of (2,): min 2 is above max 1"),
        (lambda: ops.log(VECTOR), ValueError, "log of (2,): not defined for -2.0, at index (1,)"),
        (lambda: ops.sqrt(torch.tensor(VECTOR)), ValueError, "sqrt of (2,): not defined for -2.0, at index (1,)"),
        (
            lambda: ops.power(VECTOR, 0.5),
            ValueError,
            "power of (2,) and (): not defined for -2.0 and 0.5, at index (1,)",
        ),
        (
            lambda: ops.divide(0.0, 0 * VECTOR),
            ValueError,
            "divide of () and (2,): not defined for 0.0 and 0.0, at index",
        ),
        (
            lambda: ops.vjp(ops.power, VECTOR, VECTOR)[1](VECTOR),
            ValueError,
            "power: the exponent's gradient needs log(base), not defined for -2.0, at index (1,)",
        ),
        (
            lambda: ops.vjp(ops.exp, np.arange(3)),
            TypeError,
            "exp: a gradient needs operands of a floating dtype, not int",
        ),
        (
            lambda: ops.vjp(ops.exp, np.ones(2, complex)),
            TypeError,
            "exp: a gradient needs operands of a floating dtype",
        ),
        (
            lambda: ops.vjp(ops.add, VECTOR, VECTOR.astype(np.float32)),
            TypeError,
            "add: a gradient needs operands of one dtype, not float64 and float32",
        ),
        (lambda: ops.vjp(NUMPYS_EXP, VECTOR), TypeError, "vjp takes an operation of nn_manual.ops, not <ufunc 'exp'>"),
        (lambda: ops.add(VECTOR, torch.tensor(VECTOR)), TypeError, "add: operands are arrays of one library"),
        (lambda: ops.exp(1.0), TypeError, "exp: operands are arrays of one library, at least one, not float"),
        (
            lambda: ops.exp([1.0]),
            TypeError,
            "exp: operands are numpy arrays, torch tensors or Python numbers, not list",
        ),
        (
            lambda: ops.vjp(ops.sum, TWO_BY_THREE, axis=0)[1](VECTOR),
            ValueError,
            "sum: the upstream gradient has shape (2,), the answer (3,)",
        ),
        (
            lambda: ops.vjp(ops.exp, VECTOR)[1](1.0),
            ValueError,
            "exp: the upstream gradient has shape (), the answer (2,)",
        ),
        (
            lambda: ops.vjp(ops.exp, VECTOR)[1](torch.tensor(VECTOR)),
            TypeError,
            "exp: the upstream gradient is torch's torch.float64, the answer numpy's float64",
        ),
        (
            lambda: ops.vjp(ops.exp, VECTOR)[1](np.array([1, 2])),
            TypeError,
            "exp: the upstream gradient is numpy's int64, the answer numpy's float64",
        ),
        (lambda: ops.sum(VECTOR, axes=0), TypeError, "sum() got an unexpected keyword argument 'axes'"),
        (lambda: ops.sum(VECTOR, 0), TypeError, "sum() takes 1 positional argument but 2 were given"),
        (lambda: ops.power(VECTOR, exponent=2), TypeError, "positional-only"),
    ],
)
def test_bad_input(call: Callable[[], Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=re.escape(message)):
        call()


def test_help_shows_the_derivation() -> None:
    assert ops.exp.__name__ == "exp"
    assert (ops.exp.__doc__ or "").startswith("Elementwise exponential.")
    assert list(inspect.signature(ops.sum).parameters) == ["input", "axis", "keepdims"]
    assert repr(ops.exp) == "<operation exp>"
