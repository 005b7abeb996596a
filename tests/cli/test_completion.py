"""Completion in the shell: what argcomplete answers when a shell asks as its scripts make it ask."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from slow_cases import slow

from .conftest import COMMAND

#: What argcomplete puts between two completions.
SEPARATOR = "\013"


def asking(line: str) -> dict[str, str]:
    """The environment in which a shell asks what could follow a line, with the cursor at its end."""
    return os.environ | {"_ARGCOMPLETE": "1", "COMP_LINE": line, "COMP_POINT": str(len(line)), "COMP_TYPE": "9"}


def answers(line: str) -> list[str]:
    """What could follow, as the command writes it into the file that the environment names."""
    environment = asking(line) | {"_ARGCOMPLETE_STDOUT_FILENAME": "answers"}
    done = subprocess.run([COMMAND], env=environment, capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr.strip()) == ("", "")
    return [answer.strip() for answer in Path("answers").read_text().split(SEPARATOR)]


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("nn-manual p", ["plot", "predict"]),
        slow("nn-manual exercise s", ["start", "solution"]),
        ("nn-manual list ", ["layers", "losses", "optimizers", "schedules", "data", "initializers"]),
        slow("nn-manual list l", ["layers", "losses"]),
        ("nn-manual train --r", ["--resume", "--run-dir"]),
        ("nn-manual train sm", ["small.yaml"]),
        slow("nn-manual train --resume sm", ["small.yaml"]),
        ("nn-manual predict run --checkpoint ", ["best", "last"]),
        slow("nn-manual new some.csv --task c", ["classification"]),
        slow("nn-manual train small.yaml ep", ["epochs="]),
        ("nn-manual train small.yaml optimizer.", ["optimizer.SGD.lr=", "optimizer.SGD.momentum="]),
        slow("nn-manual check small.yaml epochs=3 clip", ["clip_grad_norm=", "clip_grad_value="]),
        ("nn-manual train nowhere.yaml ep", [""]),
    ],
)
def test_answers(line: str, expected: list[str]) -> None:
    assert answers(line) == expected


@pytest.mark.usefixtures("small")
def test_all_that_a_config_can_have_is_offered() -> None:
    found = answers("nn-manual summary small.yaml ")
    assert len(found) == len(set(found))
    assert {"seed=", "model.0.Linear.in_features=", "optimizer.SGD.lr=", "lr_scheduler="} <= set(found)
    assert all(answer.endswith("=") for answer in found)


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash to complete in")
@pytest.mark.usefixtures("small")
def test_in_bash() -> None:
    """As docs/using_a_model.md switches it on. The answer comes through descriptor 8."""
    script = """
        eval "$(register-python-argcomplete nn-manual)"
        COMP_LINE='nn-manual train small.yaml optimizer.SGD.l' COMP_TYPE=9
        COMP_POINT=${#COMP_LINE}
        complete -p nn-manual
        _python_argcomplete nn-manual
        printf '%s\\n' "${COMPREPLY[@]}"
    """
    folders = [str(COMMAND.parent), str(Path(sys.executable).parent), os.environ["PATH"]]
    environment = os.environ | {"PATH": os.pathsep.join(folders)}
    done = subprocess.run(["bash", "-c", script], env=environment, capture_output=True, text=True, check=True)
    registered, answer = done.stdout.splitlines()
    assert registered.endswith("-F _python_argcomplete nn-manual")
    assert answer == "optimizer.SGD.lr="


def test_bash_may_complete_every_marked_program() -> None:
    """argcomplete's completion of all programs looks for a mark in the module of a console script."""
    program = [sys.executable, "-W", "ignore", "-m", "argcomplete._check_console_script", str(COMMAND)]
    assert subprocess.run(program, check=False).returncode == 0
