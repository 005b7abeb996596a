"""What is said of 700 mistakes of 115 exercises, as students make them: the cause, or nothing; never another cause."""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import mistakes
import numpy as np
import pytest
from mistakes import STUDENTS
from slow_cases import slow
from student import solution

from nn_manual import ops
from nn_manual.exercises.causes import explanation
from nn_manual.exercises.causes.agreement import same, tells
from nn_manual.exercises.causes.candidates import singles
from nn_manual.exercises.causes.changes import changes_of
from nn_manual.exercises.causes.code_text import CodeText
from nn_manual.exercises.causes.common_mistakes import ARROW, MISTAKES, TOGETHER
from nn_manual.exercises.causes.explanation import explain
from nn_manual.exercises.causes.formula_text import FormulaText, UpdateText
from nn_manual.exercises.causes.operation_text import OperationText
from nn_manual.exercises.kinds.every_exercise import every_exercise
from nn_manual.exercises.kinds.exercise import Case, Exercise, Reached, Results
from nn_manual.optim import Optimizer

#: Of these exercises the quick tests have something: all of them take minutes.
QUICK = {*[*MISTAKES][::3]}

#: The exercises that have methods.
CLASSES = [name for name, exercise in every_exercise().exercises.items() if isinstance(exercise.owner, type)]


@pytest.fixture(autouse=True)
def _no_numpy_warnings() -> Iterator[None]:
    with np.errstate(all="ignore"):  # a wrong formula may divide by 0
        yield


@functools.cache
def cases_of(name: str) -> tuple[Exercise, list[Case], list[Results]]:
    """An exercise, its cases, and what the package computes in each."""
    exercise = every_exercise().exercises[name]
    cases = exercise.cases()
    return exercise, cases, [case.run(exercise.owner) for case in cases]


def results_of(name: str, code: str) -> list[Results]:
    """What a student's code computes in each case, nothing where it raises."""
    exercise, cases, _ = cases_of(name)
    own, found = solution(exercise, code), []
    for case in cases:
        try:
            found.append(case.run(own))
        except Reached:
            found.append({})
    return found


def first_wrong(name: str, theirs: list[Results]) -> str | None:
    """The first tensor that differs in the first case in which one does."""
    for right, own in zip(cases_of(name)[2], theirs, strict=True):
        wrong = next((tensor for tensor in right if own and not same(own.get(tensor), right[tensor])), None)
        if wrong is not None:
            return wrong
    return None


def said_of(name: str, index: int) -> str:
    """The explanation of one mistake."""
    exercise, cases, expected = cases_of(name)
    theirs = results_of(name, STUDENTS[name].wrong(index))
    wrong = first_wrong(name, theirs)
    assert wrong is not None, "the cases don't show it"
    return explain(exercise, cases, expected, theirs, wrong)


def every_mistake(explained: bool) -> list[Any]:
    """The mistakes whose cause is found, or those whose cause isn't. The quick tests have the first of some exercises.
    """
    found = []
    for name, student in STUDENTS.items():
        for index, (_, wrong, said) in enumerate(student.mistakes):
            marks = [] if name in QUICK and not index else [pytest.mark.slow]
            if (said is not None) == explained:
                found.append(pytest.param(name, index, marks=marks, id=f"{name}-{wrong}"))
    return found


@pytest.mark.parametrize("name", [name if name in QUICK else slow(name) for name in STUDENTS])
def test_another_form_of_the_right_solution_agrees(name: str) -> None:
    assert first_wrong(name, results_of(name, STUDENTS[name].code)) is None


@pytest.mark.usefixtures("unhurried")
@pytest.mark.parametrize(("name", "index"), every_mistake(explained=True))
def test_says_the_cause(name: str, index: int) -> None:
    _, _, said = STUDENTS[name].mistakes[index]
    assert said is not None
    assert said in said_of(name, index)


