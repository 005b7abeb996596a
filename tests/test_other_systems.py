"""macOS and Windows, as far as Linux can take their place.

Names that they lack are missing, and what Windows refuses is refused (tests/support/other_systems.py). Whole commands
run so, each in a process of its own.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from runs import lines, names, write_config
from safetensors.numpy import load_file

from nn_manual.config import load_config
from nn_manual.run.new_run import run

pytestmark = [
    pytest.mark.slow,  # it alone runs whole commands on another system
    pytest.mark.skipif(sys.platform != "linux", reason="what a process has open is read from /proc"),
]

BEGINNING = "import json, sys; from other_systems import become; become(sys.argv[1]); from nn_manual.cli import main; "
#: Arguments: the system, and a list of commands as JSON.
COMMANDS = BEGINNING + "statuses = [main(each) for each in json.loads(sys.argv[2])]; sys.exit(max(statuses))"
#: The same for one command, whose checkpoint takes as long as nobody waits.
SLOW = (
    "import time\n"
    "from nn_manual.run_directory import checkpoints\n"
    "def slow(*_):\n    print('writing', flush=True)\n    time.sleep(3600)\n"
    "checkpoints._write_files = slow\n"
)
#: Python's default encoding is ASCII here: what is read and written without an encoding of its own fails.
ASCII = {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}


def start(platform: str, *commands: list[str], program: str = COMMANDS) -> subprocess.Popen[str]:
    """Commands on another system, one after the other in a process."""
    return subprocess.Popen(
        [sys.executable, "-c", program, platform, json.dumps(commands)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        env=os.environ | ASCII | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
    )


def done(platform: str, *commands: list[str]) -> tuple[int, str, str]:
    """The exit status, standard output and standard error of commands on another system."""
    process = start(platform, *commands)
    out, err = process.communicate()
    return process.returncode, out, err


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with small.yaml in it."""
    monkeypatch.chdir(tmp_path)
    return write_config(tmp_path)


@pytest.mark.usefixtures("with_figure")
@pytest.mark.parametrize(("platform", "compiled"), [("win32", "compiled=true"), ("darwin", "compiled=false")])
def test_a_run_that_ctrl_c_stops_goes_on_to_the_same_end(small: Path, platform: str, compiled: str) -> None:
    process = start(platform, ["train", "small.yaml", "epochs=1000000", compiled, "--run-dir", "its run"])
    assert process.stdout is not None
    while "1/1000000" not in process.stdout.readline():
        assert process.poll() is None
    process.send_signal(signal.SIGINT)
    _, err = process.communicate()
    assert process.returncode == 130
    said, where, how = err.splitlines()[-3:]
    assert said == "nn-manual: interrupted"
    stopped = re.fullmatch(r"stopped in epoch (\d+) at step (\d+); the run so far lies in its run", where)
    assert stopped
    epoch, step = map(int, stopped.groups())
    word = {"win32": '"its run"', "darwin": "'its run'"}[platform]
    assert how == f"to go on from step {step}: nn-manual train --resume {word}"
    more = f"epochs={epoch + 2}"
    status, out, err = done(platform, ["train", "--resume", "its run", more])
    assert (status, err) == (0, "")
    assert out.startswith(f"going on from step {step} of {3 * (epoch + 2)}\n")
    run(load_config(small, [more, compiled]), Path("plain"))
    # The lock's file stays where the system has no locks for directories: Windows itself removes it.
    assert set(names(Path("its run"))) - {".lock"} == set(names(Path("plain")))
    of_run, of_plain = (load_file(Path(name) / "model.safetensors") for name in ("its run", "plain"))
    assert {name: array.tobytes() for name, array in of_run.items()} == {
        name: array.tobytes() for name, array in of_plain.items()
    }
    of_run_lines, of_plain_lines = (
        [line | {"seconds": 0} for line in lines(Path(name) / "metrics.jsonl")] for name in ("its run", "plain")
    )
    assert of_run_lines == of_plain_lines


@pytest.mark.parametrize(("platform", "status"), [("win32", 130), ("darwin", -signal.SIGINT)])
@pytest.mark.usefixtures("small")
def test_a_second_ctrl_c_ends_it_at_once(platform: str, status: int) -> None:
    command = ["train", "small.yaml", "epochs=1000000", "--run-dir", "run"]
    process = start(platform, command, program=BEGINNING + SLOW + "main(json.loads(sys.argv[2])[0])")
    assert process.stdout is not None
    while "1/1000000" not in process.stdout.readline():
        assert process.poll() is None
    process.send_signal(signal.SIGINT)
    while process.stdout.readline() != "writing\n":
        assert process.poll() is None
    process.send_signal(signal.SIGINT)
    _, err = process.communicate()
    assert (process.returncode, err) == (status, "")


@pytest.mark.usefixtures("small")
def test_two_processes_dont_train_one_run() -> None:
    process = start("win32", ["train", "small.yaml", "epochs=1000000", "--run-dir", "run"])
    assert process.stdout is not None
    while "1/1000000" not in process.stdout.readline():
        assert process.poll() is None
    assert done("win32", ["train", "--resume", "run"]) == (
        5, "", "nn-manual: run: another process is training this run\n"
    )  # fmt: skip
    process.send_signal(signal.SIGINT)
    process.communicate()
    assert process.returncode == 130


@pytest.mark.parametrize("platform", ["win32", "darwin"])
@pytest.mark.usefixtures("small")
def test_every_command_reads_and_writes_its_files(platform: str, tmp_path: Path) -> None:
    rows = [f"{0.1 * i + (i % 2)},{i % 3},{('früh', 'spät')[i % 2]}" for i in range(40)]
    (tmp_path / "apples.csv").write_text("\n".join(["länge,breite,zeit", *rows]), encoding="utf-8")
    (tmp_path / "my_functions.py").write_text(
        "import torch\n\n\nclass Double(torch.autograd.Function):\n"
        "    forward = staticmethod(lambda ctx, x: 2 * x)\n    backward = staticmethod(lambda ctx, g: 2 * g)\n\n\n"
        "def double(x):\n    return 2 * x\n",
        encoding="utf-8",
    )
    status, out, err = done(
        platform,
        ["new", "apples.csv", "--target", "zeit", "-o", "apples.yaml"],
        ["train", "apples.yaml", "epochs=2", "--run-dir", "run"],
        ["evaluate", "run"],
        ["predict", "run", "--input", "apples.csv", "--output", "predicted.csv"],
        ["plot", "run", "-o", "curves.svg"],
        ["unroll", "small.yaml", "-o", "small_step.py"],
        ["summary", "small.yaml", "--measure"],
        ["check", "small.yaml"],
        ["check-function", "my_functions:Double.apply", "--reference", "my_functions:double", "--shapes", "N",
         "--sizes", "N=4", "--only", "sizes"],
    )  # fmt: skip
    assert (status, err) == (0, "")
    assert re.search(r"\n\d+ rows right, \d+ skipped\n", out)
    predicted = (tmp_path / "predicted.csv").read_text(encoding="utf-8").splitlines()
    assert "früh" in predicted[0]
    assert len(predicted) == 41
    assert json.loads((tmp_path / "run" / "data.json").read_text(encoding="utf-8"))["names"]["classes"] == [
        "früh", "spät"
    ]  # fmt: skip
    assert not list(tmp_path.rglob("*.tmp"))


