"""Each value that is read back has a type and a range; the first that doesn't is named."""

from __future__ import annotations

import math
from typing import Any

import pytest
from pydantic import TypeAdapter

from nn_manual.errors import DataError
from nn_manual.run_directory import schema, values
from nn_manual.run_directory.values import validated

WAITING: dict[str, Any] = {
    "window": 25, "num_steps": 2, "first_step": 3, "last_step": 4, "record": {"step": 4, "ulps": None},
    "not_judged": [], "errors": {"loss": [12.5, 1]},
}  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "value", "read"),
    [
        (values.Count, 2**63 - 1, 2**63 - 1),
        (values.Real, 1, 1.0),
        (values.Real, math.inf, math.inf),
        (values.NotNaN, math.inf, math.inf),
        (values.Text, "\0", "\0"),
        (values.SHA256, 64 * "a", 64 * "a"),
        (values.FileName, "state.safetensors", "state.safetensors"),
        (schema.Best, {}, {}),
        (schema.StepRecord, {"step": 3, "of a later version": []}, {"step": 3}),
        (schema.WaitingSteps, WAITING, {**WAITING, "errors": {"loss": (12.5, 1.0)}}),
    ],
)
def test_what_is_taken(kind: Any, value: Any, read: Any) -> None:
    found = validated("file", value, TypeAdapter(kind))
    assert found == read
    assert type(found) is type(read)


@pytest.mark.parametrize(
    ("kind", "value", "problem"),
    [
        (values.Count, -1, "is -1, expected at least 0"),
        (values.Count, True, "is true, expected a 64-bit integer"),
        (values.Count, 1.0, "is 1.0, expected a 64-bit integer"),
        (values.Count, 2**63, "is 9223372036854775808, expected a 64-bit integer"),
        (values.Count, None, "is null, expected a 64-bit integer"),
        (values.Positive, 0, "is 0, expected at least 1"),
        (values.Threads, 10**9, "is 1000000000, expected at most 4096"),
        (values.Real, "1", 'is "1", expected a number'),
        (values.Real, True, "is true, expected a number"),
        (values.Real, 10**400, "is 1" + 29 * "0" + "..." + 30 * "0" + ", expected a number"),
        (values.Finite, math.inf, "is Infinity, expected a finite number"),
        (values.NotNegative, -0.5, "is -0.5, expected at least 0"),
        (values.NotNaN, math.nan, "is NaN"),
        (values.Bool, 1, "is 1, expected true or false"),
        (values.Text, 3, "is 3, expected a string"),
        (values.SHA256, 63 * "a", f'is "{63 * "a"}"'[:32]),
        (values.FileName, "../x.safetensors", 'is "../x.safetensors", expected a string of the form ^[a-z]+'),
        (values.FileName, "/etc/passwd", 'is "/etc/passwd", expected a string of the form ^[a-z]+'),
        (values.FileName, "x.safetensors\n", 'is "x.safetensors\\n", expected a string of the form ^[a-z]+'),
        (values.Size, math.nan, "is NaN, expected at least 0"),
        (schema.StepRecord, [], "is [], expected an object"),
        (schema.StepRecord, {"absolute": -1e-9}, '"key.absolute" is -1e-09, expected at least 0'),
        (schema.Zeros, {"shape": 3, "steps": 1, "multiples": []}, '"key.shape" is 3, expected a list'),
        (schema.Zeros, {"shape": [], "steps": 1, "multiples": [[1]]}, '"key.multiples.0.1" is missing'),
        (schema.Zeros, {"shape": [], "steps": 1, "multiples": [[1, 2, 3]]}, '"key.multiples.0" is [1, 2, 3], expected'),
        (
            schema.WaitingSteps,
            WAITING | {"errors": {"loss": [0, -1]}},
            '"key.errors.loss.1" is -1, expected at least 0',
        ),
    ],
)
def test_what_is_refused(kind: Any, value: Any, problem: str) -> None:
    with pytest.raises(DataError) as caught:
        validated("file", value, TypeAdapter(kind), "key")
    expected = problem if problem.startswith('"') else f'"key" {problem}'
    assert str(caught.value).startswith(f"file: {expected}")


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"tolerance": 0}, "has no relative error, or no tolerance above 0"),
        ({"tolerance": None}, "has no relative error, or no tolerance above 0"),
        ({"relative": None}, "has no relative error, or no tolerance above 0"),
        ({"worst": 3}, None),
    ],
)
def test_the_worst_error_of_a_run_can_be_said(changes: dict[str, Any], problem: str | None) -> None:
    tally = {"num_tensors": 3, "num_steps": 1, "num_rounding": 0, "worst_severity": 0.5}
    worst = {"step": 1, "worst": "loss", "relative": 1e-7, "tolerance": 1e-5}
    kind = TypeAdapter(schema.Tally)
    for right in (worst, {}, worst | {"relative": math.inf}):
        assert validated("file", tally | {"worst": right}, kind)["worst"] == right
    with pytest.raises(DataError, match='^file: "worst' + (f'" {problem}$' if problem else r'\.worst" is 3, expected')):
        validated("file", tally | {"worst": worst | changes}, kind)
    for key in worst:
        with pytest.raises(DataError, match=f'^file: "worst" lacks {key}$'):
            validated("file", tally | {"worst": {name: worst[name] for name in worst if name != key}}, kind)


@pytest.mark.parametrize("changes", [{"num_steps": 0}, {"worst": {}}, {"worst_severity": -1}, {"worst_severity": -0.5}])
def test_a_tally_is_of_some_steps_or_of_none(changes: dict[str, Any]) -> None:
    worst = {"step": 1, "worst": "loss", "relative": 0.0, "tolerance": 1e-5}
    some = {"num_tensors": 3, "num_steps": 1, "num_rounding": 0, "worst_severity": 0.0, "worst": worst}
    none = some | {"num_steps": 0, "worst_severity": -1.0, "worst": {}}
    kind = TypeAdapter(schema.Manifest.__annotations__["tally"])
    for right in (some, none):
        assert validated("file", right, kind) == right
    with pytest.raises(DataError, match=r"^file: has some of num_steps, worst and worst_severity, and not all$"):
        validated("file", some | changes, kind)


def test_a_value_without_a_key() -> None:
    with pytest.raises(DataError, match=r"^file: is null, expected an object$"):
        validated("file", None, TypeAdapter(schema.Summary))
