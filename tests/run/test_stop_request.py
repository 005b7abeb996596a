"""A signal that asks a run to stop, also where its error was dropped."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import suppress

import pytest

from nn_manual import cli
from nn_manual.errors import SIGNALS, FirstSignal, Interrupted
from nn_manual.run.stop_request import stop_request


@pytest.fixture
def handlers() -> Iterator[None]:
    """The handlers of the command line, for one test."""
    before = {signum: signal.getsignal(signum) for signum in SIGNALS}
    cli._end_on_signals(FirstSignal())
    yield
    for signum, handler in before.items():
        signal.signal(signum, handler)


@pytest.mark.usefixtures("handlers")
def test_a_signal_only_asks() -> None:
    with stop_request() as request:
        assert request.signum is None
        signal.raise_signal(signal.SIGTERM)
        assert request.signum == signal.SIGTERM


@pytest.mark.usefixtures("handlers")
def test_one_that_came_while_the_program_was_loaded_counts() -> None:
    """A destructor, and some modules that are imported, drop every error: the run would never end."""
    with suppress(Interrupted):
        signal.raise_signal(signal.SIGTERM)
    with stop_request() as request:
        assert request.signum == signal.SIGTERM
