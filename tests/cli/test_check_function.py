"""nn-manual check-function: exit statuses 0, 2 and 3, also where a kernel ends its process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from kernel_files import SCALE
from slow_cases import slow

from nn_manual.cli import main, own_process

from .conftest import HANGING, finish, start

KERNELS = "import ctypes, os, time\n" + SCALE + """


class Half(Scale):
    @staticmethod
    @once_differentiable
    def backward(context, grad_output):
        grad_x, grad_weight = Scale.backward(context, grad_output)
        return grad_x, grad_weight / 2


class Ends(Scale):
    @staticmethod
    def end(size):
        if size == 13:
            print("said before")
            os._exit(0)

    @classmethod
    def forward(cls, context, x, weight):
        cls.end(len(x))
        return Scale.forward(context, x, weight)


class Aborts(Ends):
    @staticmethod
    def end(size):
        os.abort()


class EndsTwice(Ends):
    @staticmethod
    def end(size):
        if size == 0:
            ctypes.string_at(0)
        Ends.end(size)


class ClosesAll(Ends):
    @staticmethod
    def end(size):
        os.closerange(0, 100)


class Forks(Ends):  # what it has started keeps its pipes open
    @staticmethod
    def end(size):
        if (number := os.fork()) == 0:
            time.sleep(600)
        open("forked", "a").write(f"{number} ")
        os._exit(1)


class Waits(Ends):
    @staticmethod
    def end(size):
        open("waiting", "w").write(str(os.getpid()))
        time.sleep(3600)


def definition(x, weight):
    return x * weight


def leaves(x, weight):
    raise SystemExit(0)


def ends_forward(x, weight):
    if len(x) == 0:
        ctypes.string_at(1)
    return x * weight


class EndsBackward(Scale):
    @staticmethod
    def backward(context, grad_output):
        if len(grad_output) == 0:
            ctypes.string_at(2)
        return Scale.backward(context, grad_output)


ends_backward = EndsBackward.apply


def aborts(x, weight):
    os.abort()
"""


@pytest.fixture(autouse=True)
def kernels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "the_kernels.py").write_text(KERNELS)
    (tmp_path / "random.py").write_text("raise ValueError('not the one of Python')\n")
    (tmp_path / "ending_kernels.py").write_text("import os\nos._exit(0)\n")


def arguments(function: str, *more: str) -> list[str]:
    path = function if ":" in function else f"the_kernels:{function}"
    sizes = [] if "--sizes" in more else ["--sizes", "N=4,D=6"]
    reference = [] if "--reference" in more else ["--reference", "the_kernels:definition"]
    return ["check-function", path, *reference, "--shapes", "NxD,D", *sizes, *more]


@pytest.mark.slow
def test_a_right_kernel_ends_with_0(capsys: pytest.CaptureFixture[str]) -> None:
    """It alone runs all rows of a right kernel in two dtypes in a process of its own."""
    assert main(arguments("Scale", "--dtype", "bfloat16", "--dtype", "float32")) == 0
    said = capsys.readouterr().out
    assert said.startswith("5 tensors equal torch's")
    assert "dtype          float32, float32 grad_output transposed, " in said


@pytest.mark.parametrize("more", [["--only", "retain_graph"], slow([])])
def test_a_wrong_one_ends_with_3(more: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments("Half", *more)) == 3
    said = capsys.readouterr().out
    assert said.startswith("gradient check failed: wrong first in Half: grad_weight, random upstream")
    assert "1/2 of the reference" in said


@pytest.mark.slow
def test_a_kernel_that_ends_python_is_a_mismatch(capsys: pytest.CaptureFixture[str]) -> None:
    """It alone has a kernel that ends Python."""
    assert main(arguments("leaves")) == 3
    assert "leaves: forward raised RuntimeError: sys.exit(0)" in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kernel", "how", "place", "where"),
    [
        ("Aborts", "signal SIGABRT", "os.abort()", "the comparison of the values"),
        ("ClosesAll", "status 1", "", "the comparison of the values"),
        ("Forks", "status 1", "", "the comparison of the values"),
    ],
)
def test_a_kernel_that_ends_the_process_at_once_is_a_mismatch(
    kernel: str, how: str, place: str, where: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """It alone has a kernel that ends its process before the first row is done."""
    assert main(arguments(kernel)) == 3
    line = KERNELS[: KERNELS.index(place)].count("\n") + 1
    at = f" at {tmp_path / 'the_kernels.py'}:{line}" if place else ""
    said = capfd.readouterr().out
    assert said.endswith(f"gradient check failed: the_kernels:{kernel}: the process ended with {how}{at}, in {where}\n")
    forked = (tmp_path / "forked").read_text().split() if kernel == "Forks" else []
    assert bool(forked) == (kernel == "Forks")
    for number in map(int, forked):
        os.kill(number, signal.SIGKILL)  # it lives still: nobody has waited for its end


@pytest.mark.slow
def test_the_rows_behind_the_one_that_ends_the_process_run(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """It alone sees rows lost behind the one that ends the process."""
    assert main(arguments("EndsTwice")) == 3
    said = " ".join(capfd.readouterr().out.split())
    assert "gradient check failed: the values agree, sizes N=0 is wrong" in said
    line = KERNELS[: KERNELS.index("ctypes.string_at(0)")].count("\n") + 1
    at = f"{tmp_path / 'the_kernels.py'}:{line}"
    assert f"N=0 WRONG: the process ended with signal SIGSEGV at {at}" in said
    assert "N=13 WRONG: the process ended with status 0" in said
    assert "sizes N=1, 2, 3, 7, 15, 16, 17, 31, " in said  # each once
    assert "cost forward and backward" in said
    assert "2 wrong" in said


@pytest.mark.slow
def test_a_kernel_that_ends_the_process_in_many_rows(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It alone starts a process again and again."""
    monkeypatch.setattr(own_process, "MOST_ENDS", 1)
    assert main(arguments("Ends")) == 3
    said = " ".join(capfd.readouterr().out.split())
    assert "sizes N=13 WRONG: the process ended with status 0" in said
    assert "N=15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 129, 255, 256, 257, 511, " in said
    assert "skipped: the process of the_kernels:Ends had ended 1 times" in said


