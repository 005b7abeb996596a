"""nn-manual check-function --timeout: a kernel that hangs is named, and the other rows run."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
from kernel_files import SCALE

from nn_manual.cli import main

#: Seconds. A right row takes milliseconds: for a processor it would have to wait this long before it counted as wrong.
TIMEOUT = "10"
KERNELS = "import time\n" + SCALE + """


class Hangs(Scale):
    @staticmethod
    def forward(context, x, weight):
        if len(x) == 13:
            while True:
                time.sleep(0.01)  # here
        return Scale.forward(context, x, weight)


def definition(x, weight):
    return x * weight


def waits(x, weight):
    time.sleep(3600)  # at once
"""


@pytest.fixture(autouse=True)
def kernels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "hanging_kernels.py").write_text(KERNELS)


def arguments(function: str, reference: str, timeout: str = TIMEOUT) -> list[str]:
    names = [f"hanging_kernels:{function}", "--reference", f"hanging_kernels:{reference}"]
    rows = ["--only", "sizes N=13", "--only", "sizes N=15", "--timeout", timeout]
    return ["check-function", *names, "--shapes", "NxD,D", "--sizes", "N=4,D=6", *rows]


def place(tmp_path: Path, comment: str) -> str:
    return f"{tmp_path / 'hanging_kernels.py'}:{KERNELS[: KERNELS.index(f'# {comment}')].count(chr(10)) + 1}"


@pytest.mark.slow
def test_a_row_that_hangs_is_wrong_and_the_others_run(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """It alone has a kernel that never ends a row."""
    assert main(arguments("Hangs", "definition")) == 3
    said = " ".join(capfd.readouterr().out.split())
    assert "gradient check failed: the values agree, sizes N=13 is wrong" in said
    assert f"sizes N=13 WRONG: it took over {TIMEOUT} s at {place(tmp_path, 'here')}" in said
    assert "1 row right, 1 wrong, " in said
    assert "sizes N=15 " in said


@pytest.mark.slow
def test_a_kernel_that_hangs_at_once_is_a_mismatch(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """It alone has a kernel that never ends the comparison of the values."""
    assert main(arguments("waits", "definition")) == 3
    said = capfd.readouterr().out.splitlines()[-1]
    words = f"it took over {TIMEOUT} s at {place(tmp_path, 'at once')}, in the comparison of the values"
    assert said == f"gradient check failed: hanging_kernels:waits: {words}"


@pytest.mark.slow
def test_a_reference_that_hangs_is_to_blame(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """It alone has a reference that never ends."""
    assert main(arguments("Scale", "waits")) == 2
    words = f"it took over {TIMEOUT} s at {place(tmp_path, 'at once')}, in the comparison of the values"
    assert capfd.readouterr().err.splitlines() == [f"nn-manual: the reference hanging_kernels:waits: {words}"]


@pytest.mark.slow
def test_an_import_that_hangs_ends_the_check(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """It alone has a module that is never imported to its end."""
    (tmp_path / "hanging_import.py").write_text("def scale(x, weight):\n    return x\n\n\nwhile True:\n    pass\n")
    options = ["--shapes", "NxD,D", "--sizes", "N=4,D=6", "--timeout", "1"]
    assert main(["check-function", "hanging_import:scale", "--reference", "hanging_kernels:definition", *options]) == 2
    (said,) = capfd.readouterr().err.splitlines()
    place = rf"{re.escape(str(tmp_path / 'hanging_import.py'))}:[56]"
    names = "hanging_import:scale and hanging_kernels:definition"
    assert re.fullmatch(rf"nn-manual: it took over 1 s at {place}, while {names} were imported", said)


@pytest.mark.parametrize("given", ["0", "-1", "nan", "inf", "1e9", "soon"])
def test_what_is_no_timeout(given: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments("Scale", "definition", given))
    assert ended.value.code == 2
    said = capsys.readouterr().err.splitlines()[-1]
    assert said.endswith(f"argument --timeout: {given!r} is no number of seconds above 0, up to 604,800")


def test_on_windows_nothing_could_end_the_check(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "platform", "win32")
    assert main(arguments("Scale", "definition")) == 2
    assert capsys.readouterr().err == (
        "nn-manual: --timeout: on Windows the check has no process of its own, which could be ended\n"
    )
