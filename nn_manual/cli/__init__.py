"""The command line: nn-manual. Every heavy import waits until a command needs it."""

from __future__ import annotations

import signal
import sys
from collections.abc import Sequence
from types import FrameType

from nn_manual.cli.options import parse
from nn_manual.cli.terminal import going_on_without_a_reader, open_standard_streams
from nn_manual.errors import SIGNALS, ConfigError, DataError, Interrupted, NNManualError, end_at_once, out_of_memory
from nn_manual.messages import one_line

#: What a shell reports for a program that the end of a pipe ended: 128 plus the signal's number.
BROKEN_PIPE = 141


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command. Returns the exit status: 0 done, 2 usage, config or too little memory, 3 gradient
    mismatch or a tensor that was zero wherever it was compared, 4 not finite, 5 data, 6 a replay that doesn't reproduce
    the recorded step, 7 one of several processes that was lost, 129, 130 and 143 for SIGHUP, SIGINT and SIGTERM, 141 if
    the reader of a pipe has gone.

    An error is one or a few lines on standard error, never a traceback. Bad usage raises SystemExit(2), as argparse
    does.
    """
    open_standard_streams()
    try:
        _end_on_signals()
        options = parse(arguments)
        status = int(options.command(options))
        sys.stdout.flush()
    except NNManualError as error:
        return _end(error, str(error), error.exit_status)
    except Interrupted as end:
        return _end(end, str(end), end.exit_status)
    except (MemoryError, OSError, RuntimeError, ImportError) as error:
        if (shortage := out_of_memory(error)) is not None:
            return _end(error, shortage, ConfigError.exit_status)
        if not isinstance(error, OSError):
            raise
        # The errors of files have become DataErrors: this is one of standard output.
        sys.stdout = None  # keeps Python from writing again, and failing again, at exit
        if isinstance(error, BrokenPipeError):
            return BROKEN_PIPE
        return _end(error, f"{error.filename or 'standard output'}: {error.strerror or error}", DataError.exit_status)
    except ValueError as error:
        if sys.stdout is None or not sys.stdout.closed:
            raise
        sys.stdout = None  # as above
        return _end(error, "standard output was closed by what ran here", DataError.exit_status)
    return status


def _end(error: BaseException, message: str, status: int) -> int:
    """Say what ended the command, with the notes that were added on the way, unless another process does; returns
    `status`.
    """
    if getattr(error, "is_told", False):
        return status
    lines = [f"nn-manual: {message}", *map(one_line, getattr(error, "__notes__", []))]
    with going_on_without_a_reader():
        print("\n".join(lines), file=sys.stderr)
    return status


def _end_on_signals() -> None:
    """Have the first signal end the command in order, and a second one at once."""
    signals_before = list[int]()

    def interrupt(signum: int, frame: FrameType | None) -> None:  # noqa: ARG001 - a signal handler's signature
        signals_before.append(signum)
        if len(signals_before) > 1:
            end_at_once(signum)
        raise Interrupted(signum)

    for signum in SIGNALS:
        if signal.getsignal(signum) is not signal.SIG_IGN:  # as nohup has it
            signal.signal(signum, interrupt)
