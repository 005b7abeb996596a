"""The whole net as an exercise: its lines are those of its layers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from exercise_files import module

from nn_manual import Sequential
from nn_manual.exercises import check
from nn_manual.exercises.kinds.exercise import Case
from nn_manual.exercises.kinds.of_nets import NetExercise, small_net
from nn_manual.exercises.running.answer import Answer
from nn_manual.exercises.running.reference import made_reference
from nn_manual.exercises.running.solving import results_of
from nn_manual.exercises.verdicts.judging import judge

EXERCISE = NetExercise("whole_net", small_net, ("backward",))


@pytest.mark.parametrize("case", EXERCISE.cases(), ids=str)
def test_the_formulas_give_what_the_layers_compute(case: Case) -> None:
    found = case.run(EXERCISE.owner)
    net = small_net()
    model = Sequential(*net.layers, dtype="float64")
    model.load_state_dict({".".join(name.split("_")[::-1]): case.known[name] for name in EXERCISE.lines.shapes})
    prediction, saved = model.forward(case.known["input"])
    _, of_loss = net.loss.forward(prediction, case.known["target"])
    grad = net.loss.backward(of_loss)
    expected = {"grad_prediction": grad}
    for number in range(len(net.layers) - 1, -1, -1):
        grad = model.layers[number].backward(saved[number], grad)
        expected[f"grad_output_{number - 1}" if number else "grad_input"] = grad
        own = vars(model.layers[number].grad)
        expected |= {f"grad_{name}_{number}": array.copy() for name, array in own.items()}
    assert set(found) == set(expected) == set(EXERCISE.lines.gradients)
    for name, value in expected.items():
        np.testing.assert_allclose(found[name], value, rtol=1e-9, atol=1e-12)


def test_lines_read_as_numpy() -> None:
    forward = {line.name: line.expression for line in EXERCISE.lines.forward}
    backward = {line.name: line.expression for line in EXERCISE.lines.backward}
    assert forward["output_0"] == "input @ weight_0.T + bias_0"
    assert forward["std_1"] == "np.sqrt(output_0.var((-1,), keepdims=True) + 1e-05)"
    assert forward["loss"] == "np.mean((prediction - target) ** 2)"
    assert backward["grad_output_1"] == "grad_output_2 * (1 - output_2 ** 2)"
    assert backward["grad_weight_3"] == "grad_output_3.T @ output_2"


def own_net(**changed: str) -> Any:
    """The reader's function, with other expressions for some gradients."""
    lines = [f"{line.name} = {changed.get(line.name, line.expression)}" for line in EXERCISE.formulas()]
    arguments = ", ".join(["input", "target", *EXERCISE.lines.shapes])
    returned = ", ".join(f"{name}={name}" for name in EXERCISE.lines.gradients)
    body = "\n    ".join([*lines, f"return dict({returned})"])
    return module(f"import numpy as np\n\ndef whole_net({arguments}):\n    {body}\n", "net").whole_net


@pytest.mark.usefixtures("unhurried")
def test_a_notebook_checks_the_function() -> None:
    assert check(own_net()).passed
    verdict = check(own_net(grad_output_1="grad_output_2 * (1 - output_2)"))
    assert verdict.first_wrong == "grad_output_1"
    assert verdict.explanation[0].endswith(
        "without the power in `output_2 ** 2`. tanh' = 1 - tanh**2, and output_2 is the tanh."
    )


def test_what_was_computed_before_an_unwritten_gradient_is_read_counts() -> None:
    right = made_reference(EXERCISE, EXERCISE.cases())
    found = results_of(right.cases, own_net(grad_output_2="..."), "<net>")
    verdict = judge(right, Answer(found), "net.py")
    states = {row.name: row.state for row in verdict.rows}
    assert states["grad_prediction"] == states["grad_output_3"] == "right"
    assert states["grad_output_2"] == states["grad_output_1"] == "not reached"
    lines = EXERCISE.formulas()
    reads = next(i for i, line in enumerate(lines) if "grad_output_2" in line.expression)
    assert verdict.first_words == f"net.py:{reads + 4}: grad_output_2 is not written yet, and this line reads it"


def test_what_ends_the_process_keeps_what_was_computed_before() -> None:
    right = made_reference(EXERCISE, EXERCISE.cases())
    found = results_of(right.cases, own_net(grad_output_2="(_ for _ in ()).throw(SystemExit)"), "<net>")
    states = {row.name: row.state for row in judge(right, Answer(found), "net.py").rows}
    assert states["grad_prediction"] == states["grad_output_3"] == "right"
    assert states["grad_output_2"] == "not reached"


def test_what_is_not_written_is_missing() -> None:
    case = EXERCISE.cases()[0]
    found = case.run(lambda **known: {"grad_prediction": known["target"], "grad_input": ...})
    assert list(found) == ["grad_prediction"]
    assert EXERCISE.accepts(np.ndarray) == "whole_net must be a function"
    assert EXERCISE.accepts(len) == ""
