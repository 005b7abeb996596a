"""docs/architecture.md: it names every room, and each function of its walks is in the file that it names."""

from __future__ import annotations

import re
from pathlib import Path

from rooms import MAY_IMPORT

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
ROOMS, *WALKS = re.findall(r"```text\n(.*?)```", TEXT, re.DOTALL)
PACKAGE = ROOT / "nn_manual"


def test_the_rooms_are_those_of_the_imports_in_an_order_in_which_each_imports_from_those_above() -> None:
    rooms, folder = [], ""
    for line in ROOMS.splitlines():
        name = line.split()[0].removesuffix(".py")
        folder = folder if line.startswith(" ") else ""
        assert (PACKAGE / folder / line.split()[0]).exists()
        if name in ("check/", "exercises/"):
            folder = name
        else:
            rooms.append((folder + name).rstrip("/").replace("/", "."))
    assert set(rooms) == MAY_IMPORT.keys()
    assert [(room, other) for i, room in enumerate(rooms) for other in MAY_IMPORT[room] & set(rooms[i:])] == []


def test_the_page_is_short() -> None:
    assert len(TEXT.splitlines()) < 150


def test_each_function_of_the_walks_is_in_its_file() -> None:
    lines = re.findall(r"^ *(\w+)(\(\))? +.* (\S+\.py)$", "".join(WALKS), re.MULTILINE)
    assert len(lines) == len([line for line in "".join(WALKS).splitlines() if line]) > 20
    for name, is_function, file in lines:
        definition = f"def {name}(" if is_function else f"class {name}"
        assert definition in (PACKAGE / file).read_text(encoding="utf-8"), f"{definition} in {file}"


def test_every_file_and_folder_that_the_text_names_exists() -> None:
    contributing = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    named = re.findall(r"`((?:nn_manual|scripts|tests)/[\w/.]*)`", TEXT + contributing)
    assert len(named) > 20
    assert [path for path in named if not (ROOT / path).exists()] == []


def test_the_first_line_of_a_file_says_what_is_in_it() -> None:
    first_lines = re.compile(r'(""".+[.:?]"""|""".+[.:?])\n(\n|\Z)')
    files = {path.relative_to(PACKAGE).as_posix(): path.read_text(encoding="utf-8") for path in PACKAGE.rglob("*.py")}
    assert [name for name, text in files.items() if not first_lines.match(text)] == []
