"""docs/checking_your_own_code.md runs as it stands, and prints what it shows."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

PAGE = (Path(__file__).parents[2] / "docs" / "checking_your_own_code.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
REPORT = re.findall(r"```text\n(.*?)```", PAGE, re.DOTALL)[0]


def run(block: str) -> dict[str, Any]:
    names: dict[str, Any] = {"__name__": "page"}
    exec(compile(block, "checking_your_own_code.md", "exec"), names)
    return names


def without_rounding(report: str) -> str:
    """Without what differs on another machine: the errors of what agrees, a value's last digits, the time, CUDA."""
    report = re.sub(r"(?m)^(cost|cuda) .*\n( .*\n)*", "", report)
    report = re.sub(r"(?m)^(output +\S+) .*$", r"\1", report)
    return re.sub(r"\d+\.\d{9,}", lambda value: f"{float(value[0]):.9g}", report)


def test_the_example_fails_as_the_page_shows(capsys: pytest.CaptureFixture[str]) -> None:
    run(BLOCKS[0])
    assert without_rounding(capsys.readouterr().out) == without_rounding(REPORT)


def test_the_example_passes_with_the_term_that_it_lost(capsys: pytest.CaptureFixture[str]) -> None:
    right = BLOCKS[0].replace("grad = grad_output -", "grad = grad_output - grad_output.mean(-1, keepdim=True) -")
    assert right != BLOCKS[0]
    run(right)
    assert capsys.readouterr().out.startswith("3 tensors equal torch's")


def test_the_kernel_of_any_size_passes() -> None:
    rows = {row.name for row in run(BLOCKS[1])["report"].rows if row.verdict == "right"}
    assert rows >= {"sizes N=257", "full size bfloat16", "dtype float32"}


def test_the_pair_passes() -> None:
    assert len(run(BLOCKS[3])["report"].comparisons) == 5


def test_the_class_passes() -> None:
    assert len(run(BLOCKS[4])["report"].comparisons) == 7


def test_the_layer_of_a_pair_is_summed_up(capsys: pytest.CaptureFixture[str]) -> None:
    run(BLOCKS[5])
    assert "2,410" in capsys.readouterr().out  # 64 * 32 + 32 + 32 * 10 + 10 parameters


def test_a_torch_optimizer_moves_our_parameters() -> None:
    names = run(BLOCKS[6].replace("optimizer.step()", "before = ours.param_arena.copy(); optimizer.step()"))
    assert not np.array_equal(names["ours"].param_arena, names["before"])
