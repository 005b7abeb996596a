"""What a report says about a layer of the user's own, and where."""

from __future__ import annotations

import re
from pathlib import Path

from nn_manual.check.judge.report import GradientReport


def problem_and_place(report: GradientReport) -> tuple[str, Path | None, int]:
    """The report's problem without the (file:line) at its end, the file, and the line; (..., None, 0) without one."""
    assert report.problem is not None, str(report)
    found = re.fullmatch(r"(.*) \((.*):(\d+)\)", report.problem, re.DOTALL)
    return (found[1], Path(found[2]), int(found[3])) if found else (report.problem, None, 0)
