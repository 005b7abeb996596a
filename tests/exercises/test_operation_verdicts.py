"""What is said of wrong operations: at ties, where a number is infinite, and where the code fails on some inputs."""

from __future__ import annotations

import functools

import pytest
from student import solution

from nn_manual.exercises.kinds.every_exercise import find_exercise
from nn_manual.exercises.running.answer import Answer
from nn_manual.exercises.running.reference import Reference, made_reference
from nn_manual.exercises.running.solving import results_of
from nn_manual.exercises.verdicts.judging import judge


@functools.cache
def right(name: str) -> Reference:
    exercise = find_exercise(name)
    return made_reference(exercise, exercise.cases())


def said(name: str, code: str) -> str:
    """What a file with this code is told."""
    found = results_of(right(name).cases, solution(find_exercise(name), code), "")
    return " ".join(judge(right(name), Answer(found), "file").explanation)


#: Gradients that are right but at ties and kinks, and what the docstring says of these.
AT_KINKS = {
    "relu": (
        "def relu(input, /): return np.maximum(input, 0), lambda g: np.where(input >= 0, g, 0)",
        "At the kink any value in [0, 1] is a subgradient; torch takes 0.",
    ),
    "abs": (
        "def abs(input, /): return np.abs(input), lambda g: np.where(input >= 0, g, -g)",
        "torch takes 0, which is sign(0).",
    ),
    "clip": (
        """def clip(input, /, *, min=-np.inf, max=np.inf):
        return np.clip(input, min, max), lambda g: np.where((input > min) & (input < max), g, 0)""",
        "At the limits, which are kinks,",
    ),
    "maximum": (
        """def maximum(a, b, /):
        back = lambda g: unbroadcast(np.where(a >= b, g, 0), a.shape)
        return np.maximum(a, b), back, lambda g: unbroadcast(np.where(a < b, g, 0), b.shape)""",
        "torch takes 1/2 for each.",
    ),
    "minimum": (
        """def minimum(a, b, /):
        back = lambda g: unbroadcast(np.where(a <= b, g, 0), a.shape)
        return np.minimum(a, b), back, lambda g: unbroadcast(np.where(a > b, g, 0), b.shape)""",
        "At a tie, torch takes the slope 1/2 for each operand.",
    ),
    "max": (
        """def max(input, /, *, axis=None, keepdims=False):
        back = lambda g: (input == input.max(axis, keepdims=True)) * spread(np.asarray(g), input.shape, axis)
        return np.max(input, axis, keepdims=keepdims), back""",
        "along an axis, the first of them has the share 1.",
    ),
    "min": (
        """def min(input, /, *, axis=None, keepdims=False):
        back = lambda g: (input == input.min(axis, keepdims=True)) * spread(np.asarray(g), input.shape, axis)
        return np.min(input, axis, keepdims=keepdims), back""",
        "along an axis, it takes the share 1 for the first of them.",
    ),
    "leaky_relu": (
        """def backward(self, saved, grad_output):
    return np.where(saved >= 0, 1, self.negative_slope) * grad_output""",
        "At 0 torch takes the slope of the lower line.",
    ),
    "l1_loss": (
        """def derivative(self, saved):
    return np.where(saved >= 0, 1.0, -1.0)""",
        "At 0 there is a kink; any value in [-1, 1] is a subgradient, and torch takes 0.",
    ),
}


@pytest.mark.parametrize("name", AT_KINKS)
def test_at_kinks_the_docstring_has_the_word(name: str) -> None:
    code, of_kinks = AT_KINKS[name]
    told = said(name, code)
    assert "The docstring says of ties and kinks: " in told
    assert of_kinks in told


def test_away_from_kinks_nothing_is_said_of_them() -> None:
    told = said("relu", "def relu(input, /): return np.maximum(input, 0), lambda g: np.where(input > 0, 2 * g, 0)")
    assert "kinks" not in told


EXP = "def exp(input, /):\n    answer = np.exp(input)\n    return answer, lambda g: "
INFINITE = "It is infinite where the right one is finite: a division by 0, or an overflow."


@pytest.mark.parametrize("back", ["g / 0", "g * np.inf", "np.where(input > 0, g / 0, g * answer)"])
def test_an_infinite_number_isn_t_explained_by_a_formula(back: str) -> None:
    told = said("exp", EXP + back)
    assert INFINITE in told
    assert "This is the right" not in told


def test_what_is_finite_in_part_is_explained_by_a_formula() -> None:
    """At 0 alone it is infinite."""
    told = said("square", "def square(input, /): return input**2, lambda g: 2 * g / input")
    assert "with `/ input` in the place of `* input`" in told


