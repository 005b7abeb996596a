"""What code of the user's raises ends a command as an error of that code, whatever it is: KeyboardInterrupt too."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest
from kernel_files import SCALE
from runs import CONFIG, write_config

from nn_manual.cli import commands, main
from nn_manual.errors import Interrupted

from .conftest import UNCHECKED

MODULE = """\
import os, signal, sys
from dataclasses import dataclass
import numpy as np
from nn_manual import Layer

class Own(BaseException):
    pass

class Wordless(Exception):
    def __str__(self):
        raise Own

count = 0
def reach(place, first=1):
    global count
    if place == {place!r}:
        count += 1
        if count >= {first}:
            {deed}

reach("module")

@dataclass(eq=False)
class Mine(Layer):
    def __post_init__(self):
        reach("constructor")

    def reset_parameters(self, generator):
        reach("reset_parameters")

    def output_shape(self, input_shape):
        reach("output_shape")
        return input_shape

    def forward(self, input):
        reach("forward")
        output = np.tanh(input)
        return output, output

    def backward(self, saved, grad_output):
        reach("backward")
        return grad_output * (1 - saved**2)

    def reference(self, input):
        import torch
        reach("reference")
        return torch.tanh(input)
"""
#: The line of `deed`.
LINE = 19
OF_MINE = CONFIG.replace("  - Tanh\n", "  - mine:Mine\n")
RAISED = {
    "raise KeyboardInterrupt('why')": "KeyboardInterrupt: why",
    "raise GeneratorExit('why')": "GeneratorExit: why",
    "raise SystemExit(0)": "SystemExit: 0",
    "raise Own('why')": "Own: why",
    "raise StopIteration('why')": "StopIteration: why",
    "raise Wordless": "Wordless: whose text raised Own",
    "raise RuntimeError('\\x1b[2J\\u202e\\x9b\\u200b')": "RuntimeError: \\x1b[2J\\u202e\\x9b\\u200b",
}
TRAIN = ["train", "small.yaml", "--run-dir", "run"]


def write(folder: Path, place: str, deed: str, first: int = 1) -> None:
    (folder / "mine.py").write_text(MODULE.format(place=place, deed=deed, first=first))
    write_config(folder, OF_MINE)


@pytest.mark.slow
@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("deed", RAISED)
class TestLayer:
    """They alone have every way in which a layer of the user's raises or ends, in each command."""

    @pytest.mark.parametrize(
        ("place", "said"),
        [
            ("module", "{file}: {words}"),
            ("constructor", "mine:Mine raised {words} ({file})"),
            ("output_shape", "output_shape raised {words}"),
        ],
    )
    def test_while_the_config_is_read(
        self, small: Path, deed: str, place: str, said: str, capsys: pytest.CaptureFixture[str]
    ) -> None:
        write(small, place, deed)
        assert main(["check", "small.yaml"]) == 2
        said = said.format(file=f"{small}/mine.py:{LINE}", words=RAISED[deed])
        assert capsys.readouterr().err == f"nn-manual: small.yaml:6:5: {said}\n"

    @pytest.mark.parametrize("place", ["forward", "backward", "reference"])
    @pytest.mark.parametrize("command", [["check", "small.yaml"], TRAIN], ids=lambda command: command[0])
    def test_in_a_step_that_is_checked(
        self, small: Path, deed: str, place: str, command: list[str], capsys: pytest.CaptureFixture[str]
    ) -> None:
        write(small, place, deed)
        assert main(command) == 3
        out, err = capsys.readouterr()
        who = "its own reference" if place == "reference" else place
        report = " ".join((out or err.partition("\nstopped")[0].removeprefix("nn-manual: ")).split())
        place = f"({small}/mine.py:{LINE})"
        assert report == f"gradient check failed: 1 (Mine): {who} raised {RAISED[deed]} {place}"

    def test_in_a_step_that_is_not(self, small: Path, deed: str, capsys: pytest.CaptureFixture[str]) -> None:
        """What was trained before is there to go on from."""
        write(small, "backward", deed, first=6)  # of 3 steps an epoch
        assert main([*TRAIN, UNCHECKED, "checkpoint.every=3 steps"]) == 2
        assert capsys.readouterr().err.splitlines() == [
            f"nn-manual: {small}/mine.py:{LINE}: {RAISED[deed]}",
            "stopped in epoch 2 at step 5; the run so far lies in run",
            "to go on from step 3: nn-manual train --resume run",
        ]
        assert "Interrupted" not in json.loads((small / "run" / "summary.json").read_text())["stopped"]
        write(small, "nowhere", "pass")
        assert main(["train", "--resume", "run"]) == 0


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("deed", ["raise RuntimeError('why')", "raise KeyboardInterrupt('why')"])
def test_in_a_replay_where_nothing_is_compared(small: Path, deed: str, capsys: pytest.CaptureFixture[str]) -> None:
    write(small, "backward", deed)
    assert main(TRAIN) == 3
    capsys.readouterr()
    write(small, "reset_parameters", deed)
    assert main(["check", "--replay", "run/mismatch-step-1"]) == 2
    words = f"{deed[6:].partition('(')[0]}: why"
    assert capsys.readouterr().err == f"nn-manual: {small}/mine.py:{LINE}: {words}\n"


