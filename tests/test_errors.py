"""Memory that isn't there, and what ends the work from outside: nobody takes them for something else."""

from __future__ import annotations

import ast
import errno
import functools
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Generator, Iterator
from functools import partial
from pathlib import Path
from types import FrameType

import numpy as np
import pytest
import torch

import nn_manual
from nn_manual.errors import (
    Interrupted,
    OthersEnded,
    end_at_once,
    first_words_of,
    is_from_outside,
    notes_of,
    out_of_memory,
    raise_if_nobodys_fault,
    raise_if_out_of_memory,
    words_of,
)

ROOT = Path(nn_manual.__file__).parents[1]
SOURCES = [*sorted((ROOT / "nn_manual").rglob("*.py")), ROOT / "_nn_manual_pytest_plugin.py"]

#: Names of what catches a MemoryError, or torch's RuntimeError in its place.
CATCHING = {"Exception", "BaseException", "RuntimeError"}

#: Handlers that may go on without asking, each with its reason.
ALLOWED = {
    "_nn_manual_pytest_plugin.py: function_check": "it asks, and the test fails",
    "_nn_manual_pytest_plugin.py: gradient_check": "it asks, and the test fails",
    "functions/battery/families.py: naming_what_runs": "it adds a note, and raises again",
    "functions/callables.py: gradients_of": "it raises all again but one",
    "functions/exceptions.py: going_on": "the handler before it raises it again",
    "check/compare/threads.py: _fill": "another thread raises it",
    "check/compare/threads.py: in_threads": "the thread didn't start, so nothing of it ran",
    "cli/__init__.py: main": "it asks, and ends the command",
    "cli/own_process.py: run": "it asks, and tells the process that started it",
    "exercises/causes/explanation.py: _agrees": "a change that takes all memory isn't the cause: the next one is tried",
    "exercises/causes/failures.py: _raises_not": "as above",
    "exercises/causes/failures.py: _same": "as above",
    "exercises/running/hand_in.py: run": "the process is the file's own, and tells what its import raised",
    "exercises/running/solving.py: results_of": "it tells what the reader's code raised, which alone ran",
    "exercises/kinds/exercise.py: keeping": "it raises it again, with the results that were there before",
    "exercises/kinds/of_nets.py: _run": "it raises it again, with the gradients that were there before",
    "errors.py: _said_by": "it puts any error into words",
    "data/npz_files.py: _header": "Python's parser raises MemoryError of brackets that are nested too deeply",
    "machine_code.py: compiled": "it raises all again but one",
    "step/slices/lockstep.py: _run": "another thread raises it",
    "step/slices/roll_call.py: lost": "the store has gone",
    "step/slices/roll_call.py: died": "the store has gone",
    "step/slices/roll_call.py: claim_last_word": "the store has gone",
    "step/slices/torchrun.py: processes": "it raises again what ended the run",
}


def numpys() -> None:
    np.empty((1 << 40, 1 << 10))


def torchs() -> None:
    torch.empty(1 << 45)


def pythons() -> None:
    bytearray(1 << 62)


def gpus() -> None:
    raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 GiB. GPU 0 has 7 GiB.")


def systems() -> None:
    raise OSError(errno.ENOMEM, "Cannot allocate memory")


def loaders() -> None:
    raise ImportError("libtorch_cpu.so: failed to map segment from shared object")


def libraries() -> None:
    raise OSError("libgomp.so.1: cannot allocate memory in static TLS block")


def threads() -> None:
    raise RuntimeError("can't start new thread")


def forgetful() -> None:
    raise SystemError("<function _find_and_load at 0x7f8b0a317ce0> returned NULL without setting an exception")


SHORTAGES = {
    numpys: "not enough memory: Unable to allocate 8.00 PiB for an array with shape (1099511627776, 1024) and data "
    "type float64",
    torchs: "not enough memory: torch tried to allocate 140,737,488,355,328 bytes",
    pythons: "not enough memory: how much was asked for is not known",
    gpus: "not enough memory: torch tried to allocate 20.00 GiB",
    systems: "not enough memory: [Errno 12] Cannot allocate memory",
    loaders: "not enough memory: libtorch_cpu.so: failed to map segment from shared object",
    libraries: "not enough memory: libgomp.so.1: cannot allocate memory in static TLS block",
    threads: "not enough memory: can't start new thread",
    forgetful: "not enough memory: <function _find_and_load at 0x7f8b0a317ce0> returned NULL without setting an "
    "exception",
}


@pytest.mark.parametrize("shortage", SHORTAGES)
def test_what_is_said_of_memory_that_is_not_there(shortage: object) -> None:
    assert callable(shortage)
    with pytest.raises(Exception) as caught:  # noqa: PT011 - of any type
        shortage()
    assert out_of_memory(caught.value) == SHORTAGES[shortage]
    with pytest.raises(type(caught.value)):
        raise_if_out_of_memory(caught.value)


@pytest.mark.parametrize(
    "error", [RuntimeError("shapes differ"), ValueError("out of memory"), OSError(2, "no file"), ImportError("no x"),
     SystemError("bad argument")],
)
def test_other_errors_are_about_something_else(error: Exception) -> None:
    assert out_of_memory(error) is None
    raise_if_out_of_memory(error)


@functools.cache
def handlers() -> list[tuple[str, ast.ExceptHandler]]:
    """Those that catch what memory that isn't there raises, each with its file and the name of its function."""
    inside = {path: path.relative_to(ROOT).as_posix().removeprefix("nn_manual/") for path in SOURCES}
    return [(f"{inside[path]}: {name}", handler) for path in SOURCES for name, handler in handlers_of(path)]