@pytest.mark.parametrize(("name", "index"), every_mistake(explained=False))
def test_says_nothing_where_no_change_is_the_cause(
    name: str, index: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(explanation, "SECONDS", 0.3)
    assert said_of(name, index) == ""


def test_at_least_four_mistakes_of_each_of_30_exercises_and_200_in_all() -> None:
    of_each = {name: len(student.mistakes) for name, student in STUDENTS.items()}
    assert sum(count >= 4 for count in of_each.values()) >= 30
    assert sum(of_each.values()) >= 200
    found = [said for student in STUDENTS.values() for *_, said in student.mistakes if said is not None]
    assert len(found) >= 0.9 * sum(of_each.values())


def test_mistakes_stand_in_the_files_of_their_chapter() -> None:
    chapters, num_files = every_exercise().chapters, 0
    for title, files in mistakes.CHAPTERS.items():
        names = [name for students in files for name in students]
        assert set(names) <= set(chapters[title])
        assert len(names) == len(set(names))
        num_files += len(files)
    assert num_files == len([*Path(mistakes.__file__).parent.glob("[a-z]*.py")])  # none is left out


def test_each_exercise_has_sentences_of_its_own() -> None:
    assert MISTAKES.keys() == every_exercise().exercises.keys()
    assert all(any(sentences.values()) for sentences in MISTAKES.values())


def test_says_nothing_of_what_is_right() -> None:
    exercise, cases, expected = cases_of("layer_norm")
    assert explain(exercise, cases, expected, expected, "grad_input") == ""


@pytest.mark.parametrize("given", [None, "an array", [1.0], np.array(["a"]), np.array(None), np.ones((2, 2), complex)])
@pytest.mark.parametrize(("name", "wrong"), [("square", "grad_input"), ("sgd", "parameters after step 1")])
def test_what_is_no_array_of_numbers_has_no_cause(name: str, wrong: str, given: Any) -> None:
    exercise, cases, expected = cases_of(name)
    theirs = [{**right, wrong: given} for right in expected]
    assert explain(exercise, cases, expected, theirs, wrong) == ""
    assert explain(exercise, cases, expected, [{} for _ in expected], wrong) == ""


def test_the_exercise_has_its_own_words() -> None:
    assert said_of("layer_norm", 1) == (
        "This is the right grad_input without `- normalized * projection`. The path through the variance is missing: "
        "each number moves it, and so all normalized numbers."
    )


def test_another_schedule_may_give_the_same_counts() -> None:
    assert said_of("linear_lr", 0) == (
        "At these counts this is the lr of the right formula without the `min` of `min(count, self.total_iters)` in "
        "`progress = min(count, self.total_iters) / max(1, self.total_iters)`. After total_iters the lr stays."
    )


def test_two_changes_are_both_told() -> None:
    exercise, cases, expected = cases_of("layer_norm")
    code = STUDENTS["layer_norm"].code.replace("dxhat = g * self.param.weight.reshape(-1)", "pass")
    code = code.replace(" + dvar * 2 * centered / F", "")
    assert explain(exercise, cases, expected, results_of("layer_norm", code), "grad_input") == (
        "This is the right grad_input without `- normalized * projection`, and without `* weight` in "
        "`grad_normalized = grad_output * weight`."
    )


def test_a_cause_of_one_setting_must_hold_for_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(explanation, "SECONDS", 0.5)
    exercise, cases, expected = cases_of("layer_norm")
    theirs = results_of("layer_norm", STUDENTS["layer_norm"].wrong(1))
    theirs[-1] = {**theirs[-1], "grad_input": theirs[-1]["grad_input"] + 1}
    assert explain(exercise, cases, expected, theirs, "grad_input") == ""


def test_a_change_that_takes_all_memory_is_not_the_cause(monkeypatch: pytest.MonkeyPatch) -> None:
    def too_large(*_: Any) -> Results:
        raise MemoryError

    for text in (FormulaText, CodeText):
        monkeypatch.setattr(text, "results", too_large)
    assert said_of("tanh", 0) == ""


@pytest.mark.parametrize("name", CLASSES)
def test_the_plain_form_of_our_code_computes_the_same(name: str) -> None:
    exercise = every_exercise().exercises[name]
    cases = exercise.cases()[:3]
    text = CodeText(exercise, cases)
    for number, case in enumerate(cases):
        right, own = case.run(exercise.owner), text.run({}, number)
        assert own.keys() == right.keys()
        assert all(same(own[tensor], right[tensor]) for tensor in right)


@pytest.mark.parametrize("name", ["glu", "layer_norm", "max_pool1d"])
def test_changes_at_once_compute_what_each_computes_alone(name: str) -> None:
    exercise, cases, _ = cases_of(name)
    text = CodeText(exercise, cases)
    candidates = list(text.candidates(0))[::7]
    alone = [outcome(text, each) for each in candidates]
    text.prepare(candidates)
    assert sum(map(bool, alone)) > 10
    for own, each in zip(alone, candidates, strict=True):
        at_once = outcome(text, each)
        assert own.keys() == at_once.keys()
        assert all(same(at_once[tensor], own[tensor]) for tensor in own)


def outcome(text: CodeText, candidate: Any) -> Results:
    """What a change computes in the first case, nothing where it raises."""
    try:
        return {tensor: np.array(value) for tensor, value in text.results(candidate, 0).items()}
    except Exception:  # a change may break the code in any way
        return {}


@pytest.mark.parametrize("name", [name if name in QUICK else slow(name) for name in MISTAKES])
def test_each_sentence_is_of_a_change_that_can_be_made(name: str) -> None:
    exercise, cases, _ = cases_of(name)
    is_optimizer = isinstance(exercise.owner, type) and issubclass(exercise.owner, Optimizer)
    texts: list[Any] = [UpdateText(exercise, cases, True) if is_optimizer else FormulaText(exercise, cases)]
    if isinstance(exercise.owner, ops.Operation):
        texts.append(OperationText(exercise, cases))
    elif isinstance(exercise.owner, type):
        texts.append(CodeText(exercise, cases))
    words, formulas = set(), set()
    for text in texts:
        for each in candidates_of(text, len(cases)):
            words |= {each.edits[0][1].words, f"{each.edits[0][1].words}, in {each.name}"}
        formulas |= {ast_text for unit in text.units for ast_text in expressions(unit)}
    for written in MISTAKES[name]:
        right, arrow, _ = written.partition(ARROW)
        assert (right in formulas) if arrow else (words >= {*written.split(TOGETHER)}), written


def candidates_of(text: Any, num_cases: int) -> list[Any]:
    """The single changes in the first case in which the text can be evaluated."""
    for number in range(num_cases if text.units else 0):
        try:
            return list(text.candidates(number))
        except (NameError, TypeError, ValueError):  # formulas in words that aren't Python's, or of another shape
            continue
    return []


def expressions(unit: Any) -> set[str]:
    """The text of each expression in a tree."""
    return {ast.unparse(node) for node in ast.walk(unit) if isinstance(node, ast.expr)}


def test_what_is_added_at_indices_may_be_assigned_instead() -> None:
    (statement,) = ast.parse("np.add.at(grad, places, values)").body
    (found,) = (each for each in singles(0, statement, {}, []) if "for `+=`" in each.edits[0][1].words)
    assert ast.unparse(ast.fix_missing_locations(found.edits[0][1].wrong)) == "grad[places] = values"


def changed_forms(formula: str) -> set[str]:
    """The text of what stands in the place of each changed part of a formula."""
    expression = ast.parse(formula, mode="eval").body
    return {ast.unparse(each.wrong) for each in changes_of(expression, {}, [])}


def test_an_array_whose_shape_alone_is_read_isn_t_taken_for_another() -> None:
    """`a` in the place of `b`, and `b` in the place of `a`, would contradict each other."""
    expression = ast.parse("unbroadcast(g * b, a.shape)", mode="eval").body
    names = {"g": np.ones((2, 3)), "a": np.ones(3), "b": np.ones(3)}
    changed = [ast.unparse(each.node) for each in changes_of(expression, names, [])]
    assert "b" in changed
    assert "a" not in changed


def test_an_option_is_taken_for_its_default_and_a_loop_s_own_name_isn_t() -> None:
    assert {"0", "-1", "None"} <= changed_forms("take(input, axis)")
    assert not {"0", "-1"} & changed_forms("tuple(axis for axis in axes if axis in others)")


def test_a_number_that_is_infinite_tells_nothing_of_a_formula() -> None:
    right = np.array([2.0, 1.0])
    assert not tells(np.array([np.inf, 1.0]), right)
    assert tells(np.array([np.inf, 3.0]), right)
    assert tells(np.ones(3), right)
