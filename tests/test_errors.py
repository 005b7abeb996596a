"""Memory that isn't there: what is said of it, and that no code of the package takes it for something else."""

from __future__ import annotations

import ast
import errno
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch

import nn_manual
from nn_manual.errors import out_of_memory, raise_if_out_of_memory

ROOT = Path(nn_manual.__file__).parents[1]
SOURCES = [*sorted((ROOT / "nn_manual").rglob("*.py")), ROOT / "_nn_manual_pytest_plugin.py"]

#: Names of what catches a MemoryError, or torch's RuntimeError in its place.
CATCHING = {"Exception", "BaseException", "RuntimeError"}

#: Handlers that may go on without asking, each with its reason.
ALLOWED = {
    "_nn_manual_pytest_plugin.py: function_check": "it asks, and the test fails",
    "_nn_manual_pytest_plugin.py: gradient_check": "it asks, and the test fails",
    "check/functions/battery/families.py: naming_what_runs": "it adds a note, and raises again",
    "check/functions/callables.py: gradients_of": "it raises all again but one",
    "check/functions/raised.py: going_on": "the handler before it raises it again",
    "cli/__init__.py: main": "it asks, and ends the command",
    "cli/own_process.py: run": "it asks, and tells the process that started it",
    "check/functions/raised.py: words_of": "it puts any error into words",
    "data/npz_files.py: _header": "Python's parser raises MemoryError of brackets that are nested too deeply",
    "distributed/lockstep.py: _run": "another thread raises it",
    "distributed/roll_call.py: lost": "the store has gone",
    "distributed/roll_call.py: died": "the store has gone",
    "distributed/roll_call.py: claim_last_word": "the store has gone",
    "distributed/torchrun.py: processes": "it raises again what ended the run",
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


SHORTAGES = {
    numpys: "not enough memory: Unable to allocate 8.00 PiB for an array with shape (1099511627776, 1024) and data "
    "type float64",
    torchs: "not enough memory: torch tried to allocate 140,737,488,355,328 bytes",
    pythons: "not enough memory: how much was asked for is not known",
    gpus: "not enough memory: torch tried to allocate 20.00 GiB",
    systems: "not enough memory: [Errno 12] Cannot allocate memory",
    loaders: "not enough memory: libtorch_cpu.so: failed to map segment from shared object",
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
    "error", [RuntimeError("shapes differ"), ValueError("out of memory"), OSError(2, "no file"), ImportError("no x")]
)
def test_other_errors_are_about_something_else(error: Exception) -> None:
    assert out_of_memory(error) is None
    raise_if_out_of_memory(error)


def handlers(path: Path) -> Iterator[tuple[str, ast.ExceptHandler]]:
    """Those of a file that catch what memory that isn't there raises, each with the name of its function."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    for handler in (node for node in ast.walk(tree) if isinstance(node, ast.ExceptHandler)):
        types = [] if handler.type is None else ast.walk(handler.type)
        if CATCHING & {node.id for node in types if isinstance(node, ast.Name)}:
            around = [each for each in functions if each.lineno <= handler.lineno <= (each.end_lineno or 0)]
            yield max(around, key=lambda each: each.lineno).name, handler


def lets_through(handler: ast.ExceptHandler) -> bool:
    """Whether it asks, or raises again whatever it is."""
    if f"raise_if_out_of_memory({handler.name})" in map(ast.unparse, handler.body):
        return True
    ends = [node for node in ast.walk(handler) if isinstance(node, ast.Raise | ast.Return | ast.Continue)]
    return ends == handler.body[-1:] and ast.unparse(ends[0]) == "raise"


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_who_catches_any_error_lets_this_one_through(path: Path) -> None:
    inside = path.relative_to(ROOT).as_posix().removeprefix("nn_manual/")
    wrong = [f"{inside}: {name}" for name, handler in handlers(path) if not lets_through(handler)]
    assert [each for each in wrong if each not in ALLOWED] == []


def test_nothing_is_suppressed_with_it() -> None:
    for path in SOURCES:
        assert "suppress(Exception" not in path.read_text(encoding="utf-8"), path
