"""What is said of gradients that are no numbers."""

from __future__ import annotations

import ast

import numpy as np
import pytest
from student import solution

from nn_manual import layers, ops
from nn_manual.exercises.kinds.every_exercise import find_exercise
from nn_manual.exercises.running.answer import Answer, Failure
from nn_manual.exercises.running.memory import added, is_memory, no_number
from nn_manual.exercises.running.reference import made_reference
from nn_manual.exercises.running.solving import results_of
from nn_manual.exercises.verdicts.judging import judge
from nn_manual.exercises.verdicts.verdict import Verdict

LINES = """
def backward(self, saved, grad_output):
    self.grad.weight += grad_output.T @ saved
    self.grad.bias[...] += grad_output.sum(0)
    self.grad.bias -= 1
"""


def judged(name: str, code: str) -> Verdict:
    exercise = find_exercise(name)
    right = made_reference(exercise, exercise.cases())
    answer = Answer(results_of(right.cases, solution(exercise, code), ""))
    return judge(right, Answer.from_bytes(answer.to_bytes()), "file")


def test_a_line_that_adds_to_memory_is_told() -> None:
    results = [{"grad_weight": np.full(2, np.nan), "grad_bias": np.ones(2)}, Failure("x")]
    (found,) = added(ast.parse(LINES), results)  # type: ignore[arg-type]  # any results
    assert found.line == 3
    assert found.words == (
        "self.grad.weight += adds to what was there, which is not 0: write self.grad.weight[...] = ..."
    )


def test_a_parameter_whose_name_has_a_dot_is_named_as_code() -> None:
    code = 'vars(self.grad)["out_proj.weight"][...] += 1\nself.grad.out_proj_weight += 1'
    (found,) = added(ast.parse(code), [{"grad_out_proj.weight": np.full(2, np.nan)}])
    own = 'vars(self.grad)["out_proj.weight"]'
    assert found.words == f"{own} += adds to what was there, which is not 0: write {own}[...] = ..."
    assert no_number(layers.CausalSelfAttention, "grad_out_proj.weight").endswith(f"Write into it: {own}[...] = ...")
    wanted = find_exercise("causal_self_attention").wanted()
    assert wanted.endswith(f", {own} and {own.replace('weight', 'bias')}, return grad_input.")


def test_what_is_returned_is_no_memory() -> None:
    assert is_memory(layers.Linear, "grad_weight")
    assert not is_memory(layers.Linear, "grad_input")
    assert not is_memory(ops.multiply, "grad_a")


def test_nan_that_is_returned_is_not_called_memory() -> None:
    verdict = judged("square", "def square(input, /): return input * input, lambda g: g * np.nan")
    assert verdict.explanation == [
        "grad_input is not a number: 0 / 0, infinity times 0, or infinity minus infinity.",
        "It is wrong on every input.",
    ]


def test_none_asks_for_the_return() -> None:
    verdict = judged("cosine_annealing_lr", "def lr(self, base, count):\n    base * 2")
    assert verdict.first_words == "lr is None, and not one number. Is a return missing?"


@pytest.mark.parametrize("returned", ["np.array([base])", "base if count < 3 else np.array([base])"])
def test_an_array_in_the_place_of_a_number_is_told(returned: str) -> None:
    verdict = judged("cosine_annealing_lr", f"def lr(self, base, count):\n    return {returned}")
    assert verdict.explanation == [
        "lr is an array of shape (1,), and not one number.",
        "It is wrong on every input.",
    ]


@pytest.mark.parametrize(("returned", "said"), [("1.0", "the number 1"), ("None", "None"), ("[1.0]", "a list")])
@pytest.mark.parametrize(("name", "gradient"), [("huber_loss", "grad_prediction"), ("tanh_layer", "grad_input")])
def test_a_derivative_that_is_no_array(name: str, gradient: str, returned: str, said: str) -> None:
    verdict = judged(name, f"def derivative(self, saved): return {returned}")
    assert verdict.first_words.startswith(f"{gradient} is {said}, and not an array of numbers.")
    assert "AttributeError" not in str(verdict)


