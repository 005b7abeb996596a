"""Parts of the check that run side by side, each on a thread of its own."""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import TypeVar

Part = TypeVar("Part")
Result = TypeVar("Result")


def in_threads(run: Callable[[Part], Result], parts: Sequence[Part]) -> list[Result]:
    """The results of `run` for each part. This thread takes the first part, and there is a new thread for each other
    one, or as many as the system grants: this one takes the rest. All have ended when this returns or raises: what they
    read may change then.
    """
    if len(parts) < 2:
        return [run(part) for part in parts]
    futures: list[Future[Result]] = [Future() for _ in parts]
    threads, left = [], [0]
    for i in range(1, len(parts)):
        # numpy keeps what it does about infinite numbers in the context.
        context = contextvars.copy_context()
        thread = threading.Thread(target=context.run, args=(_fill, futures[i], run, parts[i]))
        try:
            thread.start()
        except RuntimeError:  # no more threads
            left.append(i)
        else:
            threads.append(thread)
    try:
        for i in left:
            futures[i].set_result(run(parts[i]))
    finally:
        for thread in threads:
            thread.join()
    return [future.result() for future in futures]


def _fill(future: Future[Result], run: Callable[[Part], Result], part: Part) -> None:
    """Give a future the result of a part, or what it raises."""
    try:
        future.set_result(run(part))
    except BaseException as error:  # whoever asks for the result raises it
        future.set_exception(error)
