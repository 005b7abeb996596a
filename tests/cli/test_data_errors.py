"""A mistake in the data is said before anything heavy loads; data from standard input."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from pathlib import Path

import pytest
from runs import CONFIG

from nn_manual.cli import main

from .conftest import COMMAND, finish, start

CSV = "a,b,class\n" + "".join(f"{row},{-row},{row % 2}\n" for row in range(20))
ARRAYS = "data={Arrays: {file: %s, input: %s, target: class, task: classification}}"


@pytest.mark.slow
@pytest.mark.parametrize("command", ["train", "check"])
@pytest.mark.parametrize("file", ["file.csv", "file.csv.gz", "file.npz", "-"])
def test_neither_torch_nor_sklearn_is_loaded(small: Path, command: str, file: str) -> None:
    """It alone sees a heavy library loaded before an error of the data."""
    (small / file).write_text("a,b,class\n1,2,0x1\n")
    code = (
        "import sys\nfrom nn_manual.cli import main\nstatus = main(sys.argv[1:])\n"
        "print(status, [name for name in ('torch', 'sklearn', 'matplotlib') if name in sys.modules])"
    )
    override = ARRAYS % (file, "x" if file.endswith("npz") else "[a, b]")
    done = subprocess.run(
        [sys.executable, "-c", code, command, "small.yaml", override],
        input="a,b,class\n1,2,0x1\n",
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "5 []\n"
    assert done.stderr.startswith(f"nn-manual: {'standard input' if file == '-' else small / file}:")
    assert done.stderr.count("\n") == 1


def test_training_from_standard_input(
    small: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    config = small / "small.yaml"
    config.write_text(CONFIG)
    for number in range(2):  # the second time from what the first one wrote: the file is - there, too
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(CSV.encode())))
        overrides = [ARRAYS % ("a.csv", "[a, b]"), "data.Arrays.file=-", "epochs=1"] if number == 0 else []
        assert main(["train", str(config), *overrides, "--run-dir", f"run{number}"]) == 0
        config = small / f"run{number}" / "config.yaml"
        assert "file: '-'" in config.read_text()
    capsys.readouterr()


@pytest.mark.slow
def test_a_fifo_keeps_nobody_waiting(small: Path) -> None:
    """It alone reads from a pipe that nobody writes to."""
    for name in ("run.yaml", "file.csv", "file.npz"):
        os.mkfifo(small / name)
    (small / "endless.npz").symlink_to("/dev/zero")
    for arguments, status, message in (
        (["run.yaml"], 2, "run.yaml: is a FIFO, not a file"),
        (["small.yaml", ARRAYS % ("file.csv", "[a, b]")], 5, f"{small}/file.csv: is a FIFO, not a file"),
        (["small.yaml", ARRAYS % ("file.npz", "x")], 5, f"{small}/file.npz: is a FIFO, not a file"),
        (["small.yaml", ARRAYS % ("endless.npz", "x")], 5, f"{small}/endless.npz: is a character device, not a file"),
    ):
        assert finish(start("check", *arguments)) == (status, "", f"nn-manual: {message}\n")


@pytest.mark.slow
def test_a_config_from_standard_input(small: Path) -> None:
    """It alone reads a config from a pipe."""
    done = subprocess.run(
        [COMMAND, "summary", "/dev/stdin"], input=(small / "small.yaml").read_text(), capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("Spirals: examples of 2\n")
    with open("/dev/zero") as endless:
        done = subprocess.run([COMMAND, "summary", "/dev/stdin"], stdin=endless, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (2, "nn-manual: /dev/stdin: is a character device, not a file\n")