def test_memory_that_stays_zero_may_have_been_written_in_place() -> None:
    """NAdam's mu_product begins with 1, which a reader has forgotten here."""
    verdict = judged("nadam", "def move(self, param, grad, vectors, c):\n    vectors['mu_product'] *= c['mu']")
    assert "something that isn't 0 must be added." in verdict.first_words


@pytest.mark.parametrize(
    ("name", "code", "given"),
    [
        ("square", "def square(input, /): return input * input, lambda g: g[9]", "answer"),
        ("tanh_layer", "def derivative(self, saved): return saved[99]", "output"),
        ("mse_loss", "def backward(self, saved): return 1 / 0", "loss"),
    ],
)
def test_what_forward_computed_is_right_where_the_derivative_raises(name: str, code: str, given: str) -> None:
    states = {row.name: row.state for row in judged(name, code).rows}
    assert states.pop(given) == "right"
    assert set(states.values()) == {"not reached"}


def test_the_gradient_that_fails_and_those_behind_it() -> None:
    code = """def multiply(a, b, /):
        def back(operand, other): return lambda g: unbroadcast(g * other, operand.shape) if a.size > 5 else g[9]
        return a * b, {}"""
    rows = {row.name: row.words for row in judged("multiply", code.format("lambda g: 2 * g, back(b, a)")).rows}
    assert rows["grad_a"].startswith("WRONG on ")
    assert rows["grad_b"] == "FAILS on 16 of 32 inputs, right on the others"
    rows = {row.name: row.words for row in judged("multiply", code.format("back(a, b), back(b, a)")).rows}
    assert rows["grad_a"] == "FAILS on 16 of 32 inputs, right on the others"
    assert rows["grad_b"] == "not reached on 16 of 32 inputs, right on the others"
    rows = {row.name: row.words for row in judged("linear", "def backward(self, saved, grad_output): 1 / 0").rows}
    # Which of three it would have written isn't known.
    assert rows["grad_input"] == rows["grad_weight"] == "not reached on all 41 inputs"


@pytest.mark.usefixtures("unhurried")
def test_wrong_values_come_before_an_error() -> None:
    code = """def square(input, /):
        return input * input, lambda g: g * input if input.ndim == 2 else 1 / 0"""
    said = judged("square", code).explanation
    assert said[0].startswith("grad_input is wrong. This is the right grad_input without `* 2`.")
    assert said[2] == "It is wrong on every input that it reached."
    assert said[3:] == [
        "file: ZeroDivisionError: division by zero",
        "It was in grad_input, on square of (4,), random operands.",
        "It fails on square of (4,) and square of (2, 3, 4). It runs on square of (2, 3) and square of (1, 1).",
    ]
    assert "  grad_input  WRONG on 8 of 16 inputs, FAILS on 8\n" in str(judged("square", code))


def test_a_difference_at_ties_alone_is_told_as_one() -> None:
    code = "def abs(input, /): return np.abs(input), lambda g: np.where(input >= 0, g, -g)"
    assert judged("abs", code).first_words == "grad_input is wrong: it differs at ties or kinks only."


def test_a_small_number_that_is_added_is_not_called_float32() -> None:
    said = judged("log", "def log(input, /): return np.log(input), lambda g: g / (input + 1e-8)").explanation
    assert "it has some 7 right digits, as where something is float32, or a small number is added." in said[0]
    assert "yours is -12.0631071" in said[1]


@pytest.mark.usefixtures("unhurried")
def test_the_size_of_a_batch_explains_before_another_name() -> None:
    exercise = find_exercise("whole_net")
    right = made_reference(exercise, exercise.cases())
    name = "grad_prediction"
    found = [
        {**each, name: each[name] * each[name].shape[1]} for each in right.expected
    ]
    assert judge(right, Answer(found), "file").first_words == (
        "grad_prediction is wrong. This is the right grad_prediction with `prediction.shape[0]` in the place of "
        "`prediction.size`. The mean is over all numbers of the prediction, not over the rows."
    )
