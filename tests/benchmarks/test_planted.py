"""`benchmark.py tests`: faults are drawn from common lines, and found by the tests that run them."""

from __future__ import annotations

import ast
import subprocess
from pathlib import Path

import pytest
from benchmarks.planted.faults import NUM_FAULTS, drawn
from benchmarks.planted.running import State

ROOT = Path(__file__).parents[2]

PACKAGE = '''\
"""A package."""


def doubled(number):
    """Twice the number."""
    return number * 2


def signed(number):
    if number > 0:
        return "+" if number else "0"
    elif number < 0:
        return "-"
    return ""


def unused(flag):
    return not flag
'''
TESTS = """\
import pytest

from nn_manual.numbers import doubled, signed


def test_doubled():
    assert doubled(3) == 6


def test_broken():
    signed(1)
    assert False


def test_runs_it():
    signed(2)


@pytest.mark.slow
def test_signed():
    assert [signed(number) for number in (-1, 0, 1)] == ["-", "", "+"]
"""


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A repository of a small package, and its tests, of which one fails always."""
    tree = tmp_path / "tree"
    for name, text in {
        "nn_manual/__init__.py": "",
        "nn_manual/numbers.py": PACKAGE,
        "tests/test_numbers.py": TESTS,
        "pyproject.toml": '[tool.pytest.ini_options]\nmarkers = ["slow"]\n',
    }.items():
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_text(text)
    somebody = ["-c", "user.name=a", "-c", "user.email=a@b"]
    for arguments in (["init", "-q"], ["add", "-A"], [*somebody, "commit", "-qm", "a"]):
        subprocess.run(["git", *arguments], cwd=tree, check=True)
    return tree


def test_the_faults_of_a_file(tree: Path) -> None:
    """Not in a docstring, nor where no statement can stand before: at an elif."""
    changed = {fault.changed.strip() for fault in drawn(tree, None)}
    assert len(changed) == 4  # one of each line
    assert changed & {"return number / 2", "return number * 3", "return"}
    assert "if number >= 0:" in changed or "if number > 1:" in changed
    assert "return flag" in changed or "return" in changed
    assert not any("elif" in line for line in changed)


def test_both_states_have_the_same_faults(tree: Path, tmp_path: Path) -> None:
    other = tmp_path / "other" / "nn_manual"
    other.mkdir(parents=True)
    (other / "numbers.py").write_text(PACKAGE.replace("number * 2", "2 * number").replace("def", "\n\ndef", 1))
    names = [[fault.name for fault in drawn(one, two)] for one, two in ((tree, other.parent), (other.parent, tree))]
    assert names[0] == names[1]
    assert not any("number *" in name for name in names[0])


def test_the_faults_of_the_package_are_python() -> None:
    faults = drawn(ROOT, None)
    assert len(faults) == NUM_FAULTS
    for fault in faults:
        lines = (ROOT / fault.path).read_text(encoding="utf-8").splitlines()
        assert lines[fault.number - 1] == fault.line
        lines[fault.number - 1] = fault.changed
        changed = ast.dump(ast.parse("\n".join(lines)))
        lines[fault.number - 1] = fault.line
        assert changed != ast.dump(ast.parse("\n".join(lines)))


def test_a_fault_is_found_by_the_tests_that_run_its_line(tree: Path, tmp_path: Path) -> None:
    """By a quick one, by a slow one alone, or by none; a test that fails without the fault doesn't count."""
    faults = drawn(tree, None)
    state = State(tree, tmp_path, faults)
    state.find_tests()
    assert (tree / "nn_manual" / "numbers.py").read_text() == PACKAGE
    found = {faults[number].line.strip(): state.outcome(number) for number in range(len(faults))}
    of_test = "tests/test_numbers.py::test_"
    assert found["return number * 2"]["quick"] == f"{of_test}doubled"
    assert (found["if number > 0:"]["quick"], found["if number > 0:"]["all"]) == (None, f"{of_test}signed")
    assert (found["return not flag"]["num_tests"], found["return not flag"]["all"]) == (0, None)
    assert found["if number > 0:"]["num_tests"] == 3
    assert (tree / "nn_manual" / "numbers.py").read_text() == PACKAGE
