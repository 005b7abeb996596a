"""scripts/benchmark.py functions torch: the verdict on an operation, and a few operations."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest
import torch
from benchmarks.functions import torch_operations
from benchmarks.functions.torch_operations import AS_KNOWN, BLAMED, GONE, RIGHT, SAYS_ITSELF
from benchmarks.functions.torch_samples import Sample
from torch.utils import _pytree as pytree

from nn_manual.functions.function_report import BatteryRow, FunctionReport


def report(*wrong: str, problem: str | None = None, vacuous: tuple[str, ...] = ()) -> FunctionReport:
    """A report in which these rows are wrong."""
    return FunctionReport((), problem, rows=tuple(BatteryRow(row, "", "WRONG") for row in wrong), vacuous=vacuous)


@pytest.mark.parametrize(
    ("name", "says_itself", "found", "verdict"),
    [
        ("relu", False, report(), RIGHT),
        ("relu", False, report("kinds tied"), BLAMED),
        ("relu", False, report(problem="output is int64, the reference's float32"), BLAMED),
        ("relu", False, report(vacuous=("relu: output is zero everywhere",)), BLAMED),
        ("relu", True, report("kinds tied"), SAYS_ITSELF),
        ("clamp", False, report("kinds tied", "kinds spread"), AS_KNOWN),
        ("clamp", False, report("kinds tied", "kinds zero"), BLAMED),
        ("clamp", False, report(), GONE),
        ("clamp", True, report("kinds tied"), GONE),
    ],
)
def test_the_verdict_on_an_operation(name: str, says_itself: bool, found: FunctionReport, verdict: str) -> None:
    one = cast(Sample, SimpleNamespace(says_itself=says_itself))
    assert torch_operations.verdict_of(name, [(one, report()), (one, found)]) == verdict


def sample(composition: Callable[..., Any], *leaves: Any) -> Sample:
    """A sample of exp, on these leaves."""
    names = [f"x{number}" for number in range(len(leaves))]
    structure = pytree.tree_structure((leaves[0], leaves[1:], {}))
    return Sample(lambda x, *_: x.exp(), composition, "exp", False, names, leaves, structure)


@pytest.mark.parametrize(
    ("composition", "reason"),
    [
        (lambda x: torch.e**x, ""),
        (torch.ops.prims.exp, "a primitive of the composition has no derivative"),
        (lambda x: x.exp().detach(), "a primitive of the composition loses a gradient"),
        (lambda x: x.log1p()[:0], "an output or a gradient is empty, or zero everywhere"),
        (lambda x: 0 * x, "an output or a gradient is empty, or zero everywhere"),
        (lambda x: torch.complex(x, x), "an output is complex"),
        (lambda x: x / 0, "an output or a gradient of the composition isn't finite"),
        (lambda x: x.exp() + 0 * torch.rand_like(x), "it draws random numbers"),
        (lambda x: x.reshape(7), "RuntimeError: shape '[7]' is invalid for input of size 3"),
    ],
)
def test_a_sample_that_proves_nothing_says_why(composition: Callable[..., Any], reason: str) -> None:
    assert sample(composition, torch.tensor([0.5, -1.0, 2.0], requires_grad=True)).why_not() == reason


def test_what_requires_no_gradient_is_a_constant_in_the_dtype_of_the_inputs() -> None:
    def composition(x: torch.Tensor, weight: torch.Tensor, index: torch.Tensor, factor: float) -> torch.Tensor:
        return torch.dot(x.exp(), weight[index]) * factor

    x, weight, index = torch.tensor([0.5, 1.0], requires_grad=True), torch.tensor([2.0, 3.0]), torch.tensor([1, 0])
    given = sample(composition, x, weight, index, 0.5)
    assert list(given.inputs) == ["x0", "x2"]
    in_double = {**given.inputs, "x0": torch.zeros(2, dtype=torch.float64)}
    output = given.of_inputs(composition)(**in_double)
    assert (output.dtype, output.item()) == (torch.float64, 2.5)


def test_without_expecttest_one_line_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    assert torch_operations.main() == 2
    assert capsys.readouterr().err == (
        "torch's tests import expecttest, which isn't there: pip install 'nn_manual[dev]'\n"
    )


#: torch's tests change settings of the process in which they are imported.
A_FEW = """
from benchmarks.functions.torch_operations import main, verdict_of
from benchmarks.functions.torch_samples import operations

for operation in operations():
    if operation.name in ("abs", "all", "as_strided_copy", "clamp_min", "index_fill", "normal"):
        reports = [(sample, sample.report()) for sample in operation.samples()]
        print(f"{operation.name}: {operation.why_left_out() or verdict_of(operation.name, reports)}")
raise SystemExit(main(range(1, 2)))
"""


def test_a_few_operations_are_judged_as_they_were_worked_out() -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    ran = subprocess.run([sys.executable, "-c", A_FEW], env=environment, capture_output=True, text=True, check=False)
    lines = ran.stdout.splitlines()
    assert lines[:6] == [
        "abs: a primitive of the composition has no derivative",
        "all: OpInfo says that it isn't differentiable",
        f"as_strided_copy: {SAYS_ITSELF}",
        f"clamp_min: {RIGHT}",
        f"index_fill: {AS_KNOWN}",
        "normal: it draws random numbers",
    ], ran.stderr
    assert "1 addcdiv: 6 samples, right" in lines
    assert [line.split() for line in lines if line.startswith((RIGHT, BLAMED))] == [["right", "1"], ["BLAMED", "0"]]
    assert ran.returncode == 0
