"""What runs a reader's file: a process of its own, which nothing but its answer leaves."""

from __future__ import annotations

import ast
import faulthandler
import importlib.util
import io
import json
import os
import sys
import traceback
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

from nn_manual import ops
from nn_manual.check.catalogue.inputs import AT_JUMPS
from nn_manual.errors import words_of
from nn_manual.exercises.answer import Answer, Failure
from nn_manual.exercises.autograd import Autograd
from nn_manual.exercises.every_exercise import EXERCISES, every_exercise
from nn_manual.exercises.exercise import Case, Exercise
from nn_manual.exercises.guard import Guard

#: The name of the reader's file as a module: whatever the file is called, it takes no other module's place.
MODULE = "file_of_the_reader"


class Request(NamedTuple):
    """What a process is to run: a file, and of which exercise it is, by its name. An exercise that a teacher has made
    is that of the class in the file itself: then `title` is the name of the class, and `taken_out` are its methods.

    `folder` is where the answer goes. The other numbers are the limits: seconds, and bytes of memory, of what is
    printed, and of each file that is written.
    """

    file: str
    name: str
    folder: str
    title: str = ""
    kind: str = ""
    taken_out: tuple[str, ...] = ()
    seconds: float = 10.0
    memory: int = 4 << 30
    printed: int = 1 << 20

    @property
    def answer(self) -> Path:
        """The file with the answer."""
        return Path(self.folder, "answer")

    @property
    def dump(self) -> Path:
        """The file that says which line ran when the time was over."""
        return Path(self.folder, "dump")


def main() -> None:
    """Wait for a request on standard input, and answer it. The imports are done by then."""
    every_exercise()
    line = sys.stdin.readline()
    if not line:
        return
    request = Request(**json.loads(line))
    _limit(request)
    with request.dump.open("w") as dump:
        faulthandler.enable(dump, all_threads=False)
        faulthandler.dump_traceback_later(request.seconds, exit=True, file=dump)
        answer = run(request).to_bytes()
        faulthandler.cancel_dump_traceback_later()
    request.answer.write_bytes(answer)
    sys.stdout.flush()
    os._exit(0)  # threads of the file may go on


def _limit(request: Request) -> None:
    sys.stdin = io.StringIO()
    sys.stdout = sys.stderr = _Printed(sys.stdout, request.printed)
    sys.dont_write_bytecode = True
    try:
        import resource
    except ImportError:  # Windows has none
        return
    for kind, most in ((resource.RLIMIT_AS, request.memory), (resource.RLIMIT_FSIZE, 64 * request.printed)):
        _, hard = resource.getrlimit(kind)
        resource.setrlimit(kind, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))


class PrintsTooMuch(Exception):  # noqa: N818 - says what happened
    """Raised in the line that prints beyond the limit."""


class _Printed(io.TextIOBase):
    """Standard output up to a limit."""

    def __init__(self, stream: Any, most: int) -> None:
        self._stream, self._left, self._most = stream, most, most

    def write(self, text: str) -> int:
        self._left -= len(text)
        if self._left < 0:
            raise PrintsTooMuch(f"it prints more than {self._most:,} characters")
        self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        self._stream.flush()


def run(request: Request) -> Answer:
    """Import the file, and run what it defines on all cases."""
    file = Path(request.file)
    exercise = None if request.title else every_exercise().exercises[request.name]
    guard = Guard(exercise)
    try:
        module = _imported(file)
    except BaseException as error:  # the file's code may raise anything
        return Answer(problem=failure(error, file))
    own = getattr(module, exercise.title if exercise else request.title, None)
    if exercise is None and isinstance(own, type):
        kind = next(kind for kind in EXERCISES if kind.__name__ == request.kind)
        exercise = EXERCISES[kind](request.name, own, request.taken_out)
    problem = _unfit(exercise, own)
    if exercise is None or problem:
        return Answer(problem=Failure(problem))
    guard.watch(own)
    return _run_cases(exercise, own, file, guard)


def _imported(file: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(MODULE, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[MODULE] = module
    sys.path.append(str(file.parent))
    spec.loader.exec_module(module)
    return module


def _unfit(exercise: Exercise | None, own: Any) -> str:
    """Why what the file defines can't be run, in words; empty where it can."""
    if exercise is None or own is None:
        return f"it has no {exercise.title if exercise else 'class of the exercise'}"
    if problem := exercise.accepts(own):
        return problem
    if isinstance(own, ops.Operation):
        return ""
    for name in exercise.taken_out:
        definer = next(base for base in own.__mro__ if name in vars(base))
        if definer.__module__ != MODULE:
            return f"{exercise.title} has no {name}: write it"
    return ""


def _run_cases(exercise: Exercise, own: Any, file: Path, guard: Guard) -> Answer:
    results: list[Any] = []
    autograd = Autograd(file)
    for case in cases_of(exercise, is_made=exercise.owner is own):
        try:
            with np.errstate(all="ignore"):
                results.append(case.run(own))
        except BaseException as error:
            results.append(failure(error, file))
        autograd.look()
    notes = [*autograd.notes, *guard.changed(ast.parse(file.read_bytes()))]
    return Answer([dict(each) if isinstance(each, dict) else each for each in results], notes=notes)


def cases_of(exercise: Exercise, *, is_made: bool) -> list[Case]:
    """The cases of an exercise. Of one that a teacher has made, without those that depend on its derivative: the
    process that runs the reader's class hasn't the teacher's.
    """
    return [case for case in exercise.cases() if not (is_made and case.kind == AT_JUMPS)]


def failure(error: BaseException, file: Path) -> Failure:
    """An error of the file's code, with the last line of the file that ran."""
    if isinstance(error, SyntaxError) and error.filename == str(file):
        return Failure(f"{type(error).__name__}: {error.msg}", error.lineno or 0)
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(file)]
    words = str(error) if isinstance(error, PrintsTooMuch) else words_of(error)
    if isinstance(error, ValueError) and "read-only" in words:
        words = "it writes into its input, which other code still reads"
    return Failure(words, (lines[-1] or 0) if lines else 0)
