"""`benchmark.py against COMMIT`: each process measures its own tree, and the interval holds the median."""

from __future__ import annotations

import ast
import inspect
import math
import subprocess
from pathlib import Path

import numpy as np
import pytest
from benchmarks import against, nets, one_round
from benchmarks.against import Ratio, Round, Times, ratio_of, table
from benchmarks.nets import NETS
from benchmarks.processes import ROOT, run_module


def test_a_process_runs_the_tree_that_it_is_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "nn_manual").mkdir()
    (tmp_path / "nn_manual" / "__init__.py").touch()
    (tmp_path / "nn_manual" / "__main__.py").write_text(
        "import os; print(__file__, [name for name in os.environ if name.startswith('OPENBLAS_')])"
    )
    monkeypatch.chdir(ROOT)  # where another nn_manual lies
    monkeypatch.setenv("OPENBLAS_CORETYPE", "Haswell")
    process = run_module("nn_manual", tmp_path, stdout=subprocess.PIPE)
    assert process.stdout == f"{tmp_path / 'nn_manual' / '__main__.py'} []\n"


def test_what_runs_in_other_commits_uses_only_public_names() -> None:
    trees = [ast.parse(inspect.getsource(module)) for module in (nets, one_round)]
    modules = {node.module for tree in trees for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert {name for name in modules if name and name.startswith("nn_manual")} == {"nn_manual", "nn_manual.data"}


def test_a_step_is_timed_plain_checked_and_compiled() -> None:
    plain, checked = (one_round.time_of(NETS[0], checked=checked) for checked in (False, True))
    assert 0.1 < one_round.compiled_time_of(NETS[0]) < plain < checked


def test_the_interval_of_a_median() -> None:
    pairs = [(float(ratio), 1.0) for ratio in np.random.default_rng(0).permutation(np.arange(1, 101))]
    assert ratio_of(pairs) == Ratio(50.5, 40, 61)
    assert ratio_of(pairs[:6])[1:] == (min(pairs[:6])[0], max(pairs[:6])[0])
    assert sum(math.comb(100, below) for below in range(40, 61)) / 2**100 == pytest.approx(0.965, abs=1e-3)
    with pytest.raises(ValueError, match=r"^5 values have no 95% interval of their median, 6 have$"):
        ratio_of(pairs[:5])


def test_the_interval_holds_the_median_19_times_in_20() -> None:
    generator = np.random.default_rng(0)
    intervals = [ratio_of([(value, 1.0) for value in generator.standard_exponential(25)]) for _ in range(2_000)]
    held = np.mean([interval.low <= math.log(2) <= interval.high for interval in intervals])
    assert 0.95 <= held <= 0.97


def times(plain: float, checked: float, compiled: float = 1) -> Times:
    return {"plain": {"2-2 (1)": plain}, "checked": {"2-2 (1)": checked}, "compiled": {"2-2 (1)": compiled}}


def test_a_figure_is_missed_where_the_whole_interval_lies_above() -> None:
    new = [times(104 + step, 111 + step, 2 + step) for step in range(6)]
    rounds = [Round(fresh, times(100, 100), times(100, 99)) for fresh in new]
    assert table("abc", rounds)[1:4] == [
        "2-2 (1)                  plain    1.065 [1.040, 1.090]     1.000 [1.000, 1.000]     <= 1.03  missed",
        "2-2 (1)                  checked  1.135 [1.110, 1.160]     0.990 [0.990, 0.990]     <= 1.12",
        "2-2 (1)                  compiled 4.500 [2.000, 7.000]     1.000 [1.000, 1.000]     <= 1.03  missed",
    ]


def repository(folder: Path) -> str:
    """A repository with one file in one commit; its hash."""
    (folder / "file").write_text("first")
    git = ["git", "-C", str(folder), "-c", "user.name=test", "-c", "user.email=test@localhost"]
    for command in (["init"], ["add", "file"], ["commit", "-m", "first"]):
        subprocess.run([*git, *command], check=True, capture_output=True)
    return subprocess.check_output([*git, "rev-parse", "HEAD"], text=True).strip()


def test_the_other_commit_is_measured_in_a_folder_that_is_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    commit = repository(tmp_path)
    (tmp_path / "file").write_text("second")
    monkeypatch.setattr(against, "ROOT", tmp_path)
    measured = []

    def time_of_tree(tree: Path) -> Times:
        measured.append((tree, (tree / "file").read_text()))
        return times(100, 100)

    monkeypatch.setattr(against, "_times", time_of_tree)
    assert against.main(commit, 6) == 0
    assert "1.000 [1.000, 1.000]" in capsys.readouterr().out
    assert [text for _, text in measured].count("second") == 6
    assert [text for _, text in measured].count("first") == 12
    assert len({tuple(text for _, text in measured[start : start + 3]) for start in range(0, 18, 3)}) == 3
    assert all(not tree.exists() for tree, text in measured if text == "first")
    worktrees = subprocess.check_output(["git", "-C", str(tmp_path), "worktree", "list"], text=True)
    assert len(worktrees.splitlines()) == 1


def test_what_cannot_be_measured_is_one_message(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    repository(tmp_path)
    monkeypatch.setattr(against, "ROOT", tmp_path)
    assert against.main("nonsense", 6) == 2
    assert capsys.readouterr().err.endswith("fatal: invalid reference: nonsense\n")
    assert against.main("HEAD", 5) == 2
    assert capsys.readouterr().err == "error: --rounds must be at least 6, not 5\n"


def test_a_commit_that_cannot_be_measured_is_named(tmp_path: Path) -> None:
    (tmp_path / "nn_manual").mkdir()
    (tmp_path / "nn_manual" / "__init__.py").write_text("raise SystemExit(3)")
    with pytest.raises(against.MeasuringError, match=rf"^the process that measures {tmp_path} ended with status 3$"):
        against.measure(tmp_path, tmp_path, 1)
