"""Parts of the check that run side by side, each on a thread of its own."""

from __future__ import annotations

import contextvars
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

Part = TypeVar("Part")
Result = TypeVar("Result")


def in_threads(run: Callable[[Part], Result], parts: Sequence[Part]) -> list[Result]:
    """The results of `run` for each part. This thread takes the first part, and there is a new thread for each other
    one. All have ended when this returns or raises: what they read may change then.
    """
    if len(parts) < 2:
        return [run(part) for part in parts]
    with ThreadPoolExecutor(len(parts) - 1) as pool:
        # numpy keeps what it does about infinite numbers in the context.
        others = [pool.submit(contextvars.copy_context().run, run, part) for part in parts[1:]]
        return [run(parts[0]), *(other.result() for other in others)]
