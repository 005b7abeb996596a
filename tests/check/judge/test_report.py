"""What a report says, in 80 columns."""

from __future__ import annotations

import re

import numpy as np
import pytest
from html_pages import page_of
from nets import batch, break_gradient, net
from slow_cases import crossed

from nn_manual import (
    SGD,
    CrossEntropyLoss,
    GradientChecker,
    Linear,
    MSELoss,
    ReLU,
    Sequential,
    Trainer,
    check_gradients,
)
from nn_manual.check.compare.comparison import Comparison
from nn_manual.check.compare.worst import Differences
from nn_manual.check.judge.report import GradientReport
from nn_manual.check.judge.step_check import StepCheck
from nn_manual.messages.text import WIDTH
from nn_manual.run_directory.step_line import errors_of, record_of
from nn_manual.trainer.progress import GradientTally


def comparison(name: str = "0.grad_weight", absolute: float = 0.5, shape: tuple[int, ...] = (3, 4)) -> Comparison:
    return Comparison(name, "0 (Linear)", shape, absolute, 2.0, 1e-5, 2e6, (1, 2), 1.5, 2.0)


def test_a_failing_report_is_told_in_full() -> None:
    passing = comparison("0.output", 1e-6)
    report = GradientReport((passing, comparison(), comparison("0.grad_input")), diagnosis="the wrong sign\nno kinks")
    assert str(report).splitlines() == [
        "gradient check failed: wrong first in 0 (Linear): 0.grad_weight",
        "",
        "tensor         shape  absolute  relative  allowed     ULPs",
        "0.output         3x4   1.0e-06   5.0e-07  1.0e-05    2e+06",
        "0.grad_weight    3x4   5.0e-01   2.5e-01  1.0e-05    2e+06 WRONG",
        "0.grad_input     3x4   5.0e-01   2.5e-01  1.0e-05    2e+06 WRONG",
        "",
        "0.grad_weight[1, 2] is 1.5",
        "          torch has    2.0",
        "the wrong sign",
        "no kinks",
    ]
    assert report.failures == report.comparisons[1:]
    assert report.worst == report.comparisons[1]
    assert not report.passed
    assert not report.agrees


def test_rounding_is_no_failure() -> None:
    within = comparison("0.grad_bias", 1e-9)
    report = GradientReport((comparison(), within), rounding=frozenset({"0.grad_weight"}))
    assert str(report).startswith("2 tensors equal torch's; worst 5.0e-10 of the norm in 0.grad_bias\n")
    report = GradientReport((comparison(),), rounding=frozenset({"0.grad_weight"}))
    assert report.passed
    assert str(report).splitlines()[-1].endswith(" rounding")


def test_behind_the_first_wrong_tensor_none_is_called_rounding() -> None:
    tensors = tuple(map(comparison, ("loss", "0.grad_weight", "0.grad_input")))
    report = GradientReport(tensors, rounding=frozenset({"loss", "0.grad_input"}))
    assert [line.split()[-1] for line in str(report).splitlines()[3:6]] == ["rounding", "WRONG", "WRONG"]
    assert report.failures == tensors[1:2]


def test_nan_is_the_worst() -> None:
    wrong, nan = comparison(absolute=1e9), comparison("0.grad_input", float("nan"))
    report = GradientReport((wrong, nan))
    assert report.worst is nan
    assert report.failures == (wrong, nan)


def test_a_problem_is_all_there_is_to_tell() -> None:
    report = GradientReport((), problem="Sequential ran 0 (Linear) forward never instead of once")
    assert str(report) == "gradient check failed: Sequential ran 0 (Linear) forward never instead of once"
    assert not report.passed
    assert report.worst is None


@pytest.mark.parametrize(
    ("tensor", "factor"),
    crossed(
        ["4.grad_weight", "3.grad_input", "loss.grad_prediction", "0.grad_bias"], [2, -1, 1.001, 1e30, np.nan]
    ),
)
def test_80_columns(tensor: str, factor: float) -> None:
    model, loss = net(), MSELoss()
    place, name = tensor.split(".")
    part = loss if place == "loss" else model.layers[int(place)]
    break_gradient(part, name, lambda grad: grad + np.float32(factor) * grad.max())
    with np.errstate(all="ignore"):
        report = check_gradients(model, loss, *batch())
    assert report.failures[0].name == tensor
    assert max(map(len, str(report).splitlines())) <= WIDTH
    assert report.diagnosis


