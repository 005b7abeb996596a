"""docs/architecture.md: its tree is the folders', and each function of its walks is in the file that it names."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
TREE, _, _, WALK, MANY = re.findall(r"```text\n(.*?)```", PAGE, re.DOTALL)
PACKAGE = ROOT / "nn_manual"


def paths_of_tree() -> Iterator[Path]:
    """The path of each line: its name, in the folder of the last line that is indented less."""
    folders: list[tuple[int, Path]] = [(-1, ROOT)]
    for line in TREE.splitlines():
        indent = len(line) - len(line.lstrip())
        while folders[-1][0] >= indent:
            folders.pop()
        path = folders[-1][1] / line.split()[0]
        folders.append((indent, path))
        yield path


def test_everything_in_the_tree_exists() -> None:
    assert [path for path in paths_of_tree() if not path.exists()] == []


def test_every_folder_and_module_of_the_package_is_in_the_tree() -> None:
    modules = {path for path in PACKAGE.rglob("*.py") if path.name != "__init__.py"}
    folders = {path.parent for path in PACKAGE.rglob("__init__.py")}
    assert (modules | folders) - set(paths_of_tree()) == set()


def test_each_function_of_the_walks_is_in_its_file() -> None:
    lines = re.findall(r"^ *(\w+)(\(\))? +.* (\S+\.py)$", WALK + MANY, re.MULTILINE)
    assert len(lines) == len([line for line in (WALK + MANY).splitlines() if line])
    for name, is_function, file in lines:
        definition = f"def {name}(" if is_function else f"class {name}"
        assert definition in (PACKAGE / file).read_text(encoding="utf-8"), f"{definition} in {file}"


def test_every_file_and_folder_that_the_text_names_exists() -> None:
    named = re.findall(r"`((?:nn_manual|scripts|tests)/[\w/.]*)`", PAGE)
    assert len(named) > 10
    assert [path for path in named if not (ROOT / path).exists()] == []
