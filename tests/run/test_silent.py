"""What the other processes of a run have in the place of its writer, files and bar: each method, and no effect."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from nn_manual.run.silent import NoBar, NoLines, NoWriter, writer_of
from nn_manual.run.writer import RunWriter
from nn_manual.run_directory.ledger import LedgerLines
from nn_manual.trainer.progress import RunBar


def methods_of(kind: type) -> set[str]:
    return {name for name in dir(kind) if not name.startswith("_")}


def test_a_mute_writer_has_every_method() -> None:
    assert methods_of(NoWriter) == methods_of(RunWriter)
    assert methods_of(NoBar) == methods_of(RunBar)
    assert methods_of(NoLines) < methods_of(LedgerLines)


def test_the_first_process_alone_writes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    groups: list[Any] = [SimpleNamespace(rank=rank) for rank in range(3)]
    first, *others = (writer_of(tmp_path / "run", group) for group in groups)
    for writer in others:
        with writer.lock(), writer.epochs(None) as epochs, writer.gradients(1, None):
            writer.check_new()
            writer.create()
            epochs.append({"epoch": 1})
            writer.say("a line")
            writer.note("a note")
            writer.write_stopped({})
    assert not (tmp_path / "run").exists()
    assert capsys.readouterr() == ("", "")
    first.create()
    first.say("a line")
    first.note("a\nnote")
    assert (tmp_path / "run").is_dir()
    assert capsys.readouterr() == ("a line\n", "a\\nnote\n")
