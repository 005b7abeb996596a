"""A run that is stopped from outside: the files are whole, and it is said how to go on."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from runs import GROWING, lines, names
from slow_cases import slow

from nn_manual import cli
from nn_manual.errors import FirstSignal, Interrupted
from nn_manual.run_directory.checkpoints import checkpoints_of, read_checkpoint
from nn_manual.run_directory.metrics import read_run

from .conftest import COMMAND, ENDLESS, HANGING, UNCHECKED, finish, start, take_signals


@pytest.mark.slow
class TestSignals:
    """The first signal finishes the step and writes a checkpoint, the second one ends the process."""

    @pytest.mark.parametrize(
        ("number", "status", "word", "every"),
        [
            (signal.SIGINT, 130, "interrupted", 1),
            (signal.SIGTERM, 143, "terminated", 0),
            (signal.SIGHUP, 129, "hung up", 0),
        ],
    )
    @pytest.mark.parametrize("compiled", ["false", "true"])
    def test_the_first(
        self, small: Path, number: signal.Signals, status: int, word: str, every: int, compiled: str
    ) -> None:
        # An epoch's end writes no checkpoint, however long it takes to get there: the one that is left is the signal's.
        settings = [ENDLESS, "checkpoint.every=1000000 epochs", f"gradient_check.every={every}", f"compiled={compiled}"]
        process = start("train", "small.yaml", *settings, "--run-dir", "run")
        assert process.stdout is not None
        process.stdout.readline()
        process.send_signal(number)
        code, _, err = finish(process)
        assert code == status
        print(err)
        said, where, how = err.splitlines()[-3:]
        assert said == f"nn-manual: {word}"
        stopped = re.fullmatch(r"stopped in epoch (\d+) at step (\d+); the run so far lies in run", where)
        assert stopped
        epoch, step = map(int, stopped.groups())
        assert how == f"to go on from step {step}: nn-manual train --resume run"
        assert names(small / "run") == ["checkpoints", *GROWING, "summary.json"]
        summary = json.loads((small / "run" / "summary.json").read_text())
        assert summary == {"epoch": epoch, "epochs": 1_000_000, "step": step, "stopped": word}
        recorded = read_run(small / "run")
        assert recorded.metrics["epoch"].size >= 1
        covered = sum(line["num_steps"] for line in lines(small / "run" / "gradients.jsonl"))
        assert covered == every * step
        (checkpoint,) = checkpoints_of(small / "run")
        assert read_checkpoint(checkpoint)[0]["step"] == step

    @pytest.mark.usefixtures("small")
    def test_the_second(self) -> None:
        """A checkpoint that takes its time, of which a user who presses again doesn't want to wait for the end."""
        program = (
            "import sys, time\n"
            "from nn_manual.run_directory import checkpoints\n"
            "from nn_manual.cli import main\n"
            "def slow(*_):\n    print('writing', flush=True)\n    time.sleep(3600)\n"
            "checkpoints._write_files = slow\n"
            "sys.exit(main(sys.argv[1:]))\n"
        )
        process = subprocess.Popen(
            [sys.executable, "-c", program, "train", "small.yaml", ENDLESS, UNCHECKED, "--run-dir", "run"],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            preexec_fn=take_signals,
        )  # fmt: skip
        assert process.stdout is not None
        process.stdout.readline()
        process.send_signal(signal.SIGINT)
        while process.stdout.readline() != "writing\n":
            pass
        process.send_signal(signal.SIGINT)
        code, _, err = finish(process)
        assert (code, err) == (-signal.SIGINT, "")

    @pytest.mark.usefixtures("small")
    @pytest.mark.parametrize("delay", [0.6, 1.0, 1.4])
    def test_two_at_once(self, delay: float) -> None:
        """As when a terminal is closed, or a supervisor asks twice."""
        process = start("train", "small.yaml", ENDLESS, "--run-dir", "run")
        time.sleep(delay)
        process.send_signal(signal.SIGHUP)
        process.send_signal(signal.SIGTERM)
        code, _, err = finish(process)
        assert code in (129, 143, -signal.SIGHUP, -signal.SIGTERM)
        assert "Traceback" not in err

    @pytest.mark.usefixtures("small")
    def test_one_that_was_ignored_stays_so(self) -> None:
        program = f"trap '' HUP; exec {COMMAND} train small.yaml {ENDLESS} {UNCHECKED} --run-dir run"
        process = subprocess.Popen(
            ["sh", "-c", program],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=take_signals,
        )  # fmt: skip
        assert process.stdout is not None
        process.stdout.readline()
        process.send_signal(signal.SIGHUP)
        lines = [process.stdout.readline() for _ in range(4)]
        assert [re.match(r"\s*(\d+)/", line) is not None for line in lines] == [False, True, True, True]
        process.send_signal(signal.SIGTERM)
        assert finish(process)[0] == 143

    @pytest.mark.usefixtures("small")
    def test_while_it_still_loads(self) -> None:
        process = start("train", "small.yaml", ENDLESS)
        time.sleep(0.15)  # Python has started, numpy is being imported
        process.send_signal(signal.SIGTERM)
        code, _, err = finish(process)
        assert code in (143, -signal.SIGTERM)  # the latter before the program's first line
        assert "Traceback" not in err

    def test_while_the_command_line_is_read(
        self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        def interrupted(_: object) -> None:
            raise Interrupted(signal.SIGTERM)

        monkeypatch.setattr(cli, "parse", interrupted)
        monkeypatch.setattr(cli, "_end_on_signals", lambda _: None)  # this process has its own
        assert cli.main(["train", "small.yaml"]) == 143
        assert capsys.readouterr().err == "nn-manual: terminated\n"

    def test_within_an_import_that_fails_by_it(
        self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        """NumPy's, when it loads, is an ImportError with advice about how it was installed."""
        handlers: list[FirstSignal] = []

        def failing(_: object) -> None:
            try:
                handlers[0](signal.SIGTERM, None)
            except Interrupted as error:
                raise ImportError("the C-extensions failed") from error

        monkeypatch.setattr(cli, "parse", failing)
        monkeypatch.setattr(cli, "_end_on_signals", handlers.append)
        assert cli.main(["train", "small.yaml"]) == 143
        assert capsys.readouterr().err == "nn-manual: terminated\n"


@pytest.mark.slow
class TestTerminal:
    """Nobody who can be told is no reason to stop training, or to call what was written a failure."""

    def test_a_reader_that_leaves(self, small: Path) -> None:
        process = start("train", "small.yaml", "epochs=300", UNCHECKED, "--run-dir", "run")
        assert process.stdout is not None
        assert [process.stdout.readline().split()[0] for _ in range(3)] == ["validation", "epoch", "1/300"]
        process.stdout.close()
        assert process.wait(timeout=HANGING) == 0
        assert process.stderr is not None
        with process.stderr:
            assert process.stderr.read() == ""
        assert read_run(small / "run").metrics["epoch"].size == 300

    @pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-", "<&- >&- 2>&-", ">/dev/full", "2>/dev/full"])
    def test_streams_that_are_closed_or_full(self, small: Path, closed: str) -> None:
        program = f"{COMMAND} train small.yaml {UNCHECKED} --run-dir run {closed}"
        done = subprocess.run(["sh", "-c", program], capture_output=True, text=True, timeout=HANGING, check=False)
        assert (done.returncode, done.stderr) == (0, "")
        assert (small / "run" / "loss.png").read_bytes().startswith(b"\x89PNG")
        assert len(lines(small / "run" / "metrics.jsonl")) == 3

    @pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
    @pytest.mark.usefixtures("small")
    def test_what_only_prints_has_failed_where_it_can_not(self) -> None:
        assert finish(start("train", "small.yaml", UNCHECKED, "--run-dir", "run"))[0] == 0
        with open("/dev/full", "w") as full:
            code, _, err = finish(start("plot", "run", stdout=full))
        assert code == 5
        assert err.splitlines()[0] == "nn-manual: standard output: No space left on device"


    @pytest.mark.usefixtures("small")
    def test_the_status_is_that_of_the_error(self) -> None:
        program = f"{COMMAND} train nowhere.yaml 2>/dev/full"
        assert subprocess.run(["sh", "-c", program], timeout=HANGING, check=False, capture_output=True).returncode == 2


class TestDisk:
    @pytest.mark.parametrize(
        ("limit", "settings", "file", "left"),
        [
            (2000, [ENDLESS, UNCHECKED], "metrics.jsonl", [*GROWING, "summary.json"]),
            slow(
                20000, [UNCHECKED], "loss.png",
                ["best.safetensors", "checkpoints", *GROWING, "model.safetensors", "summary.json"],
            ),
        ],
    )  # fmt: skip
    def test_that_is_full(self, small: Path, limit: int, settings: list[str], file: str, left: list[str]) -> None:
        code, _, err = finish(start("train", "small.yaml", *settings, "--run-dir", "run", file_limit=limit))
        assert code == 5
        said, where, how = err.splitlines()[-3:]  # before them matplotlib may warn that it can't keep a list of fonts
        assert said == f"nn-manual: run/{file}: can't be written: File too large"
        if file == "loss.png":
            assert where == "the training has ended: only the figure is missing in run"
            assert how == "to draw it: nn-manual plot run -o run/loss.png"
        else:
            assert re.fullmatch(r"stopped in epoch \d+ at step \d+; the run so far lies in run", where)
            assert how == "to start it again: nn-manual train --resume run"
        assert names(small / "run") == left
        written = (small / "run" / "metrics.jsonl").read_bytes()
        assert written.endswith(b"}\n")
        assert len(lines(small / "run" / "metrics.jsonl")) >= 3
        if file == "loss.png":
            assert finish(start("plot", "run", "-o", "run/loss.png"))[0] == 0
            assert (small / "run" / "loss.png").exists()
