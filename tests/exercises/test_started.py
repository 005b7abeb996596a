"""Each exercise's file: it runs, fails with what is missing, gives nothing away, and passes with our own solution."""

from __future__ import annotations

import ast
import inspect
import re
import types
from typing import Any

import numpy as np
import pytest
from exercise_files import module, some_cases

from nn_manual import layers, ops
from nn_manual.exercises.files.source import called, method
from nn_manual.exercises.files.started import started
from nn_manual.exercises.files.statement import formulas_back
from nn_manual.exercises.kinds.every_exercise import every_exercise, find_exercise
from nn_manual.exercises.kinds.exercise import Exercise
from nn_manual.exercises.running.answer import Answer, Failure
from nn_manual.exercises.running.reference import made_reference
from nn_manual.exercises.running.solving import results_of
from nn_manual.exercises.verdicts.judging import judge
from nn_manual.exercises.verdicts.rows import MISSING, RIGHT

EVERY = every_exercise().exercises
#: A shorter `return` says nothing.
LONG = 20

each_exercise = pytest.mark.parametrize("name", EVERY)


def is_operation(exercise: Exercise) -> bool:
    return isinstance(exercise.owner, ops.Operation)


def own_of(name: str) -> Any:
    """What the file that is started defines."""
    exercise = find_exercise(name)
    return getattr(module(started(exercise, f"{name}.py"), f"started_{name}"), exercise.title)


@each_exercise
def test_started_fails_with_what_is_missing_and_passes_with_our_solution(name: str) -> None:
    exercise, own, right = find_exercise(name), own_of(name), some_cases(name)
    assert exercise.accepts(own) == ""
    few = made_reference(exercise, right.cases[:2])
    verdict = judge(few, Answer(results_of(few.cases, own, "")), "file")
    assert not verdict.passed
    given = "" if "backward_target" in exercise.taken_out else "grad_target"
    wanted = [row for row in verdict.rows if row.name not in (given, "output", "answer", "loss")]
    assert {row.state for row in wanted} == {MISSING}
    if not exercise.is_function:
        for taken in exercise.taken_out:
            setattr(own, taken, inspect.getattr_static(exercise.owner, taken))
        verdict = judge(right, Answer(results_of(right.cases, own, "")), "file")
        assert verdict.passed, str(verdict)
        assert {row.state for row in verdict.rows} == {RIGHT}


@each_exercise
def test_started_imports_just_what_it_reads(name: str) -> None:
    """And NumPy, for what the reader writes, and what a hint of an operation reads."""
    exercise = find_exercise(name)
    tree = ast.parse(started(exercise, "file.py"))
    bound = {
        alias.asname or alias.name
        for node in tree.body
        if isinstance(node, ast.Import | ast.ImportFrom) and getattr(node, "module", "") != "__future__"
        for alias in node.names
    }
    hinted = ", ".join(formulas_back(exercise)) if is_operation(exercise) else ""
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)} | {*re.findall(r"\w+", hinted)}
    assert "np" in bound
    assert bound - {"np"} <= names


@each_exercise
def test_started_gives_nothing_away(name: str) -> None:
    exercise = find_exercise(name)
    text = started(exercise, "file.py")
    assert "Derivation" not in text
    if exercise.is_function:
        assert "lambda" not in text
        return
    given = {one.name for one in called(exercise.owner, exercise.given)}
    shown = "".join(ast.unparse(method(exercise.owner, one).tree) for one in given - {*exercise.taken_out})
    for taken in exercise.taken_out:
        for statement in method(exercise.owner, taken).tree.body[1:]:
            written = ast.unparse(statement)
            if isinstance(statement, ast.Return) and len(written) < LONG:  # "return grad_input" is asked for
                continue
            assert written not in text or written in shown, written
    lines = [line for line in text.splitlines() if line.lstrip().startswith("grad_") and " = " in line]
    if name not in ("sgd",) and exercise.given == ("forward",):
        assert lines == []


def test_an_operation_is_left_open_for_each_operand() -> None:
    text = started(find_exercise("multiply"), "multiply.py")
    assert text.count("raise NotImplementedError") == 2
    assert "    answer = a * b\n" in text
    assert "    return answer, grad_a, grad_b\n" in text
    text = started(find_exercise("concatenate"), "concatenate.py")
    assert "stops" not in text  # only the way back asks where an operand stops
    assert "*(backward_of(position) for position in range(len(inputs)))" in text


@pytest.mark.parametrize("name", [name for name, each in EVERY.items() if is_operation(each)])
def test_the_hints_of_an_operation_run_in_its_file(name: str) -> None:
    exercise, part = find_exercise(name), "[position]" if name == "concatenate" else ""
    hinted = formulas_back(exercise)
    text = started(exercise, "file.py")
    for line in [line for line in text.splitlines() if line.strip().startswith("def grad_")]:
        returned = line.split("(")[0].split()[1] + ("s" if part else "")
        indent = " " * (len(line) - len(line.lstrip()) + 4)
        needed = [hint for hint in hinted if not hint.startswith("grad_") or "_matrix =" in hint or returned in hint]
        body = [*needed, f"return {returned}{part}"]
        text = text.replace("raise NotImplementedError", f"\n{indent}".join(body), 1)
    own = getattr(module(text, f"hinted_{name}"), exercise.title)
    right = made_reference(exercise, exercise.cases())
    verdict = judge(right, Answer(results_of(right.cases, own, "")), "file")
    assert verdict.passed, str(verdict)


