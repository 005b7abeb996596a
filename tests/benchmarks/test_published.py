"""scripts/benchmark.py functions published: which functions there are, and a sample of those that were mended."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from benchmarks.functions import by_others
from benchmarks.functions.by_others import PACKAGES, cases, report_of
from benchmarks.functions.published import mended_kernels, mended_layers, mended_losses
from benchmarks.functions.subject import Published
from benchmarks.functions.tally import is_named

import nn_manual

PROJECT = Path(nn_manual.__file__).parents[1]
MENDED = [case for module in (mended_kernels, mended_losses, mended_layers) for case in module.CASES]
BOTH = [case for mended in MENDED for case in (mended.wrong, mended.right)]


def test_20_mistakes_were_mended() -> None:
    assert len({case.issue for case in MENDED}) == len(MENDED) == 20
    assert all(case.fault and case.named for case in MENDED)
    assert cases("mended") == [
        *(case.right for case in mended_kernels.CASES), *(case.wrong for case in mended_kernels.CASES),
        *(case.right for case in mended_losses.CASES), *(case.wrong for case in mended_losses.CASES),
        *(case.right for case in mended_layers.CASES), *(case.wrong for case in mended_layers.CASES),
    ]  # fmt: skip


def test_every_package_has_its_version_in_the_extra() -> None:
    extra = re.search(r"^published = \[\n(.*?)^\]", (PROJECT / "pyproject.toml").read_text("utf-8"), re.M | re.S)
    assert extra is not None
    pinned = set(re.findall(r'"([a-z-]+)==[0-9.]+', extra[1]))
    assert pinned == (PACKAGES.keys() - {"torch", "mended"}) | {"triton", "linear-operator"}


# Those that show within a second. entmax#13 and Hardshrink show in one row each.
QUICK = ("optax#1020", "pytorch#2421", "pytorch#31938", "attorch's Hardshrink", "cTensor#24", "flash-attention#355")


@pytest.mark.slow
@pytest.mark.parametrize("case", [c for c in BOTH if c.name.endswith(QUICK)], ids=lambda case: case.name)
def test_a_mended_function_is_judged_as_it_was_worked_out(case: Published) -> None:
    """They alone run the campaign's functions."""
    report = report_of(case)
    assert report.passed == (not case.fault), report
    assert is_named(case, report) == bool(case.fault)


def with_packages(found: dict[str, Callable[[], list[Published]]]) -> Callable[[str], list[Published]]:
    return lambda package: found[package]()


def test_it_says_what_is_left_out_and_what_is_judged_otherwise(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def missing() -> list[Published]:
        raise ModuleNotFoundError("No module named 'timm'")

    right, wrong = (
        next(case for case in BOTH if case.name == f"{when} attorch's Hardshrink") for when in ("after", "before")
    )
    few: dict[str, Any] = {"sizes": {"N": (2,), "D": (3,)}, "options": {"kinds": []}}
    shown = [Published(**{**vars(case), **few}) for case in (right, wrong)]  # without the row that shows it
    monkeypatch.setattr(by_others, "cases", with_packages({"timm": missing, "mended": lambda: shown}))
    assert by_others.main(["mended", "timm"]) == 1
    out = capsys.readouterr().out
    assert out.startswith("mended: 2 functions\nmended: before attorch's Hardshrink: the threshold itself is kept; ")
    *_, slowest, left_out = out.splitlines()
    assert out.splitlines()[-5:-2] == [
        "right ones passed    1 of 1",
        "wrong ones caught    0 of 1",
        "and named            0 of 1",
    ]
    assert slowest.startswith("the slowest of each package, in seconds of a processor: mended: ")
    assert left_out == "left out: timm: No module named 'timm'"


def test_a_package_that_it_doesnt_know(capsys: pytest.CaptureFixture[str]) -> None:
    assert by_others.main(["mended", "tim"]) == 2
    assert capsys.readouterr().err == f"there is no package tim; there are {', '.join(PACKAGES)}\n"
