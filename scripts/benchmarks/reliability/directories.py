"""Run directories edited at random, each read by a command: it must say in one line what is wrong, with the right
status, and touch nothing outside of the run.

A case is a copy of a run that was trained at the start, some edits of it (`edited_runs`), and one of COMMANDS, in a
process forked from one that has imported everything. Every 12th case of a command is not edited, or edited without
effect, and must succeed. The number of a case determines everything about it: `--cases 17:18` runs the 17th again.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import re
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from benchmarks.processes import on_all_cores
from benchmarks.reliability import made_runs
from benchmarks.reliability.edited_files import one_of
from benchmarks.reliability.edited_runs import SECRET, Scene, edit, move_within, write_outside
from benchmarks.reliability.kills import quick_runs
from benchmarks.reliability.made_runs import BUNDLE, COMMANDS, arguments_of, runs_of
from benchmarks.reliability.watched import SECONDS, Ended, digest_of, watched
from nn_manual.cli import main as nn_manual
from nn_manual.run_directory.checkpoints import CHECKPOINTS_DIRECTORY, MANIFEST_FILE
from nn_manual.run_directory.metrics import CONFIG_FILE, DATA_FILE

NUM_CASES = 10_000
SEED = 29
#: How many cases are one piece of work, which takes less than a minute.
NUM_AT_ONCE = 100
#: One in so many rounds of all commands edits nothing.
HARMLESS_EVERY = 12
#: Lines on standard error: a mismatch has a report, a config a line for each mistake.
MOST_LINES, MOST_LINES_OF_REPORT = 12, 60
#: The longest of these lines: what `one_line` leaves, and some words.
LONGEST_LINE = 1_200


@dataclass(frozen=True)
class Outcome:
    """What became of a case; `problems` is empty if all is right."""

    number: int
    command: str
    what: str
    status: int | None
    problems: list[str]

    def __str__(self) -> str:
        return "\n    ".join([f"case {self.number}: {self.command} of {self.what}", *self.problems])


def main(cases: range | None = None) -> bool:
    """Print what became of the cases, and of each that went wrong. Returns whether none did."""
    numbers = range(NUM_CASES) if cases is None else cases
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with quick_runs(), _silent():
            made_runs.make(folder)
        pieces = [(folder, numbers[first : first + NUM_AT_ONCE]) for first in range(0, len(numbers), NUM_AT_ONCE)]
        outcomes = [outcome for piece in on_all_cores(run_piece, pieces) for outcome in piece]
    print(table(outcomes))
    wrong = [outcome for outcome in outcomes if outcome.problems]
    for outcome in wrong:
        print(outcome)
    return not wrong


def table(outcomes: Sequence[Outcome]) -> str:
    """How many cases of each command there were, how they ended, and how many went wrong."""
    statuses = sorted({outcome.status for outcome in outcomes if outcome.status is not None})
    lines = [f"{'run directories edited':24} {'cases':>6}" + "".join(f"{status:6}" for status in statuses) + "  wrong"]
    for command in (*COMMANDS, "all"):
        own = [outcome for outcome in outcomes if command in (outcome.command, "all")]
        ends = Counter(outcome.status for outcome in own)
        counts = "".join(f"{ends[status]:6}" for status in statuses)
        lines.append(f"{command:24} {len(own):6}{counts} {sum(bool(outcome.problems) for outcome in own):6}")
    return "\n".join([*lines, "by exit status"])


@contextlib.contextmanager
def _silent() -> Iterator[None]:
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        yield


def run_piece(piece: tuple[Path, Sequence[int]]) -> list[Outcome]:
    """Run some cases, by their numbers, of the runs that were made in a folder."""
    folder, numbers = piece
    with quick_runs(), tempfile.TemporaryDirectory(dir=folder) as name:
        _import_all(folder, Path(name))
        return [run_case(folder, Path(name) / str(number), number) for number in numbers]


def _import_all(folder: Path, beside: Path) -> None:
    """Run each command once, so that the forks need to import nothing."""
    for command in COMMANDS:
        scene, _ = _scene(folder, beside / command, command, np.random.default_rng(0))
        with _silent():
            nn_manual(scene.arguments)


def _scene(folder: Path, case: Path, command: str, random: np.random.Generator) -> tuple[Scene, int]:
    """A case without edits, and the exit status that is right for it."""
    made = one_of(random, runs_of(command))
    for name in ("out", "tmp"):
        (case / name).mkdir(parents=True)
    shutil.copytree(folder / "runs" / made.name, case / "run")
    arguments, status = arguments_of(command, made, folder / "data", case / "run", random)
    scene = Scene(case, command, made.name, arguments, random)
    write_outside(scene)
    return scene, status


def run_case(folder: Path, case: Path, number: int) -> Outcome:
    """Run one case in a folder of its own, which is removed."""
    command = COMMANDS[number % len(COMMANDS)]
    scene, right = _scene(folder, case, command, np.random.default_rng((SEED, number)))
    harmless = number // len(COMMANDS) % HARMLESS_EVERY == 0
    _edit_nothing(scene) if harmless else edit(scene)
    data = folder / "data"
    before = digest_of(scene.outside), digest_of(data), _names(case)
    named = [str(data), *_named_in(scene.run), *_named_in(scene.run / BUNDLE)]
    written = [str(case / name) for name in ("run", "out", "tmp")]
    ended = watched(lambda: nn_manual(scene.arguments), case, named, written)
    after = digest_of(scene.outside), digest_of(data), _names(case)
    problems = problems_of(scene, ended, {right} if harmless else statuses(scene, right), str(data))
    if before != after:
        problems.append("what lies beside the run is another")
    shutil.rmtree(case)
    what = f"{scene.name}: {'; '.join(scene.words)}: {' '.join(scene.arguments).replace(str(case), '')[:160]}"
    return Outcome(number, command, what, ended.status, problems)


def _names(case: Path) -> list[str]:
    streams = ("said", "errors", "touched")
    return sorted(path.name for path in case.iterdir() if path.name not in streams)


def _edit_nothing(scene: Scene) -> None:
    """Edit nothing, or make an edit that makes no difference."""
    chance = scene.random.integers(6)
    if chance == 0:
        link = scene.folder / "link"
        link.symlink_to("run")
        scene.arguments = [word.replace(str(scene.run), str(link)) for word in scene.arguments]
        scene.words.append("reached through a link")
    elif chance == 1:
        (scene.run / "notes.txt").write_text("mine\n")
        scene.words.append("a file of the user's own")
    elif chance <= 3:
        move_within(scene, one_of(scene.random, scene.targets()))
    else:
        scene.words.append("nothing is edited")


def _named_in(directory: Path) -> list[str]:
    """What the config in a directory names: files, and the folder of layers. A folder that contains the directory is
    left out: a path that was cut off may name one, and no access inside it would be noticed.
    """
    path, found = directory / CONFIG_FILE, list[str]()
    if path.is_symlink() or not path.is_file():
        return found

    def walk(node: Any) -> None:
        if isinstance(node, str) and node.isprintable() and node.strip("./") and len(node) < 1000:
            paths = [base / node for base in (directory, directory.parent / "out")]
            found.extend(str(path) for path in paths if not directory.resolve().is_relative_to(path.resolve()))
        elif isinstance(node, dict | list):
            for item in node.values() if isinstance(node, dict) else node:
                walk(item)

    with contextlib.suppress(yaml.YAMLError, UnicodeDecodeError, ValueError, RecursionError):
        walk(yaml.safe_load(path.read_bytes()))
    return found


def statuses(scene: Scene, unedited: int) -> set[int]:
    """The exit statuses that are right for an edited run; one of them is that of a run that isn't edited.

    5 is always right: a file is refused. It is the only right status if the edit is known to be wrong. Otherwise 0 is
    right, too: not every edit makes a difference. 2 is right if the edit is in the config, or in what a checkpoint says
    of it, or for `sample` in the characters that a prompt may have. If the command computes numbers, other weights,
    data or settings may make some that are not finite (4). Then `resume` may find a tensor that is always zero, or a
    mismatch that the run once had (3), and `replay` another step (6) or no wrong step (0).
    """
    if scene.is_wrong:
        return {5}
    if scene.command == "plot":
        return {0, 5}
    right = {0, 4, 5}
    checkpoints = {name for name in scene.edited if name.startswith("step-")} | {CHECKPOINTS_DIRECTORY, MANIFEST_FILE}
    if scene.edited & {CONFIG_FILE, *checkpoints} or (scene.command == "sample" and DATA_FILE in scene.edited):
        right |= {2}
    return right | {unedited} | {"resume": {3}, "replay": {3, 6}}.get(scene.command, set())


def problems_of(scene: Scene, ended: Ended, right: set[int], data: str) -> list[str]:
    """Everything that is wrong with the end of a case."""
    changes_first = sorted(ended.touched, key=lambda line: line.startswith(("'reads ", "'lists ")))
    problems = [f"it {line}" for line in changes_first[:4]]
    secrets = [SECRET, *(hashlib.sha256(path.read_bytes()).hexdigest() for path in scene.secrets)]
    if any(secret in ended.said + ended.errors for secret in secrets):
        problems.append("what lies outside is printed")
    if "Traceback" in ended.errors:
        return [*problems, f"a traceback: {_last_of(ended.errors)}"]
    if ended.status is None:
        problems.append(f"didn't end in {SECONDS} s")
    elif ended.status not in right:
        problems.append(f"status {ended.status}, not {' or '.join(map(str, sorted(right)))}: {ended.errors[:300]!r}")
    if "not enough memory" in ended.errors and CONFIG_FILE not in scene.edited:
        problems.append(f"took more memory than is allowed: {ended.errors[:200]!r}")
    lines = ended.errors.splitlines()
    if len(lines) > (MOST_LINES_OF_REPORT if ended.status in (2, 3) else MOST_LINES):
        problems.append(f"{len(lines)} lines on standard error")
    printed = [*ended.errors.split("\n"), *([] if scene.command == "sample" else ended.said.split("\n"))]
    problems += [f"unprintable: {line[:300]!r}" for line in printed if not line.isprintable()][:1]
    problems += [f"a line of {len(line)} characters: {line[:100]!r}" for line in lines if len(line) > LONGEST_LINE][:1]
    if ended.status == 5 and not any(place in ended.errors for place in (f"{scene.folder.name}/", data)):
        problems.append(f"names no file: {ended.errors[:300]!r}")
    return problems


def _last_of(errors: str) -> str:
    """The end of a traceback: where in the package it came from, and the error."""
    places = re.findall(r'File "\S*/(nn_manual/\S+)", line (\d+), in (\S+)', errors)
    place = "{}:{} {}".format(*places[-1]) if places else "?"
    _, _, end = errors.rpartition("\n  File ")
    error = next((line for line in end.splitlines()[1:] if not line.startswith(" ")), "")  # notes come after it
    return f"{place}: {error[:200]!r}"
