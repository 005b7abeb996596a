"""Imports go one way, and a heavy library loads where it is needed and nowhere else."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import nn_manual

PACKAGE = Path(nn_manual.__file__).parent

#: What each part of the package may import, itself apart: those before it, as far as they concern it.
ARRAYS = {"errors", "arrays"}
FUNCTIONS = ARRAYS | {"layers", "losses", "ops", "initializers", "schedulers"}
TRAINING = FUNCTIONS | {"model", "optim"}
MAY_IMPORT: dict[str, set[str]] = {
    "errors": set(),
    "arrays": {"errors"},
    "layers": ARRAYS,
    "losses": ARRAYS,
    "ops": ARRAYS,
    "initializers": ARRAYS,
    "schedulers": ARRAYS,
    "model": FUNCTIONS,
    "optim": FUNCTIONS | {"model"},
    "data": ARRAYS,
    "check": TRAINING,
    "config": TRAINING | {"data"},
    "files": ARRAYS,
    "metrics": ARRAYS | {"files"},
    "plotting": ARRAYS | {"files", "metrics"},
    "trainer": TRAINING | {"check", "data"},
    "progress": {"trainer"},
    "replay": TRAINING | {"check", "config", "files", "trainer"},
    "run": TRAINING | {"check", "data", "config", "files", "metrics", "plotting", "trainer", "progress", "replay"},
    "cli": TRAINING | {"check", "data", "config", "plotting", "progress", "run", "replay"},
    "__main__": {"cli"},
    "pytest_plugin": {"arrays", "layers", "check"},
}

#: The parts that may import each heavy library.
HEAVY = {"torch": {"check"}, "sklearn": {"data"}, "matplotlib": {"plotting"}}

MODULES = sorted(PACKAGE.rglob("*.py"))


def part_of(path: Path) -> str:
    """The file or folder of the package that a module belongs to; empty for the package's own `__init__`."""
    part = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
    return "" if part == "__init__" else part


def imported(path: Path) -> Iterator[str]:
    """Every module that a file imports, at its top or later."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            assert node.module is not None
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def test_every_part_has_its_place() -> None:
    assert {part_of(path) for path in MODULES} - {""} == MAY_IMPORT.keys()


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_go_one_way(path: Path) -> None:
    part = part_of(path)
    for name in imported(path):
        library, *rest = name.split(".")
        if library == "nn_manual":
            assert rest[0] == part or part == "" or rest[0] in MAY_IMPORT[part], f"{part} imports {name}"
        assert part in HEAVY.get(library, {part}), f"{part} imports {name}"


def test_no_cycles() -> None:
    """Each part imports only parts listed before it."""
    before: set[str] = set()
    for part, may_import in MAY_IMPORT.items():
        assert may_import <= before, part
        before.add(part)


def test_importing_loads_nothing_heavy() -> None:
    names = ["", *(f".{part}" for part in MAY_IMPORT if part not in ("check", "__main__"))]
    code = "import importlib, sys\n"
    code += f"for name in {names}: importlib.import_module('nn_manual' + name)\n"
    code += f"for name in {list(HEAVY)}: print(name, name in sys.modules)"
    loaded = subprocess.check_output([sys.executable, "-c", code], text=True)
    assert loaded.splitlines() == [f"{name} False" for name in HEAVY]


def test_help_loads_not_even_numpy() -> None:
    code = "import sys, nn_manual.cli; print('numpy' in sys.modules)"
    assert subprocess.check_output([sys.executable, "-c", code], text=True) == "False\n"


def test_every_public_name_is_there() -> None:
    for name in nn_manual.__all__:
        assert getattr(nn_manual, name).__name__.rpartition(".")[2] == name
    assert len(nn_manual.__all__) == len(set(nn_manual.__all__))
    with pytest.raises(AttributeError, match=r"^module 'nn_manual' has no attribute 'Conv2d'$"):
        nn_manual.Conv2d  # noqa: B018 - the lookup itself
