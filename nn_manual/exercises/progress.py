"""What a reader has done in a folder: which exercises are solved, and how many hints were uncovered."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from nn_manual.exercises.every_exercise import every_exercise
from nn_manual.exercises.exercise import Exercise
from nn_manual.opening import open_file
from nn_manual.run_directory.files import write_atomically

#: The file in the folder.
FILE = ".nn_manual_exercises.json"


@dataclass(frozen=True)
class Done:
    """Of one exercise: whether a solution passed, and the number of hints."""

    solved: bool = False
    hints: int = 0


def done(folder: Path) -> dict[str, Done]:
    """What is known of the exercises in a folder. A file that can't be read counts as none: it is only a record."""
    with suppress(OSError, ValueError, AttributeError, TypeError), open_file(folder / FILE) as file:
        told = json.loads(file.read())
        return {str(name): Done(bool(each["solved"]), int(each["hints"])) for name, each in told.items()}
    return {}


def note_solved(folder: Path, name: str) -> None:
    """Note that a solution has passed."""
    _note(folder, name, Done(True, done(folder).get(name, Done()).hints))


def note_hint(folder: Path, name: str) -> int:
    """Note one more hint, and say which one it is."""
    before = done(folder).get(name, Done())
    _note(folder, name, Done(before.solved, before.hints + 1))
    return before.hints + 1


def _note(folder: Path, name: str, one: Done) -> None:
    known = done(folder)
    if known.get(name) == one:
        return
    told = {each: asdict(value) for each, value in (known | {name: one}).items()}
    write_atomically(folder / FILE, (json.dumps(told, indent=1) + "\n").encode())


def listing(folder: Path) -> Iterator[str]:
    """The chapters, with what is done of each exercise in a folder."""
    known = done(folder)
    listed = every_exercise()
    num_solved = sum(known.get(name, Done()).solved for name in listed.exercises)
    for title, names in listed.chapters.items():
        yield title
        for name in names:
            yield f"  {name:<31}{_of(listed.exercises[name], known.get(name, Done()), folder)}".rstrip()
        yield ""
    yield f"{num_solved} of {len(listed.exercises)} solved here. To begin: nn-manual exercise start square"


def _of(exercise: Exercise, one: Done, folder: Path) -> str:
    state = "solved" if one.solved else "begun" if (folder / f"{exercise.name}.py").exists() else ""
    hints = f"{one.hints} hint{'s' * (one.hints != 1)}" if one.hints else ""
    return ", ".join(filter(None, (state, hints)))