def test_an_overflow_of_large_operands() -> None:
    told = said(
        "softmax",
        """def softmax(input, /, *, axis=-1):
        p = np.exp(input) / np.exp(input).sum(axis, keepdims=True)
        shifted = np.exp(input - input.max(axis, keepdims=True))
        back = lambda g: p * (g - (g * p).sum(axis, keepdims=True))
        return shifted / shifted.sum(axis, keepdims=True), back""",
    )
    assert "grad_input is not a number: 0 / 0, infinity times 0, or infinity minus infinity." in told
    assert "It is wrong on large operands and large negative operands." in told


def test_a_number_that_is_lost_in_places() -> None:
    """The limit of 0 * log(0) isn't taken."""
    told = said(
        "power",
        """def power(base, exponent, /):
        answer = base**exponent
        slope = lambda: np.where(exponent == 0, 0, exponent * base ** (exponent - 1))
        back = lambda g: unbroadcast(g * answer * np.log(base), exponent.shape)
        return answer, lambda g: unbroadcast(g * slope(), base.shape), back""",
    )
    assert "In places it is not a number: 0 / 0, infinity times 0" in told


def test_an_exponential_of_differences_may_be_rounded_in_any_order() -> None:
    """All numbers of a gradient that cancels are roundings: large operands must not be far apart."""
    right_ones = """def softmax(input, /, *, axis=-1):
        p = np.exp(input - input.max(axis, keepdims=True))
        p = p / p.sum(axis, keepdims=True)
        return p, lambda g: p * g - p * (p * g).sum(axis, keepdims=True)"""
    assert said("softmax", right_ones) == ""


#: Code that fails on some inputs, and what is said of it.
SUM = """def sum(input, /, *, axis=None, keepdims=False):
        return np.sum(input, axis=axis, keepdims=keepdims), lambda g: """
FAILS = [
    (
        "sum",
        SUM + "g * np.ones_like(input)",
        "It fails just where the right grad_input fails without the summed axes, which must come back as keepdims "
        "leaves them, in `spread(grad_answer, input.shape, axis)`.",
    ),
    (
        "sum",
        SUM + "np.broadcast_to(g if keepdims or axis is None else np.asarray(g)[..., None], input.shape)",
        "with the summed axes put back behind the others in",
    ),
    (
        "sum",
        SUM + "np.broadcast_to(g.reshape(g.shape + (1,) * (input.ndim - g.ndim)), input.shape)",
        "with the summed axes put back behind the others in",
    ),
    (
        "sum",
        SUM + "np.broadcast_to(g if axis is None else np.expand_dims(g, axis), input.shape)",
        "with axes put back also where keepdims has left them in",
    ),
    (
        "max",
        """def max(input, /, *, axis=None, keepdims=False):
        return np.max(input, axis, keepdims=keepdims), lambda g: chosen(input, np.argmax, axis) * g""",
        "without the `spread` of",
    ),
    (
        "multiply",
        """def multiply(a, b, /):
        return a * b, lambda g: (g * b).reshape(a.shape), lambda g: unbroadcast(g * a, b.shape)""",
        "with a reshape, which adds nothing up, in the place of the sum in `unbroadcast(grad_answer * b, a.shape)`",
    ),
    (
        "matmul",
        "def matmul(a, b, /): return a @ b, lambda g: g @ b.T, lambda g: a.T @ g",
        "It holds for two matrices. Of a stack, .T reverses all axes",
    ),
]


@pytest.mark.parametrize(("name", "code", "cause"), FAILS)
def test_a_failure_on_some_inputs_has_a_cause(name: str, code: str, cause: str) -> None:
    assert cause in said(name, code)


def test_a_failure_of_another_kind_has_none() -> None:
    told = said("sum", "def sum(input, /, *, axis=None, keepdims=False): return np.sum(input, axis), lambda g: unknown")
    assert "fails just where" not in told


def test_what_ends_the_process_is_told_of_the_gradient_that_does() -> None:
    code = "def exp(input, /):\n    def back(g): raise SystemExit(3)\n    return np.exp(input), back"
    found = results_of(right("exp").cases, solution(find_exercise("exp"), code), "")
    verdict = judge(right("exp"), Answer(found), "file")
    assert [row.words for row in verdict.rows] == ["right", "FAILS on all 16 inputs"]
    told = ["file: SystemExit: 3", "It was in grad_input, on exp of (2, 3), random operands."]
    assert verdict.explanation[:2] == told


@pytest.mark.parametrize(
    ("answer", "written"),
    [("np.exp(input)", "np.multiply(answer, g, out=answer)"), ("whole[:]", "np.multiply(whole, g, out=whole)")],
)
def test_a_gradient_that_writes_into_the_answer(answer: str, written: str) -> None:
    code = f"def exp(input, /):\n    whole = np.exp(input)\n    answer = {answer}\n"
    code += f"    return answer, lambda g: {written}"
    found = results_of(right("exp").cases, solution(find_exercise("exp"), code), "")
    verdict = judge(right("exp"), Answer(found), "file")
    assert [row.words for row in verdict.rows] == ["right", "FAILS on all 16 inputs"]
    assert verdict.first_words == "file:4: grad_input writes into answer, which other code still reads"