def test_the_answer_of_an_operation_is_as_ours() -> None:
    own = own_of("max")
    assert isinstance(own, ops.Operation)
    values = np.array([[1.0, 5.0], [7.0, 2.0]])
    assert np.array_equal(own(values, axis=1), [5, 7])


def test_helpers_of_forward_stand_in_the_file_and_those_of_backward_do_not() -> None:
    text = started(find_exercise("layer_norm"), "my_norm.py")
    assert "def _normalized_rows" in text
    assert "_grad_of_rows" not in text
    assert "nn-manual exercise check my_norm.py" in text
    assert "from nn_manual.layers.fast_forms import mean_over\n" in text


def test_forward_is_the_reader_s_where_it_saves_the_derivative() -> None:
    """GELU's own forward has all of the derivative, which nothing but `return saved` is left of."""
    exercise = find_exercise("gelu")
    text = started(exercise, "gelu.py")
    assert exercise.taken_out == ("forward", "derivative")
    assert text.count("raise NotImplementedError") == 2
    assert "density" not in text
    assert find_exercise("sigmoid").taken_out == ("derivative",)


def test_what_is_for_linters_is_left_out() -> None:
    assert "noqa" not in started(find_exercise("one_cycle_lr"), "file.py")
    assert "type: ignore" not in started(find_exercise("embedding"), "file.py")


def test_coefficients_of_an_optimizer_are_shown() -> None:
    text = started(find_exercise("sgd"), "sgd.py")
    assert '"undampened": 1 - self.dampening * (step > 1)' in text
    assert isinstance(own_of("sgd").move, types.FunctionType)


class Twice(layers.Tanh):
    """A layer whose forward goes on with its base's."""

    def forward(self, input: Any) -> Any:
        output, saved = super().forward(self.doubled(input))
        return output, saved

    def doubled(self, input: Any) -> Any:
        return 2 * input


def test_what_goes_on_with_its_base_is_inherited() -> None:
    """A copy of it in a derived class would run twice."""
    assert called(Twice, ["forward"]) == []
    assert [one.name for one in called(Twice, ["doubled"])] == ["doubled"]


@pytest.mark.parametrize(
    "end",
    ["return answer", "return answer, grad_a", "return answer, grad_a, grad_b, grad_b", "pass", "return answer, 1, 2"],
)
def test_the_end_of_an_operation_stays_as_it_was(end: str) -> None:
    exercise = find_exercise("multiply")
    text = started(exercise, "file.py").replace("return answer, grad_a, grad_b", end)
    own = module(text, "ends").multiply
    found = results_of(exercise.cases()[:1], own, "")[0]
    assert isinstance(found, Failure)
    assert found.words == "the operation must end in `return answer, grad_a, grad_b`, as it was written"
    assert found.line == len(text.splitlines())


def test_the_end_of_an_operation_of_any_number_of_operands() -> None:
    text = started(find_exercise("concatenate"), "file.py").replace("return answer, *", "return answer, [0], *")
    found = results_of(find_exercise("concatenate").cases()[:1], module(text, "of_many").concatenate, "")[0]
    assert isinstance(found, Failure)
    assert "must end in `return answer, *(backward_of(position) for position in range(len(inputs)))`" in found.words


@pytest.mark.parametrize(
    ("name", "asked"),
    [
        ("mse_loss", {"backward": "Return grad_prediction.", "backward_target": "Return grad_target."}),
        ("huber_loss", {"derivative": "Return the derivative of each term with respect to its prediction, shaped as"}),
        (
            "one_cycle_lr",
            {
                "lr": "Return the learning rate after so many epochs or steps.",
                "momentum": "Return the momentum after so many epochs or steps.",
            },
        ),
        ("step_lr", {"lr": "Return the learning rate after so many epochs or steps."}),
        ("gelu", {"forward": "Return `output, saved`: what", "derivative": "Return the derivative of each output"}),
        ("linear", {"backward": "Write self.grad.weight and self.grad.bias, return grad_input."}),
    ],
)
def test_each_method_says_what_is_asked_of_it(name: str, asked: dict[str, str]) -> None:
    own = own_of(name)
    assert find_exercise(name).taken_out == (*asked,)
    assert [(vars(own)[method].__doc__ or "").startswith(said) for method, said in asked.items()] == [True] * len(asked)


def test_what_a_schedule_notes_is_the_readers_to_write() -> None:
    text = started(find_exercise("reduce_lr_on_plateau"), "file.py")
    assert "def observe(self, validation_loss: float) -> None:" in text
    assert "num_reductions counts" in text  # the name that observe and lr have in common
    assert "observe" not in started(find_exercise("step_lr"), "file.py")
