"""What a reader has done in a folder: which exercises are solved, and how many hints were uncovered."""

from __future__ import annotations

import itertools
import json
import os
import textwrap
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from nn_manual.errors import DataError
from nn_manual.exercises.every_exercise import every_exercise
from nn_manual.exercises.exercise import Exercise
from nn_manual.messages.text import WIDTH, counted, one_line, print_note
from nn_manual.opening import open_file
from nn_manual.run_directory.files import write_atomically

#: A blank at which no line is broken.
NO_BREAK = "\u00a0"
#: The file in the folder.
FILE = ".nn_manual_exercises.json"


@dataclass(frozen=True)
class Done:
    """Of one exercise: whether a solution passed, and the number of hints."""

    solved: bool = False
    hints: int = 0


def done(folder: Path) -> dict[str, Done]:
    """What is known of the exercises in a folder. What can't be read counts as nothing: it is only a record."""
    return _read(folder)[0]


def _read(folder: Path) -> tuple[dict[str, Done], bool]:
    """What is known, and whether a part of the file is damaged."""
    try:
        with open_file(folder / FILE) as file:
            told = json.loads(file.read())
    except FileNotFoundError:
        return {}, False
    except (OSError, ValueError, RecursionError):
        return {}, True
    entries = told if isinstance(told, dict) else {"": told}
    known = {name: Done(**each) for name, each in entries.items() if _is_entry(each)}
    return known, len(known) < len(entries)


def _is_entry(each: Any) -> bool:
    if not isinstance(each, dict) or each.keys() != {"solved", "hints"}:
        return False
    return type(each["solved"]) is bool and type(each["hints"]) is int and each["hints"] >= 0


def note_solved(folder: Path, name: str) -> None:
    """Note that a solution has passed. Raises DataError where the folder can't be written."""
    _note(folder, name, Done(True, done(folder).get(name, Done()).hints))


def note_hint(folder: Path, name: str, most: int) -> int:
    """Note one more hint, of `most`, and say which one it is. One that can't be noted is shown all the same."""
    before = done(folder).get(name, Done())
    number = min(before.hints + 1, most)
    try:
        _note(folder, name, Done(before.solved, number))
    except DataError as error:
        print_note(f"note: the hint isn't counted: {error}")
    return number


def _note(folder: Path, name: str, one: Done) -> None:
    known, is_damaged = _read(folder)
    if known.get(name) == one:
        return
    if is_damaged:
        _put_aside(folder / FILE)
    told = {each: asdict(value) for each, value in (known | {name: one}).items()}
    write_atomically(folder / FILE, (json.dumps(told, indent=1) + "\n").encode())


def _put_aside(file: Path) -> None:
    """Keep a damaged file under another name, where it is a file at all."""
    names = (file.with_name(f"{FILE}.damaged{number or ''}") for number in itertools.count())
    other = next(name for name in names if not os.path.lexists(name))
    if file.is_file():
        try:
            file.rename(other)
        except OSError as error:
            raise DataError(one_line(f"{file}: {error.strerror}")) from None
        print_note(one_line(f"note: {file} is damaged: it is kept as {other.name}"))


def listing(folder: Path) -> Iterator[str]:
    """The chapters, with what is done of each exercise in a folder."""
    known, is_damaged = _read(folder)
    listed = every_exercise()
    num_solved = sum(known.get(name, Done()).solved for name in listed.exercises)
    states = {name: _of(one, known.get(name, Done()), folder) for name, one in listed.exercises.items()}
    for title, names in listed.chapters.items():
        yield title
        said = (f"{name} ({states[name]})" if states[name] else name for name in names)
        joined = ", ".join(each.replace(" ", NO_BREAK) for each in said)
        lines = textwrap.wrap(joined, WIDTH - 2, break_long_words=False, break_on_hyphens=False)
        yield from (f"  {line.replace(NO_BREAK, ' ')}" for line in lines)
        yield ""
    if is_damaged:
        yield f"{FILE} is damaged: what it says of some exercises, or of all, can't be read"
    following = next((name for name, state in states.items() if not state), None)
    to_begin = f" To begin: nn-manual exercise start {following}" if following else ""
    yield f"{num_solved} of {len(listed.exercises)} solved here.{to_begin}"


def _of(exercise: Exercise, one: Done, folder: Path) -> str:
    state = "solved" if one.solved else "begun" if (folder / f"{exercise.name}.py").exists() else ""
    hints = counted(one.hints, "hint") if one.hints else ""
    return ", ".join(filter(None, (state, hints)))