def test_80_columns_with_long_names_and_shapes() -> None:
    model = Sequential(*(ReLU() for _ in range(9)), Sequential(Sequential(Linear(1000, 1200))))
    input = np.random.default_rng(0).standard_normal((2, 3, 1000)).astype(np.float32)
    target = np.random.default_rng(1).standard_normal((2, 3, 1200)).astype(np.float32)
    report = check_gradients(model, MSELoss(), input, target)
    assert report.passed
    assert max(map(len, str(report).splitlines())) <= WIDTH


def test_a_long_name_has_a_line_of_its_own() -> None:
    long = "7.branches.0.0.grad_parametrizations.weight.original"
    report = GradientReport((comparison("0.output", 1e-6), comparison(long, 1e-6)))
    assert str(report).splitlines()[2:] == [
        "tensor    shape  absolute  relative  allowed     ULPs",
        "0.output    3x4   1.0e-06   5.0e-07  1.0e-05    2e+06",
        long,
        "            3x4   1.0e-06   5.0e-07  1.0e-05    2e+06",
    ]
    shape = (2, *[10_000_000] * 5)  # leaves no room for any name
    assert str(GradientReport((comparison("0.output", 1e-6, shape),))).splitlines()[-2] == "0.output"


@pytest.mark.parametrize("absolute", [1e-6, 0.5])
@pytest.mark.parametrize("length", [23, 24, 25, 29, 30, 31, 60])
def test_80_columns_with_names_of_any_length(length: int, absolute: float) -> None:
    report = GradientReport((comparison("0.output", 1e-6), comparison("7" * length, absolute, (16, 8, 13, 11))))
    assert max(map(len, str(report).splitlines())) <= WIDTH


def test_a_passing_report_counts_and_names_the_worst() -> None:
    report = check_gradients(net(), CrossEntropyLoss(), batch()[0], np.array([0, 3, 1, 1]))
    assert report.worst is not None
    assert str(report).startswith(
        f"18 tensors equal torch's; worst {report.worst.relative:.1e} of the norm in {report.worst.name}\n"
    )


def test_a_diagnosis_knows_the_batch_size() -> None:
    model = Sequential(Linear(3, 4))
    break_gradient(model.layers[0], "grad_weight", lambda grad: grad / 7)
    input, target = (np.random.default_rng(seed).standard_normal((7, 3 + seed)).astype(np.float32) for seed in (0, 1))
    report = check_gradients(model, MSELoss(), input, target)
    assert report.diagnosis == "1/7 of the reference: divided by the batch size"


def test_the_worst_is_one_and_the_same_everywhere() -> None:
    """Any difference from a tensor of torch's that is all zeros is infinitely worse than what is allowed."""
    checker = GradientChecker(net(), MSELoss())
    with checker.recording():
        checker.run(*batch())
    plan = checker.compare().plan
    errors, scale = np.full(len(plan.quantities), 1e-7), np.ones(len(plan.quantities))
    errors[[3, 5]], scale[[3, 4]] = (1e-12, 0.5), (0.0, 0.0)
    errors[4] = 0
    check = StepCheck(plan, Differences(errors, scale, frozenset({plan.quantities[3].name})))
    name = plan.quantities[3].name
    assert record_of(1, check)["worst"] == name
    tally = GradientTally()
    larger = StepCheck(plan, Differences(np.where(scale > 0, 0.5, 0), scale))
    for step, each in enumerate((larger, check, StepCheck(plan, Differences(errors, scale))), start=1):
        tally.add(step, each)
        if step == 2:  # what rounding has excused is no error
            assert (tally.worst["step"], tally.num_rounding) == (1, 1)
    assert (tally.worst["step"], tally.worst["worst"]) == (3, name)
    comparisons = [
        Comparison(quantity.name, "", (), float(error), float(largest), quantity.tolerance, 0, (), 0, 0)
        for quantity, error, largest in zip(plan.quantities, errors, scale, strict=True)
    ]
    worst = GradientReport(tuple(comparisons)).worst
    assert worst is not None
    assert (worst.name, worst.severity) == (name, np.inf)
    percent, ulps = errors_of(check)
    assert percent[3] == 1e99
    assert (percent[4], ulps[4]) == (0, 0)


def test_no_line_begins_with_what_somebody_elses_exception_says() -> None:
    """Where its text is wrapped, the next line is indented: in a terminal "nn-manual:" begins our own lines alone."""
    for length in range(1, WIDTH):
        report = GradientReport((), problem=f"0 (Mine): forward raised ValueError: {'x' * length} nn-manual: fine")
        first, *others = str(report).splitlines()
        assert first.startswith("gradient check failed: 0 (Mine)")
        assert all(line.startswith("  ") for line in others)
        assert " ".join(str(report).split()) == f"gradient check failed: {report.problem}"