def handlers_of(path: Path) -> Iterator[tuple[str, ast.ExceptHandler]]:
    """Those of a file, each with the name of its function."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    for handler in (node for node in ast.walk(tree) if isinstance(node, ast.ExceptHandler)):
        types = [] if handler.type is None else ast.walk(handler.type)
        if CATCHING & {node.id for node in types if isinstance(node, ast.Name)}:
            around = [each for each in functions if each.lineno <= handler.lineno <= (each.end_lineno or 0)]
            yield max(around, key=lambda each: each.lineno).name, handler


def lets_through(handler: ast.ExceptHandler) -> bool:
    """Whether it asks, or raises again whatever it is."""
    asks = [f"{name}({handler.name})" for name in ("raise_if_out_of_memory", "raise_if_nobodys_fault")]
    if not set(asks).isdisjoint(map(ast.unparse, handler.body)):
        return True
    ends = [node for node in ast.walk(handler) if isinstance(node, ast.Raise | ast.Return | ast.Continue)]
    return ends == handler.body[-1:] and ast.unparse(ends[0]) == "raise"


def test_who_catches_any_error_lets_this_one_through() -> None:
    assert {place for place, handler in handlers() if not lets_through(handler)} <= ALLOWED.keys()


def test_nothing_is_suppressed_with_it() -> None:
    for path in SOURCES:
        assert "suppress(Exception" not in path.read_text(encoding="utf-8"), path


def test_who_catches_more_than_errors_lets_through_what_comes_from_outside() -> None:
    for place, handler in handlers():
        if handler.type is None or "BaseException" in ast.unparse(handler.type):
            asks = f"raise_if_nobodys_fault({handler.name})" in map(ast.unparse, handler.body)
            assert asks or lets_through(handler) or place in ALLOWED, place


def ctrl_c() -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(600)


def ended_generator() -> None:
    def generator() -> Generator[int, None, None]:
        yield 1

    running = generator()
    next(running)
    running.throw(GeneratorExit)


def by_signal() -> None:
    raise Interrupted(signal.SIGTERM)


def by_another() -> None:
    raise OthersEnded


def raised() -> None:
    raise KeyboardInterrupt


def raised_before_the_end() -> None:
    try:
        raise GeneratorExit
    finally:
        time.sleep(0)


def raised_again() -> None:
    try:
        raise KeyboardInterrupt
    except BaseException:
        time.sleep(0)
        raise


def left() -> None:
    raise SystemExit(1)


class Alarm:
    def ring(self, signum: int, frame: object) -> None:  # noqa: ARG002 - a signal handler's signature
        raise TimeoutError("too slow")

    def __call__(self, error: BaseException, signum: int, frame: object) -> None:  # noqa: ARG002 - as above
        raise error


def by_handler(handler: Callable[[int, FrameType | None], object]) -> Callable[[], None]:
    def ends() -> None:
        signal.signal(signal.SIGINT, handler)
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(1)

    return ends


@pytest.mark.parametrize(
    ("ends", "from_outside"),
    [
        *((ends, True) for ends in (ctrl_c, ended_generator, by_signal, by_another)),
        (by_handler(Alarm().ring), True),
        *((by_handler(partial(Alarm(), error)), True) for error in (KeyboardInterrupt(), SystemExit(1), OSError())),
        *((ends, False) for ends in (raised, raised_before_the_end, raised_again, left, numpys)),
    ],
)
def test_what_comes_from_outside(ends: Callable[[], None], from_outside: bool) -> None:
    before = signal.getsignal(signal.SIGINT)
    try:
        with pytest.raises(BaseException) as caught:  # noqa: PT011 - of any type
            ends()
        assert is_from_outside(caught.value) == from_outside
        if from_outside:
            with pytest.raises(type(caught.value)):
                raise_if_nobodys_fault(caught.value)
    finally:
        signal.signal(signal.SIGINT, before)


class WordlessError(Exception):
    def __str__(self) -> str:
        raise SystemExit


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (ValueError(), "ValueError"),
        (ValueError("\n first\x1b\nsecond"), "ValueError: first\\x1b second"),
        (ValueError("x" * 10**6), f"ValueError: {'x' * 488}...{'x' * 500}"),
        (WordlessError(), "WordlessError: whose text raised SystemExit"),
        (type("\x9b", (Exception,), {})("\ud800"), "\\x9b: \\ud800"),
    ],
)
def test_the_words_of_an_error(error: Exception, words: str) -> None:
    assert words_of(error) == words
    assert first_words_of(error) == words.removesuffix(" second")


def test_the_notes_on_an_error() -> None:
    error = ValueError()
    error.add_note("a\x1b\nb")
    assert notes_of(error) == ["a\\x1b\\nb"]
    error.__notes__ = 5  # type: ignore[assignment]  # nobody can stop it
    assert notes_of(error) == []


def test_a_process_that_a_signal_ends_at_once_on_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    statuses = list[int]()

    def leave(status: int) -> None:
        statuses.append(status)
        raise SystemExit  # os._exit doesn't come back

    monkeypatch.setattr(sys, "platform", "win32")
    monkeypatch.setattr(os, "_exit", leave)
    with pytest.raises(SystemExit):
        end_at_once(signal.SIGTERM)
    assert statuses == [143]


def test_a_system_without_a_signal_for_closed_terminals() -> None:
    code = "import signal; del signal.SIGHUP; from nn_manual.errors import SIGNALS; print([*map(int, SIGNALS)])"
    assert subprocess.check_output([sys.executable, "-c", code], text=True) == "[2, 15]\n"
