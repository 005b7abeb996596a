"""A run that is stopped from outside: the files are whole, and it is said where they lie."""

from __future__ import annotations

import re
import signal
import time
from pathlib import Path

import pytest
from runs import lines, names

from nn_manual.run_directory.metrics import read_run

from .conftest import ENDLESS, GROWING, UNCHECKED, finish, start


class TestStopped:
    """A signal, a reader that leaves, a disk that is full: the files are whole, and it is said where they lie."""

    @pytest.mark.parametrize(
        ("number", "status", "word", "every"),
        [(signal.SIGINT, 130, "interrupted", 1), (signal.SIGTERM, 143, "terminated", 0)],
    )
    def test_by_a_signal(self, small: Path, number: signal.Signals, status: int, word: str, every: int) -> None:
        process = start("train", "small.yaml", ENDLESS, f"gradient_check.every={every}", "--run-dir", "run")
        assert process.stdout is not None
        process.stdout.readline()
        process.send_signal(number)
        code, _, err = finish(process)
        assert code == status
        said, where = err.splitlines()
        assert said == f"nn-manual: {word}"
        stopped = re.fullmatch(r"stopped in epoch \d+ at step (\d+); the run so far lies in run", where)
        assert stopped
        assert names(small / "run") == GROWING
        recorded = read_run(small / "run")
        assert recorded.metrics["epoch"].size >= 1
        # The step at which it stopped may have been under way.
        assert recorded.gradients["step"].size in (every * int(stopped[1]), every * (int(stopped[1]) - 1))

    @pytest.mark.usefixtures("small")
    def test_while_it_still_loads(self) -> None:
        process = start("train", "small.yaml", ENDLESS)
        time.sleep(0.15)  # Python has started, numpy is being imported
        process.send_signal(signal.SIGTERM)
        code, _, err = finish(process)
        assert code in (143, -signal.SIGTERM)  # the latter before the program's first line
        assert "Traceback" not in err

    def test_by_a_reader_that_leaves(self, small: Path) -> None:
        process = start("train", "small.yaml", ENDLESS, UNCHECKED, "--run-dir", "run")
        assert process.stdout is not None
        assert process.stdout.readline().startswith("epoch       1/1000000 ")
        process.stdout.close()
        assert process.wait(timeout=60) == 141
        assert process.stderr is not None
        with process.stderr:
            assert process.stderr.read() == ""
        assert read_run(small / "run").metrics["epoch"].size >= 1

    @pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
    def test_by_an_output_that_is_full(self, small: Path) -> None:
        train = ["train", "small.yaml", UNCHECKED, "--run-dir", "run"]  # prints while it runs
        plot = ["plot", "run"]  # prints at its end, when Python would only flush at exit
        for command in (train, plot):
            with open("/dev/full", "w") as full:
                code, _, err = finish(start(*command, stdout=full))
            assert code == 5
            assert err.splitlines()[0] == "nn-manual: standard output: No space left on device"
        assert read_run(small / "run").metrics["epoch"].size == 1

    @pytest.mark.parametrize(
        ("limit", "settings", "file", "left"),
        [
            (2000, [ENDLESS, UNCHECKED], "metrics.jsonl", GROWING),
            (20000, [UNCHECKED], "loss.png", [*GROWING, "model.safetensors", "summary.json"]),
        ],
    )
    def test_by_a_disk_that_is_full(
        self, small: Path, limit: int, settings: list[str], file: str, left: list[str]
    ) -> None:
        code, _, err = finish(start("train", "small.yaml", *settings, "--run-dir", "run", file_limit=limit))
        assert code == 5
        said, where = err.splitlines()
        assert said == f"nn-manual: run/{file}: can't be written: File too large"
        assert re.fullmatch(r"stopped in epoch \d+ at step \d+; the run so far lies in run", where)
        assert names(small / "run") == left
        written = (small / "run" / "metrics.jsonl").read_bytes()
        assert written.endswith(b"}\n")
        assert len(lines(small / "run" / "metrics.jsonl")) >= 3