FUNCTIONS = SCALE + """

class Own(BaseException):
    pass


def definition(x, weight):
    return x * weight


def wrong(x, weight):
    {}
"""
NAMES = ["--shapes", "NxD,D", "--sizes", "N=4,D=6"]


@pytest.mark.slow
@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("deed", ["raise KeyboardInterrupt('why')", "raise GeneratorExit('why')", "raise Own('why')"])
class TestFunction:
    """They alone have every way in which a user's function raises or ends."""

    def test_function_and_reference(self, small: Path, deed: str, capsys: pytest.CaptureFixture[str]) -> None:
        text = FUNCTIONS.format(deed)
        (small / "own_functions.py").write_text(text)
        line = len(text.splitlines())
        words = f"{deed.split()[1].partition('(')[0]}: why at {small}/own_functions.py:{line}"
        check = ["check-function", *NAMES]
        assert main([*check, "own_functions:wrong", "--reference", "own_functions:definition"]) == 3
        assert f"wrong: forward raised RuntimeError: {words}" in " ".join(capsys.readouterr().out.split())
        assert main([*check, "own_functions:definition", "--reference", "own_functions:wrong"]) == 2
        err = capsys.readouterr().err
        assert err == f"nn-manual: the reference own_functions:wrong raised RuntimeError: {words}\n"


@pytest.mark.usefixtures("small")
class TestFromOutside:
    """What isn't raised by the code that it comes up in is nobody's fault."""

    @pytest.mark.parametrize("place", ["module", "constructor", "output_shape", "forward", "backward", "reference"])
    def test_ctrl_c(self, small: Path, place: str, capsys: pytest.CaptureFixture[str]) -> None:
        write(small, place, "os.kill(os.getpid(), signal.SIGINT)")
        assert main(["check", "small.yaml"]) == 130
        assert capsys.readouterr().err == "nn-manual: interrupted\n"

    def test_ctrl_c_that_somebodys_handler_takes(self, small: Path, capsys: pytest.CaptureFixture[str]) -> None:
        deed = "signal.signal(signal.SIGINT, signal.default_int_handler); os.kill(os.getpid(), signal.SIGINT)"
        write(small, "module", deed)
        assert main(["check", "small.yaml"]) == 130
        assert capsys.readouterr().err == "nn-manual: interrupted\n"

    def test_a_handler_of_the_users_own(self, small: Path, capsys: pytest.CaptureFixture[str]) -> None:
        handler = "signal.signal(signal.SIGINT, lambda *_: exec('raise TimeoutError(str())'))"
        write(small, "forward", f"{handler}; os.kill(os.getpid(), signal.SIGINT)")
        assert main(["check", "small.yaml"]) == 2
        assert capsys.readouterr().err == "nn-manual: <string>:1: TimeoutError\n"


@pytest.mark.parametrize(
    ("error", "status", "said"),
    [
        (GeneratorExit("why"), 2, "{file}:{line}: GeneratorExit: why"),
        (SystemExit(0), 2, "{file}:{line}: SystemExit: 0"),
        (Interrupted(signal.SIGTERM), 143, "terminated"),
    ],
)
def test_what_comes_up_elsewhere(
    error: BaseException,
    status: int,
    said: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def fail(_: object) -> int:
        raise error

    monkeypatch.setattr(commands, "plot", fail)
    assert main(["plot", "run"]) == status
    said = said.format(file=__file__, line=fail.__code__.co_firstlineno + 1)
    assert capsys.readouterr().err == f"nn-manual: {said}\n"
