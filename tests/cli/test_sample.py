"""sample: the text, as it is made, and what ends it."""

from __future__ import annotations

import io
import math
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from text_runs import write_run

from nn_manual.cli import main
from nn_manual.use.sample import sample

from .conftest import HANGING, finish, start

#: More characters than a test waits for.
ENDLESS = ["--length", "1000000000"]


def test_prints_the_prompt_and_the_text(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sample", str(write_run(tmp_path)), "--prompt", "ab", "--length", "7"]) == 0
    assert capsys.readouterr() == ("ab\u00e9ab\u00e9ab\u00e9\n", "")


def test_each_character_is_there_before_the_next(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []

    class Watched(io.StringIO):
        def flush(self) -> None:
            seen.append(self.getvalue())

    monkeypatch.setattr(sys, "stdout", Watched())
    assert main(["sample", str(write_run(tmp_path)), "--prompt", "ab", "--length", "3"]) == 0
    assert seen[:4] == ["ab", "ab\u00e9", "ab\u00e9a", "ab\u00e9ab"]


def test_the_length_that_nobody_gave(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sample", str(write_run(tmp_path)), "--prompt", "ab"]) == 0
    assert len(capsys.readouterr().out) == 2 + 500 + 1


@pytest.mark.parametrize("option", [["--top-k", "1"], ["--temperature", "1e-3"]])
def test_the_likeliest_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str], option: list[str]) -> None:
    run = write_run(tmp_path, certainty=1.0)  # e / (e + 2) of the likeliest, 0.58
    assert main(["sample", str(run), "--prompt", "a", "--length", "30", *option]) == 0
    assert capsys.readouterr().out == "ab\u00e9" * 10 + "a\n"


def test_the_seed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = write_run(tmp_path, certainty=1.0)
    texts = ["".join(sample(run, "a", 30, seed=seed)) for seed in (0, 5)]
    assert texts[0] != texts[1]
    for text, seed in zip(texts, ([], ["--seed", "5"]), strict=True):
        assert main(["sample", str(run), "--prompt", "a", "--length", "30", *seed]) == 0
        assert capsys.readouterr().out == f"{text}\n"


@pytest.mark.parametrize(
    ("certainty", "arguments", "status", "out", "message"),
    [
        (1, ["--prompt", "x"], 2, "", "--prompt: 'x' at offset 0 is no character of the training text"),
        (1, ["--prompt", "a", "--top-k", "0"], 2, "", "--top-k must be at least 1, not 0"),
        (math.nan, ["--prompt", "a"], 4, "a\n", "the model's prediction is not finite"),
    ],
)
def test_what_is_wrong(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    certainty: float,
    arguments: list[str],
    status: int,
    out: str,
    message: str,
) -> None:
    assert main(["sample", str(write_run(tmp_path, certainty)), *arguments]) == status
    assert capsys.readouterr() == (out, f"nn-manual: {message}\n")


def test_no_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sample", str(tmp_path / "run"), "--prompt", "a"]) == 5
    assert capsys.readouterr() == ("", f"nn-manual: {tmp_path}/run: no such run\n")


@pytest.mark.slow
def test_by_a_reader_that_leaves(tmp_path: Path) -> None:
    """It alone samples for a reader that leaves."""
    process = start("sample", str(write_run(tmp_path)), "--prompt", "a", *ENDLESS)
    assert process.stdout is not None
    assert process.stderr is not None
    assert os.read(process.stdout.fileno(), 1) == b"a"  # it is there before the end
    process.stdout.close()
    assert process.wait(timeout=HANGING) == 141
    with process.stderr:
        assert process.stderr.read() == ""


def test_by_a_signal(tmp_path: Path) -> None:
    process = start("sample", str(write_run(tmp_path)), "--prompt", "a", *ENDLESS)
    assert process.stdout is not None
    os.read(process.stdout.fileno(), 1)
    process.send_signal(signal.SIGINT)
    status, out, err = finish(process)
    assert (status, err) == (130, "nn-manual: interrupted\n")
    assert out.endswith("\n")


@pytest.mark.slow
def test_a_terminal_that_lacks_a_character(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It alone samples on a terminal of ASCII."""
    monkeypatch.setenv("PYTHONIOENCODING", "ascii")
    process = start("sample", str(write_run(tmp_path)), "--prompt", "b", "--length", "3")
    assert finish(process) == (0, "b\\xe9ab\n", "")


def test_torch_is_not_imported(tmp_path: Path) -> None:
    program = "import sys, nn_manual.cli; nn_manual.cli.main(sys.argv[1:]); print('torch' in sys.modules)"
    arguments = ["sample", str(write_run(tmp_path)), "--prompt", "a", "--length", "2"]
    done = subprocess.run([sys.executable, "-c", program, *arguments], capture_output=True, text=True, check=True)
    assert done.stdout == "ab\u00e9\nFalse\n"
