"""Signals that ask a run to stop: it finishes its step, writes a checkpoint, and ends."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from nn_manual.errors import SIGNALS, FirstSignal, end_at_once


class StopRequest:
    """Whether a signal has asked to stop: `signum` is its number, None before."""

    signum: int | None = None


@contextmanager
def stop_request() -> Iterator[StopRequest]:
    """The context in which the first of SIGNALS only asks to stop, and a second one ends the process at once. A signal
    that was ignored, as under nohup, is still ignored. One that came before, and whose error was dropped where it came,
    counts. Outside of the main thread, nothing changes.
    """
    request = StopRequest()

    def ask(signum: int, frame: FrameType | None) -> None:  # noqa: ARG001 - a signal handler's signature
        if request.signum is not None:
            end_at_once(signum)
        request.signum = signum

    in_main_thread = threading.current_thread() is threading.main_thread()
    handlers = {signum: signal.getsignal(signum) for signum in SIGNALS} if in_main_thread else {}
    before = {signum: handler for signum, handler in handlers.items() if handler is not signal.SIG_IGN}
    try:
        for signum, handler in before.items():
            signal.signal(signum, ask)
            if isinstance(handler, FirstSignal):
                request.signum = handler.signum
        yield request
    finally:
        for signum, handler in before.items():
            signal.signal(signum, handler)