@pytest.mark.slow
@pytest.mark.parametrize("where", ["forward", "backward"])
def test_a_reference_that_ends_the_process_in_a_row(
    where: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """It alone has a reference, not a kernel, that ends the process."""
    assert main(arguments("Scale", "--reference", f"the_kernels:ends_{where}")) == 0
    said = " ".join(capfd.readouterr().out.split())
    line = KERNELS[: KERNELS.index(f"ctypes.string_at({1 if where == 'forward' else 2})")].count("\n") + 1
    at = f"{tmp_path / 'the_kernels.py'}:{line}"
    assert f"N=0 skipped: in the reference the process ended with signal SIGSEGV at {at}" in said
    assert "sizes N=1, 2, 3, 7, 13, 15, 16, 17, 31, " in said


@pytest.mark.slow
def test_a_reference_that_ends_the_process_at_once_is_to_blame(capfd: pytest.CaptureFixture[str]) -> None:
    """It alone has a reference that ends the process."""
    assert main(arguments("Scale", "--reference", "the_kernels:aborts")) == 2
    said = capfd.readouterr().err
    assert said.startswith("nn-manual: the reference the_kernels:aborts: the process ended with signal SIGABRT at ")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("given", "words"),
    [
        (arguments("ending_kernels:f"), "the process ended with status 0, while ending_kernels:f and the_kernels:"),
        (arguments("Scale", "--sizes", "N=4"), "--sizes: there is no size for D, which --shapes has"),
    ],
)
def test_a_mistake_ends_with_2(given: list[str], words: str, capfd: pytest.CaptureFixture[str]) -> None:
    """It alone starts a process for a function that can't be checked."""
    assert main(given) == 2
    said = capfd.readouterr()
    assert words in said.err
    assert said.err.count("\n") == 1
    assert not said.out


def signalled(signum: signal.Signals, directory: Path) -> tuple[subprocess.Popen[str], int]:
    """A command that gets a signal while its kernel waits, and the number of the kernel's process."""
    process, waiting = start(*arguments("Waits")), directory / "waiting"
    while not (waiting.exists() and waiting.read_text()):
        assert process.poll() is None
        time.sleep(0.05)
    process.send_signal(signum)
    return process, int(waiting.read_text())


@pytest.mark.slow
@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_both_processes(signum: signal.Signals, tmp_path: Path) -> None:
    """It alone interrupts a check."""
    process, number = signalled(signum, tmp_path)
    status, out, err = finish(process)
    assert (status, out) == (128 + signum, "")
    how = "interrupted" if signum == signal.SIGINT else "terminated"
    assert err == f"nn-manual: {how}\nin the comparison of the values of the_kernels:Waits\n"
    assert not _lives(number)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="other systems don't tell a process that its parent has ended")
@pytest.mark.parametrize("signum", [signal.SIGKILL, signal.SIGQUIT])
def test_what_ends_the_command_at_once_ends_the_kernel(signum: signal.Signals, tmp_path: Path) -> None:
    """It alone sees a process of a kernel that outlives its command."""
    process, number = signalled(signum, tmp_path)
    assert finish(process)[0] == -signum
    end = time.perf_counter() + HANGING
    while _lives(number) and time.perf_counter() < end:
        time.sleep(0.05)
    assert not _lives(number)


def _lives(number: int) -> bool:
    try:
        os.kill(number, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.slow
def test_standard_output_may_be_full() -> None:
    """It alone prints the report to a full device."""
    with open("/dev/full", "w") as full:
        process = start(*arguments("Scale", "--skip", "sizes"), stdout=full, stderr=subprocess.PIPE)
    status, _, err = finish(process)
    assert (status, err) == (5, "nn-manual: standard output: No space left on device\n")


def test_help_has_the_exit_statuses_and_several_dtypes(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["check-function", "--help"])
    said = capsys.readouterr().out
    assert "  3    a value or a row is wrong" in said
    assert "bfloat16,float32" in said
    assert "N=8,D=64,D=128" in said


@pytest.mark.slow
def test_several_sizes_of_a_name_are_tried_and_no_others(capsys: pytest.CaptureFixture[str]) -> None:
    """It alone gives several sizes on the command line."""
    assert main(arguments("Scale", "--sizes", "N=4,D=8,D=64", "--skip", "twice")) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert ", D=8, 64 " in said
    assert said.count("D=") == 1
