"""Standard output and standard error that are full, have no reader, or are closed by code that runs here."""

from __future__ import annotations

import io
import os
import sys
from pathlib import Path

import pytest
from runs import CONFIG, lines, write_config
from slow_cases import slow

from nn_manual.cli import main
from nn_manual.cli.terminal import own_streams
from nn_manual.errors import DataError

from .conftest import UNCHECKED, finish, start

COMMANDS = ["new", "train", "check", "check-function", "plot", "evaluate", "predict", "summary", "unroll", "list"]
COMMANDS += ["sample", "schema"]
#: What is said without a run: the help of each command, among others.
SAYING = [["--version"], ["--help"], *([name, "--help"] for name in COMMANDS), ["list", "losses"]]
FULL = "nn-manual: standard output: No space left on device\n"


@pytest.mark.parametrize("arguments", [*SAYING[:3], *map(slow, SAYING[3:-1]), SAYING[-1]], ids=" ".join)
class TestOutput:
    def test_that_is_full(self, arguments: list[str]) -> None:
        with open("/dev/full", "w") as full:
            status, _, err = finish(start(*arguments, stdout=full))
        assert (status, err) == (5, FULL)

    def test_whose_reader_has_gone(self, arguments: list[str]) -> None:
        reader, writer = os.pipe()
        os.close(reader)
        with os.fdopen(writer, "w") as nobody:
            status, _, err = finish(start(*arguments, stdout=nobody))
        assert (status, err) == (141, "")


@pytest.mark.parametrize(("arguments", "status"), [(["bogus"], 2), (["train"], 2), (["plot", "nowhere"], 5)])
def test_nobody_can_be_told_of_an_error(arguments: list[str], status: int) -> None:
    with open("/dev/full", "w") as full:
        assert finish(start(*arguments, stderr=full.fileno()))[:2] == (status, "")


#: What a module may do to the streams of the process that it runs in.
DEEDS = {
    "closed": "sys.stdout.close(); sys.stderr.close()",
    "first closed": "sys.__stdout__.close(); sys.__stderr__.close()",
    "closed below": "sys.stdout.buffer.close(); sys.stderr.buffer.close()",
    "taken apart": "sys.stdout.detach().close(); sys.stderr.detach().close()",
    "wrapped": "sys.stdout = io.TextIOWrapper(sys.stdout.buffer, encoding='utf-8')",
    "closed by number": "os.close(1); os.close(2)",
    "replaced": "sys.stdout = sys.stderr = io.StringIO()",
    "taken away": "sys.stdout = sys.stderr = None",
    "replaced by nonsense": "sys.stdout = sys.stderr = object()",
}
LAYER = """\
import io, os, sys
from dataclasses import dataclass
import numpy as np
from nn_manual import Layer
{}

@dataclass(eq=False)
class Mine(Layer):
    def forward(self, input):
        {}
        output = np.tanh(input)
        return output, output

    def backward(self, saved, grad_output):
        return grad_output * (1 - saved**2)
"""
OF_MINE = CONFIG.replace("  - Tanh\n", "  - mine:Mine\n")


def write_layer(folder: Path, *, module: str = "", forward: str = "") -> None:
    """Layer Mine of mine.py, and a config small.yaml with it. The module runs `module`, forward runs `forward`."""
    (folder / "mine.py").write_text(LAYER.format(module, forward or "pass"))
    write_config(folder, OF_MINE)


