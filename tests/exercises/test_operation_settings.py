"""The shapes and options that operations are exercised on: code that is right on one of them alone doesn't pass."""

from __future__ import annotations

import functools

import numpy as np
import pytest
from student import solution

from nn_manual import ops
from nn_manual.check.catalogue.operations import torch_gradients
from nn_manual.exercises.kinds.every_exercise import find_exercise
from nn_manual.exercises.kinds.operation_settings import settings_of
from nn_manual.exercises.running.answer import Answer
from nn_manual.exercises.running.reference import made_reference
from nn_manual.exercises.running.solving import results_of
from nn_manual.exercises.verdicts.differences import agrees
from nn_manual.exercises.verdicts.judging import judge

#: Gradients that are right on one of the shapes or options, or without ties at the largest number.
RIGHT_ONCE = {
    "add": "def add(a, b, /): return a + b, lambda g: g, lambda g: g.sum(0)",
    "multiply": "def multiply(a, b, /): return a * b, lambda g: g * b, lambda g: unbroadcast(g * a, b.shape)",
    "divide": "def divide(a, b, /): return a / b, lambda g: (g / b).sum(0), lambda g: -g * a / b**2",
    "square": "def square(input, /): return input**2, lambda g: (2 * input * g).reshape(2, 3)",
    "clip": """def clip(input, /, *, min=-np.inf, max=np.inf):
        return np.clip(input, min, max), lambda g: np.where((input > min) & (input < max), g, 0)""",
    "power": """def power(base, exponent, /):
        answer = base**exponent
        return (
            answer,
            lambda g: unbroadcast(g * exponent * base ** (exponent - 1), base.shape),
            lambda g: unbroadcast(g * answer * np.log(base), exponent.shape),
        )""",
    "mean": """def mean(input, /, *, axis=None, keepdims=False):
        answer = np.mean(input, axis, keepdims=keepdims)
        return answer, lambda g: np.broadcast_to(g, input.shape) / input.shape[-1]""",
    "softmax": """def softmax(input, /, *, axis=-1):
        answer = np.exp(input) / np.exp(input).sum(axis, keepdims=True)
        return answer, lambda g: answer * (g - (g * answer).sum(-1, keepdims=True))""",
    "max": """def max(input, /, *, axis=None, keepdims=False):
        def backward(g):
            first = np.arange(input.size).reshape(input.shape) == np.argmax(input)
            return chosen(input, np.argmax, axis) * spread(g, input.shape, axis) if axis is not None else first * g
        return np.max(input, axis, keepdims=keepdims), backward""",
    "matmul": """def matmul(a, b, /):  # a stack in a alone is thought of
        A, B = (a[None, :] if a.ndim == 1 else a), (b[:, None] if b.ndim == 1 else b)
        def back_a(g):
            return (g.reshape((A @ B).shape) @ B.mT).reshape(a.shape)
        def back_b(g):
            return unbroadcast(A.mT @ g.reshape((A @ B).shape), B.shape).reshape(b.shape)
        return a @ b, back_a, back_b""",
    "concatenate": """def concatenate(*inputs, axis=0):
        sizes = [input.shape[axis] for input in inputs]
        def back(k):
            return lambda g: np.split(g, [sizes[0], sum(sizes[:2])], axis)[k] if k < 2 else np.split(g, [-1], axis)[1]
        return np.concatenate(inputs, axis), *(back(k) for k in range(len(inputs)))""",
    "logsumexp": """def logsumexp(input, /, *, axis=None, keepdims=False):
        total = np.exp(input).sum(axis, keepdims=True)
        back = lambda g: spread(g, input.shape, axis) * np.exp(input) / total
        return np.logaddexp.reduce(input, axis=axis, keepdims=keepdims), back""",
    "diagonal": """def diagonal(input, /, *, offset=0, axis1=0, axis2=1):
        def back(g):
            grad = np.zeros_like(input)
            places = np.diagonal(np.arange(input.size).reshape(input.shape), offset)
            grad.reshape(-1)[places] = g
            return grad
        return np.diagonal(input, offset, axis1, axis2), back""",
}


@pytest.mark.parametrize("name", RIGHT_ONCE)
def test_what_is_right_once_does_not_pass(name: str) -> None:
    exercise = find_exercise(name)
    right = made_reference(exercise, exercise.cases())
    found = results_of(right.cases, solution(exercise, RIGHT_ONCE[name]), "")
    assert not judge(right, Answer(found), "file").passed
    pairs = zip(found, right.expected, strict=True)
    assert any(isinstance(own, dict) and all(agrees(own[key], each[key]) for key in each) for own, each in pairs)


@pytest.mark.parametrize("name", [name for name in ops.__all__ if isinstance(getattr(ops, name), ops.Operation)])
def test_every_right_gradient_is_that_of_torch(name: str) -> None:
    for case in find_exercise(name).cases():
        if not case.kind.startswith(("random", "large")):
            continue
        run = case.run
        assert isinstance(run, functools.partial)
        expected = run(getattr(ops, name))
        operands, grad_answer = run.keywords["operands"], run.keywords["grad_answer"]
        options = {**({"axis": None} if name in ("sum", "mean") else {}), **case.instance.options}  # as torch needs it
        gradients = torch_gradients(getattr(ops, name), operands, options, grad_answer)
        for operand, gradient in zip(case.instance.operand_names, gradients, strict=True):
            assert agrees(expected[f"grad_{operand}"], gradient), case


def test_square_matrices_come_first_and_vectors_last() -> None:
    own = [case.shapes for case in settings_of(ops.matmul)]
    assert own[:2] == [((3, 3), (3, 3)), ((2, 3), (3, 4))]
    assert own[-5:] == [((3,), (3,)), ((2, 3), (3,)), ((2,), (2, 3)), ((5, 2, 3), (3,)), ((3,), (5, 3, 4))]


@pytest.mark.usefixtures("unhurried")
def test_a_forgotten_transposition_of_square_matrices_has_its_cause() -> None:
    exercise = find_exercise("matmul")
    right = made_reference(exercise, exercise.cases())
    wrong = "def matmul(a, b, /): return a @ b, lambda g: g @ b, lambda g: a.mT @ g"
    said = judge(right, Answer(results_of(right.cases, solution(exercise, wrong), "")), "file").explanation
    assert said[0] == (
        "grad_a is wrong. This is the right grad_a with `grad_matrix @ matrix_b` in the place of "
        "`grad_matrix @ matrix_b.mT`."
    )
    assert "It fails on every input but matmul of (3, 3) and (3, 3)." in said


def test_no_setting_comes_twice_and_each_has_numbers() -> None:
    for name in ops.__all__:
        if isinstance(operation := getattr(ops, name), ops.Operation):
            own = [(str(case.shapes), str(case.options)) for case in settings_of(operation)]
            assert len(own) == len(set(own)) > 0
            for case in find_exercise(name).cases():
                assert all(np.isfinite(value).all() for value in case.run(operation).values()), case
