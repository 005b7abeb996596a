"""What a reader has done in a folder: which exercises are solved, and how many hints were uncovered."""

from __future__ import annotations

import itertools
import json
import os
import textwrap
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from nn_manual.errors import DataError
from nn_manual.exercises.kinds.every_exercise import every_exercise
from nn_manual.exercises.kinds.exercise import Exercise
from nn_manual.messages.text import WIDTH, counted, one_line, print_note
from nn_manual.opening import open_file
from nn_manual.run_directory.files import write_atomically

#: A blank at which no line is broken.
NO_BREAK = "\u00a0"
#: The file in the folder.
FILE = ".nn_manual_exercises.json"


@dataclass(frozen=True)
class Done:
    """Of one exercise: whether a solution has passed, the number of hints, and whether a check behind the one that
    passed has failed.
    """

    solved: bool = False
    hints: int = 0
    fails: bool = False


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
    if not isinstance(each, dict) or each.keys() not in ({"solved", "hints", "fails"}, {"solved", "hints"}):
        return False
    are_bools = type(each["solved"]) is bool and type(each.get("fails", False)) is bool
    return are_bools and type(each["hints"]) is int and each["hints"] >= 0


def note_checked(folder: Path, name: str, *, passed: bool) -> None:
    """Note that a solution has passed, or that one fails behind it. Raises DataError where the folder can't be
    written.
    """
    before = done(folder).get(name, Done())
    if passed or before.solved:
        _note(folder, name, Done(True, before.hints, not passed))


def note_hint(folder: Path, name: str, most: int) -> int:
    """Note one more hint, of `most`, and say which one it is. One that can't be noted is shown all the same."""
    before = done(folder).get(name, Done())
    number = min(before.hints + 1, most)
    try:
        _note(folder, name, replace(before, hints=number))
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
    begin = following(folder)
    to_begin = f" To begin: nn-manual exercise start {begin}" if begin else ""
    yield f"{num_solved} of {len(listed.exercises)} solved here.{to_begin}"


def following(folder: Path, name: str = "") -> str:
    """The first exercise on the path behind this one that is neither solved nor begun in a folder, or else in front of
    it; empty where there is none.
    """
    known, path = done(folder), every_exercise().path
    place = path.index(name) + 1 if name in path else 0
    behind = [*path[place:], *path[:place]]
    return next((each for each in behind if not known.get(each, Done()).solved and not _is_begun(each, folder)), "")


def _is_begun(name: str, folder: Path) -> bool:
    return (folder / f"{name}.py").exists()


def _of(exercise: Exercise, one: Done, folder: Path) -> str:
    solved = "solved before" if one.fails else "solved"
    state = solved if one.solved else "begun" if _is_begun(exercise.name, folder) else ""
    hints = counted(one.hints, "hint") if one.hints else ""
    return ", ".join(filter(None, (state, hints)))
