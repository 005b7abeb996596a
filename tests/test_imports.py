"""Imports go one way, and a heavy library loads where it is needed and nowhere else."""

from __future__ import annotations

import ast
import importlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from rooms import MAY_IMPORT

import nn_manual

PACKAGE = Path(nn_manual.__file__).parent

#: The rooms that may import each heavy library.
HEAVY = {
    "torch": {room for room in MAY_IMPORT if room.startswith("check.")} | {"functions", "step"},
    "sklearn": {"data", "estimators", "use"},
    "numba": {"compile", "check.compare", "machine_code"},
    "llvmlite": {"compile", "check.compare"},
    "matplotlib": {"plotting"},
    "tensorboard": {"run"},
}

#: The folders in which each file and folder is a room.
IN_PARTS = ("check", "exercises")

MODULES = sorted(PACKAGE.rglob("*.py"))


def room_of(*parts: str) -> str:
    """The room of a module, by the parts of its name without the package's; empty for an `__init__` outside of all."""
    if parts[:1] in [(folder,) for folder in IN_PARTS]:
        return ".".join(parts[:2]) if parts[1:] else ""
    return ".".join(parts[:1])


def room_of_file(path: Path) -> str:
    """The room that a file lies in."""
    return room_of(*(part for part in path.relative_to(PACKAGE).with_suffix("").parts if part != "__init__"))


def imported(path: Path) -> Iterator[str]:
    """Every module that a file imports, at its top or later."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            assert node.module is not None
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def test_every_room_has_its_place() -> None:
    assert {room_of_file(path) for path in MODULES} - {""} == MAY_IMPORT.keys()


def may_import(room: str, name: str) -> bool:
    """Whether a file in the room may import a module."""
    library, *rest = name.split(".")
    if library == "nn_manual" and room != "" and room_of(*rest) not in {room, *MAY_IMPORT[room]}:
        return False
    return room in HEAVY.get(library, {room})


def test_imports_go_one_way() -> None:
    found = [(path.relative_to(PACKAGE), room_of_file(path), name) for path in MODULES for name in imported(path)]
    assert len(found) > len(MODULES)
    assert [f"{path} imports {name}" for path, room, name in found if not may_import(room, name)] == []


def test_no_cycles() -> None:
    """Each room imports only rooms listed before it."""
    before: set[str] = set()
    for room, others in MAY_IMPORT.items():
        assert others <= before, room
        before.add(room)


def test_importing_loads_nothing_heavy() -> None:
    names = ["", *(f".{room}" for room in MAY_IMPORT if not room.startswith(("check.", "functions.", "__main__")))]
    code = "import importlib, sys\n"
    code += f"for name in {names}: importlib.import_module('nn_manual' + name)\n"
    heavy = [*HEAVY, "scipy.special"]  # scipy itself is light, and loads the rest when it is asked for
    code += f"for name in {heavy}: print(name, name in sys.modules)"
    loaded = subprocess.check_output([sys.executable, "-c", code], text=True)
    assert loaded.splitlines() == [f"{name} False" for name in heavy]


def test_help_loads_not_even_numpy() -> None:
    code = "import sys, nn_manual.cli; print('numpy' in sys.modules)"
    assert subprocess.check_output([sys.executable, "-c", code], text=True) == "False\n"


@pytest.mark.parametrize("own", [{}, {"OPENBLAS_THREAD_TIMEOUT": "7"}, {"GOMP_SPINCOUNT": ""}])
def test_variables_of_the_environment_that_are_set_stay(own: dict[str, str]) -> None:
    ours = {"OPENBLAS_THREAD_TIMEOUT": "18", "GOMP_SPINCOUNT": "3000"}
    code = f"import json, nn_manual, os; print(json.dumps([os.environ[name] for name in {[*ours]}]))"
    others = {name: value for name, value in os.environ.items() if name not in ours}
    said = subprocess.check_output([sys.executable, "-c", code], env=others | own, text=True)
    assert json.loads(said) == [*(ours | own).values()]


def test_every_public_name_is_there() -> None:
    for name in nn_manual.__all__:
        assert getattr(nn_manual, name).__name__.rpartition(".")[2] == name
    assert len(nn_manual.__all__) == len(set(nn_manual.__all__))
    assert {"ops", "Tanh", "MSELoss", "StepLR", "clip_grad_norm", "Trainer"} <= set(dir(nn_manual))
    with pytest.raises(AttributeError, match=r"^module 'nn_manual' has no attribute 'Conv4d'$"):
        nn_manual.Conv4d  # noqa: B018 - the lookup itself


@pytest.mark.parametrize(
    ("module", "name"),
    [("nn_manual.distributed.sliced_step", "Slicing"), ("nn_manual.check.verdict.diagnosis", "describe_difference")],
)
def test_what_the_pages_imported_once_is_still_there(module: str, name: str) -> None:
    assert getattr(importlib.import_module(module), name) is getattr(nn_manual, name)
