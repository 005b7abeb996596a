"""`benchmark.py reliability failures`: a sample, and that it sees an error that is lost."""

from __future__ import annotations

from contextlib import suppress

import pytest
from benchmarks.reliability import failures

from nn_manual.run_directory import files


def test_a_disk_that_refuses_now_and_then(capsys: pytest.CaptureFixture[str]) -> None:
    assert failures.main(every=25)
    words = capsys.readouterr().out.split()
    assert int(words[0]) > 80
    assert words[8] == words[10]  # as many ended as they should


def test_an_error_that_is_lost_is_seen(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def flush_or_not(lines: files.JsonLines) -> None:
        text = "".join(f"{line if isinstance(line, str) else line()}\n" for line in lines._lines)
        lines._lines = []
        with suppress(OSError):
            lines._file.write(text.encode())

    monkeypatch.setattr(files.JsonLines, "flush", flush_or_not)
    monkeypatch.setattr(failures, "ERRORS", failures.ERRORS[:1])
    assert not failures.main(every=12)
    assert "status 0" in capsys.readouterr().out