def test_objects_say_in_short_what_they_are() -> None:
    model, loss = net(), MSELoss()
    report = check_gradients(model, loss, *batch())
    assert repr(report).startswith(f"<GradientReport: {len(report.comparisons)} tensors equal torch's; worst ")
    assert len(repr(report)) < 100
    trainer = Trainer(model, loss, SGD(model))
    step = trainer.train_step(*batch())
    assert re.fullmatch(r"Step\(number=1, loss=[\d.]+, num_examples=\d+, denominator=[\d.]+, check=<.*>\)", repr(step))
    assert step.check is not None
    assert repr(step.check) == f"<StepCheck: {len(step.check.tensors)} tensors equal torch's>"
    _, waiting = (trainer.steps.one(*batch(), together=True) for _ in range(2))
    assert repr(waiting.check).endswith(" tensors, not proven yet>")
    trainer.flush()


def test_a_notebook_shows_the_whole_report() -> None:
    within, excused = comparison("<b>0.output</b>", 1e-6), comparison("0.grad_bias", 0.25, ())
    report = GradientReport(
        (within, excused, comparison(), comparison("0.grad_input", shape=(3, 2))),
        rounding=frozenset({"0.grad_bias"}),
        diagnosis="the wrong sign\na <factor> of 2",
        sources=("1 (<i>Own</i>) is compared with differences",),
        vacuous=("0 (Linear): 0.grad_bias is zero everywhere",),
    )
    page = page_of(report)
    wrong = [
        ("0.grad_weight", "3x4", "5.0e-01", "2.5e-01", "1.0e-05", "2e+06", "WRONG"),
        ("0.grad_input", "3x2", "5.0e-01", "2.5e-01", "1.0e-05", "2e+06", "WRONG"),
    ]
    assert [row.cells for row in page.rows] == [
        ("tensor", "shape", "absolute", "relative", "allowed", "ULPs", ""),
        ("<b>0.output</b>", "3x4", "1.0e-06", "5.0e-07", "1.0e-05", "2e+06", ""),
        ("0.grad_bias", "scalar", "2.5e-01", "1.2e-01", "1.0e-05", "2e+06", "rounding"),
        *wrong,
    ]
    assert page.marked == wrong
    assert page.texts == [
        "✗ gradient check failed: wrong first in 0 (Linear): 0.grad_weight",
        "0.grad_weight[1, 2] is 1.5\n          torch has    2.0",
        "the wrong sign",
        "a <factor> of 2",
        "1 (<i>Own</i>) is compared with differences",
        "vacuous, a wrong formula would have agreed, too:",
        "0 (Linear): 0.grad_bias is zero everywhere",
    ]


def test_a_notebook_says_first_whether_it_passed() -> None:
    page = page_of(GradientReport((comparison(absolute=1e-6),)))
    assert page.texts == ["✓ 1 tensors equal torch's; worst 5.0e-07 of the norm in 0.grad_weight"]
    assert (len(page.rows), page.marked) == (2, [])
    page = page_of(GradientReport((), problem="Sequential ran 0 (Linear) never"))
    assert (page.texts, page.rows) == (["✗ gradient check failed: Sequential ran 0 (Linear) never"], [])


def test_a_notebook_shows_the_figures_of_a_checked_step() -> None:
    model = net()
    trainer = Trainer(model, MSELoss(), SGD(model, lr=0.1))
    check = trainer.train_step(*batch()).check
    assert check is not None
    page = page_of(check)
    assert page.texts == [f"✓ {len(check.tensors)} tensors equal torch's"]
    assert [row.cells[0] for row in page.rows] == ["tensor", *check.tensors]
    assert page.rows[0].cells == ("tensor", "absolute", "relative", "allowed", "ULPs", "")
    assert page.rows[1].cells[1:4] == tuple(
        f"{figure[0]:.1e}" for figure in (check.absolute, check.relative, check.tolerances)
    )
    excused = StepCheck(check.plan, Differences(check.absolute, check.scale, frozenset(check.tensors[:2])))
    assert [row.cells[-1] for row in page_of(excused).rows][:4] == ["", "rounding", "rounding", ""]
    waiting = page_of(StepCheck(check.plan))
    assert (waiting.texts, waiting.rows) == ([f"{len(check.tensors)} tensors, not proven yet"], [])
