"""Functions that run in turns, and wait for each other at the places where they meet."""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from nn_manual.errors import OthersEnded

Result = TypeVar("Result")


class Lockstep:
    """Runs several functions one at a time, each in a thread of its own, in their order.

        lockstep.run([first, second])        # all call `meet` equally often

    A function keeps its turn until it calls `meet` or ends. One function alone runs in the thread of the caller.
    """

    def __init__(self) -> None:
        self._changed, self._here = threading.Condition(), threading.local()
        self._start(1)

    def _start(self, size: int) -> None:
        self._size, self._turn, self._num_ended = size, 0, 0
        self._values = list[Any]()
        self._settled: Any = None
        self._error: BaseException | None = None

    def run(self, functions: Sequence[Callable[[], None]]) -> None:
        """Return when all functions have ended. Raises what one of them raises; the others then end at `meet`."""
        self._start(len(functions))
        if len(functions) == 1:
            functions[0]()
            return
        # A thread begins without the caller's numpy.errstate, which a context carries.
        threads = [
            threading.Thread(target=contextvars.copy_context().run, args=(self._run, number, function), daemon=True)
            for number, function in enumerate(functions)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if self._error is not None:
            raise self._error

    def meet(self, value: Any, settle: Callable[[list[Any]], Result]) -> Result:
        """Wait until all functions have called this, and return what `settle` makes of their values, which are in the
        functions' order. `settle` runs once.
        """
        if self._size == 1:
            return settle([value])
        number: int = self._here.number
        if self._num_ended:
            raise RuntimeError("the slices of a batch run different layers: forward must not depend on values")
        self._values.append(value)
        if number == self._size - 1:
            self._settled, self._values = settle(self._values), []
        self._pass_turn((number + 1) % self._size)
        self._wait_for_turn(number)
        settled: Result = self._settled
        return settled

    def _run(self, number: int, function: Callable[[], None]) -> None:
        self._here.number = number
        try:
            self._wait_for_turn(number)
            function()
            if self._values:
                raise RuntimeError("the slices of a batch run different layers: forward must not depend on values")
            self._num_ended += 1
            self._pass_turn(number + 1)
        except OthersEnded:
            pass
        except BaseException as error:  # whatever it is, the thread of the caller raises it
            with self._changed:
                self._error = error
                self._changed.notify_all()

    def _pass_turn(self, number: int) -> None:
        with self._changed:
            self._turn = number
            self._changed.notify_all()

    def _wait_for_turn(self, number: int) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self._turn == number or self._error is not None)
        if self._error is not None:
            raise OthersEnded