@pytest.mark.slow
@pytest.mark.usefixtures("small")
class TestStreamsOfALayer:
    """They alone have layers of the user's that write to, close or replace the standard streams."""

    @pytest.mark.parametrize("deed", DEEDS)
    def test_a_module_does_something_to_them(self, small: Path, deed: str) -> None:
        write_layer(small, module=DEEDS[deed])
        status, out, err = finish(start("summary", "small.yaml", UNCHECKED))
        assert (status, err) == (0, "")
        assert out.startswith("Spirals: examples of 2\n")
        assert out.endswith("gradient check: none\n")

    @pytest.mark.parametrize("deed", ["closed", "closed below", "replaced", "replaced by nonsense"])
    def test_a_forward_does_something_to_them(self, small: Path, deed: str) -> None:
        write_layer(small, forward=DEEDS[deed])
        status, out, err = finish(start("train", "small.yaml", UNCHECKED, "--run-dir", "run"))
        assert (status, err) == (0, "")
        said = out.splitlines()
        assert [line.split()[0] for line in said[:5]] == ["validation", "epoch", "1/3", "2/3", "3/3"]
        assert said[-1] == "run directory run"

    def test_no_file_of_a_run_takes_their_numbers(self, small: Path) -> None:
        """What is printed would stand in it."""
        write_layer(small, module=DEEDS["closed by number"])
        status, out, _ = finish(start("train", "small.yaml", UNCHECKED, "--run-dir", "run"))
        assert (status, out.splitlines()[-1]) == (0, "run directory run")
        assert [line["epoch"] for line in lines(small / "run" / "metrics.jsonl")] == [1, 2, 3]

    def test_what_a_layer_prints_stays(self, small: Path) -> None:
        write_layer(small, module="print('of the module'); sys.stdout.buffer.write(b'of its bytes\\n')")
        status, out, _ = finish(start("summary", "small.yaml", UNCHECKED))
        assert status == 0
        assert {"of the module", "of its bytes"} < set(out.splitlines())

    def test_a_refusal_is_said_nevertheless(self, small: Path) -> None:
        write_layer(small, module=f"{DEEDS['closed']}\nraise ValueError('why')")
        message = f"nn-manual: small.yaml:6:5: {small}/mine.py:6: ValueError: why\n"
        assert finish(start("check", "small.yaml")) == (2, "", message)


class TestOwnStreams:
    def test_they_are_put_back(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        with open(tmp_path / "out", "w") as stream:
            monkeypatch.setattr(sys, "stdout", stream)
            print("before")
            with own_streams():
                print("within")
                sys.stdout = None
            assert sys.stdout is stream
            print("after")
        assert (tmp_path / "out").read_text() == "before\nwithin\nafter\n"

    def test_one_without_a_descriptor_is_itself(self, monkeypatch: pytest.MonkeyPatch) -> None:
        stream = io.StringIO()
        monkeypatch.setattr(sys, "stdout", stream)
        with own_streams() as out:
            assert out is stream

    def test_characters_that_the_stream_lacks(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        with open(tmp_path / "out", "w", encoding="ascii") as stream:
            monkeypatch.setattr(sys, "stdout", stream)
            with own_streams():
                print("ä\udc80")
        assert (tmp_path / "out").read_text() == "\\xe4\\udc80\n"


def test_a_closed_stream_without_a_descriptor(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    closed = io.StringIO()
    closed.close()
    monkeypatch.setattr(sys, "stdout", closed)
    assert main(["list", "losses"]) == 5
    assert capsys.readouterr().err == "nn-manual: standard output was closed by what ran here\n"


def test_no_closed_stream_is_asked_whether_it_is_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    closed = io.StringIO()
    closed.close()
    monkeypatch.setattr(sys, "stderr", closed)
    assert main(["plot", "nowhere"]) == 5


LONG = f"{'a_folder/' * 4}of_a-long name/{'a_file_' * 12}.yaml"


@pytest.mark.parametrize("arguments", [["train"], ["plot"], ["exercise", "check"], ["exercise", "grade"]], ids=" ".join)
def test_an_error_fits_a_terminal(
    arguments: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """No word of it is broken: a path can be copied."""
    assert main([*arguments, LONG]) != 0
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"nn-manual: {LONG}: ")
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    assert main([*arguments, LONG]) != 0
    first, *others = capsys.readouterr().err.splitlines()
    assert len(others) > 1
    assert first.startswith("nn-manual: ")
    assert all(line.startswith("  ") for line in others)
    assert all(len(line) <= 80 or " " not in line.strip() for line in [first, *others])
    assert [word for line in [first, *others] for word in line.split()] == line.split()


def test_a_report_is_wrapped_line_by_line(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def command(_: object) -> int:
        error = DataError("a table", "", "  a  b", "word " * 20)
        error.add_note("in this note " * 8)
        raise error

    monkeypatch.setattr("nn_manual.cli.commands.schema", command)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    assert main(["schema"]) == 5
    assert capsys.readouterr().err.splitlines() == [
        "nn-manual: a table",
        "",
        "  a  b",
        " ".join(["word"] * 16),
        "  word word word word",
        " ".join(["in this note"] * 6) + " in",
        "  this note in this note",
    ]
