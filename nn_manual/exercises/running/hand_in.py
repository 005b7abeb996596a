"""What runs a reader's file: a process of its own, which nothing but its answer leaves."""

from __future__ import annotations

import ast
import faulthandler
import importlib.util
import io
import json
import os
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from nn_manual.exercises.kinds.every_exercise import EXERCISES, every_exercise
from nn_manual.exercises.kinds.exercise import Exercise, NotASolution
from nn_manual.exercises.running.answer import Answer, Failure
from nn_manual.exercises.running.autograd import Autograd
from nn_manual.exercises.running.guard import Guard
from nn_manual.exercises.running.jacobians import first_wrong, why_none
from nn_manual.exercises.running.memory import added
from nn_manual.exercises.running.request import MARK, Request
from nn_manual.exercises.running.solving import cases_of, failure, results_of, unfit
from nn_manual.exercises.running.unused import unused_methods

#: The name of the reader's file as a module: whatever the file is called, it takes no other module's place.
MODULE = "file_of_the_reader"


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
    sys.stdin = _NoInput()
    sys.breakpointhook = _no_debugger
    sys.stdout = sys.stderr = _Printed(sys.stdout, request.printed)
    sys.dont_write_bytecode = True
    if sys.platform == "win32":  # it has no such limits
        return
    import resource

    for kind, most in ((resource.RLIMIT_DATA, request.memory), (resource.RLIMIT_FSIZE, 64 * request.printed)):
        _, hard = resource.getrlimit(kind)
        resource.setrlimit(kind, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))


class _NoInput(io.TextIOBase):
    """Standard input, which says that there is none."""

    def read(self, size: int | None = -1, /) -> str:  # noqa: ARG002 - as files have it
        raise NotASolution("it reads standard input, and there is none")

    def readline(self, size: int = -1, /) -> str:  # type: ignore[override]  # typeshed has the one of bytes
        return self.read(size)


def _no_debugger(*_: Any, **__: Any) -> None:
    raise NotASolution("breakpoint() needs standard input, and there is none: use print")


class _Printed(io.TextIOBase):
    """Standard output up to a limit."""

    def __init__(self, stream: Any, most: int) -> None:
        self._stream, self._left, self._most = stream, most, most

    def write(self, text: str) -> int:
        self._left -= len(text)
        if self._left < 0:
            raise NotASolution(f"it prints more than {self._most:,} characters")
        self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        self._stream.flush()

    def begin(self, case: int) -> None:
        """Mark what is printed from now on as that of a case."""
        self._stream.write(f"{MARK}{case}\n")


def run(request: Request) -> Answer:
    """Import the file, and run what it defines on all cases."""
    file = Path(request.file)
    exercise = None if request.title else every_exercise().exercises[request.name]
    guard = Guard(exercise)
    try:
        module = _imported(file)
    except BaseException as error:  # the file's code may raise anything
        return Answer(problem=failure(error, str(file)))
    own = getattr(module, exercise.title if exercise else request.title, None)
    if exercise is None and isinstance(own, type):
        kind = next(kind for kind in EXERCISES if kind.__name__ == request.kind)
        exercise = EXERCISES[kind](request.name, own, request.taken_out)
    if exercise is None or own is None:
        return Answer(problem=Failure(f"it has no class {exercise.title if exercise else request.title}"))
    if problem := unfit(exercise, own):
        return Answer(problem=Failure(problem))
    guard.watch(own)
    if request.jacobian_of:
        cases, wrong = cases_of(exercise, is_made=False), request.jacobian_of
        found = first_wrong(exercise, cases, own, wrong)
        if found is None:
            return Answer(problem=Failure(why_none(exercise, cases, own, wrong)))
        return Answer([{"case": np.array(found.case), "jacobian": found.jacobian}])
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


def _run_cases(exercise: Exercise, own: Any, file: Path, guard: Guard) -> Answer:
    autograd = Autograd(file)

    def look(case: int) -> None:
        autograd.look()
        if isinstance(sys.stdout, _Printed):
            sys.stdout.begin(case)

    with unused_methods(exercise, own) as unused:
        results = results_of(cases_of(exercise, is_made=exercise.owner is own), own, str(file), look)
    tree = ast.parse(file.read_bytes())
    notes = [*autograd.notes, *guard.changed(tree), *added(tree, results)]
    return Answer(results, notes=notes, unused=unused)
