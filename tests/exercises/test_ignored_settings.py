"""A setting that the way back ignores, of layers, losses, optimizers and schedules."""

from __future__ import annotations

import ast

import numpy as np
import pytest

from nn_manual.exercises.causes.agreement import same
from nn_manual.exercises.causes.code_statements import makes_views
from nn_manual.exercises.causes.ignored_settings import IgnoredSettings
from nn_manual.exercises.kinds.every_exercise import find_exercise


def words_of(name: str) -> list[str]:
    exercise = find_exercise(name)
    cases = exercise.cases()
    settings = IgnoredSettings(exercise, cases)
    return list(dict.fromkeys(each.edits[0][1].words for each in settings.candidates(range(len(cases)))))


def ignored(value: str) -> str:
    return f"for {value}: your code ignores `{value.partition('=')[0]}`"


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("max_pool1d", [ignored("stride=None"), ignored("padding=0"), ignored("dilation=1")]),
        ("avg_pool1d", [ignored("count_include_pad=True")]),
        ("embedding", [ignored("padding_idx=None")]),
        ("mse_loss", [ignored("reduction='mean'")]),
        ("cross_entropy_loss", [ignored("label_smoothing=0.0"), ignored("ignore_index=-100"), ignored("weight=None")]),
        ("sgd", [ignored("momentum=0.0"), ignored("nesterov=False"), ignored("weight_decay=0.0")]),
        ("adam", ["with the two numbers of `betas` exchanged"]),
        ("rprop", ["with the two numbers of `etas` exchanged"]),
        ("step_lr", [ignored("step_size=1"), ignored("gamma=0.1")]),
    ],
)
def test_each_setting_is_tried_at_its_default(name: str, told: list[str]) -> None:
    assert set(told) <= set(words_of(name))


@pytest.mark.parametrize("name", ["sgd", "adam"])
def test_what_every_step_has_is_no_setting(name: str) -> None:
    assert not any("`lr`" in words or "`model`" in words or "`groups`" in words for words in words_of(name))


@pytest.mark.parametrize("name", ["conv1d", "mse_loss", "adam", "step_lr"])
def test_forward_keeps_the_right_setting(name: str) -> None:
    exercise = find_exercise(name)
    cases = exercise.cases()[:6]
    settings = IgnoredSettings(exercise, cases)
    for each in settings.candidates([len(cases) - 1]):
        try:
            results = settings.results(each, len(cases) - 1)
        except Exception:  # a setting that doesn't fit the others
            continue
        right = cases[-1].run(exercise.owner)
        assert all(same(results[tensor], right[tensor]) for tensor in ("output", "loss") if tensor in right)


def test_a_case_is_as_it_was_afterwards() -> None:
    exercise = find_exercise("conv_transpose1d")
    cases = exercise.cases()
    number = next(index for index, case in enumerate(cases) if "stride" in case.setting)
    before = cases[number].run(exercise.owner)
    settings = IgnoredSettings(exercise, cases)
    stride = next(each for each in settings.candidates([number]) if "stride=1" in each.edits[0][1].words)
    assert not np.array_equal(settings.results(stride, number)["grad_input"], before["grad_input"])
    assert all(np.array_equal(cases[number].run(exercise.owner)[tensor], before[tensor]) for tensor in before)


@pytest.mark.parametrize(
    ("line", "is_view"),
    [
        ("place, shape = saved", True),
        ("part, own = grad[at], grad_input[:, 0]", True),
        ("sides = slice(0, before), slice(before + size, None)", True),
        ("by_head = array.reshape(2, -1).swapaxes(0, 1)", True),
        ("momentum_buffer = vectors['momentum_buffer']", True),
        ("grad_z = 2 * saved", False),
        ("grad_input[...] = saved", False),
        ("self.grad.bias = saved", False),
        ("grad = -saved", False),
        ("mean = saved.mean(0)", False),
        ("return saved", False),
    ],
)
def test_a_line_that_gives_names_alone(line: str, is_view: bool) -> None:
    assert makes_views(ast.parse(f"def f():\n    {line}").body[0].body[0]) == is_view  # type: ignore[attr-defined]
