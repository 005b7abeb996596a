"""A line of gradients.jsonl: its numbers, and that only what is equal is written as 0."""

from __future__ import annotations

import json

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from nets import batch, net

from nn_manual import CrossEntropyLoss, GradientChecker, Linear, MSELoss, Sequential
from nn_manual.check.compare.worst import Differences
from nn_manual.check.judge.step_check import StepCheck
from nn_manual.check.step.plan import Plan
from nn_manual.check.step.recording import Recording
from nn_manual.run_directory.step_line import LARGEST, SMALLEST, errors_of, line_of, record_of


def plan_of(dtype: str = "float32") -> Plan:
    """Of four tensors."""
    model = Sequential(Linear(2, 2, bias=False), dtype=dtype)
    plan = Plan(model, Recording(model, CrossEntropyLoss()), input_grad=False)
    assert [quantity.name for quantity in plan.quantities] == [
        "0.output", "loss", "loss.grad_prediction", "0.grad_weight"
    ]  # fmt: skip
    return plan


def ledger(absolute: list[float], scale: list[float], dtype: str = "float32") -> list[list[float]]:
    check = StepCheck(plan_of(dtype), Differences(np.array(absolute), np.array(scale)))
    result = json.loads(line_of({"step": 1}, check.tensors, errors_of(check)))["errors"]
    assert list(result) == [quantity.name for quantity in check.plan.quantities]
    return list(result.values())


def test_percent_of_the_tolerance_and_ulps_at_the_magnitude() -> None:
    ulp = 2.0**-23  # of numbers from 1 to 2
    assert ledger([0, ulp, 1e-6, 1e-5], [0, 1.5, 2, 1]) == [
        [0, 0],
        [0.795, 1],  # 100 * 2^-23 / 1.5e-5
        [5, 4.19],  # 1e-6 / 2^-22
        [100, 83.9],
    ]
    # 100 * 2^-52 / 1e-12
    assert ledger([0, 0, 0, 2.0**-52], [1, 1, 1, 1], "float64")[-1] == [0.0222, 1]


def test_infinity_is_written_as_a_number() -> None:
    assert ledger([0, 1e-9, 0, 1e-9], [0, 0, 1, 1])[1] == [LARGEST, 7.14e35]  # ULPs of float32's least, 1.4e-45
    assert ledger([0, 1e-9, 0, 0], [0, 0, 1, 1], "float64")[1] == [LARGEST, LARGEST]


@settings(max_examples=200, deadline=None, derandomize=True)
@given(
    absolute=st.lists(st.floats(0, 1e300), min_size=4, max_size=4),
    scale=st.lists(st.floats(0, 1e300), min_size=4, max_size=4),
)
def test_only_equal_tensors_have_an_error_of_zero(absolute: list[float], scale: list[float]) -> None:
    for error, numbers in zip(absolute, ledger(absolute, scale, "float64"), strict=True):
        assert [number == 0 for number in numbers] == [error == 0] * 2
        assert all(number == 0 or SMALLEST <= number <= LARGEST for number in numbers)


def test_a_name_that_json_and_the_template_would_read_otherwise() -> None:
    class Odd(Linear):
        def parameter_shapes(self) -> dict[str, tuple[int, ...]]:
            return {'100% "weight"': (2, 2)}

    model = Sequential(Odd(2, 2))
    plan = Plan(model, Recording(model, CrossEntropyLoss()), input_grad=False)
    check = StepCheck(plan, Differences(np.zeros(4), np.ones(4)))
    line = line_of(record_of(1, check), check.tensors, errors_of(check))
    assert list(json.loads(line)["errors"])[-1] == '0.grad_100% "weight"'


def test_a_record_is_a_line_of_json() -> None:
    model = net()
    checker = GradientChecker(model, MSELoss())
    with checker.recording():
        checker.run(*batch())
    check = checker.compare()
    record = record_of(3, check)
    assert json.loads(json.dumps(record)) == record
    severity = check.absolute / (check.scale * check.plan.tolerances)
    worst = int(severity.argmax())
    assert (record["step"], record["tensors"]) == (3, 17)
    assert record["worst"] == check.plan.quantities[worst].name
    assert record["absolute"] == check.absolute[worst] > 0
    assert record["relative"] == check.absolute[worst] / check.scale[worst]
    assert record["tolerance"] == 1e-5
    assert record["ulps"] == check.absolute[worst] / np.spacing(np.float32(check.scale[worst]))
    assert "rounding" not in record


def test_errors_that_are_no_number_are_the_largest() -> None:
    check = StepCheck(plan_of(), Differences(np.array([1.0, 0, 0, 0]), np.array([1e39, 1, 1, 1])))  # beyond float32
    assert errors_of(check)[:, 0].tolist() == [100 * (1 / 1e39) / 1e-5, LARGEST]
