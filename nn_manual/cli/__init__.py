"""The command line: nn-manual. Every heavy import waits until a command needs it."""

from __future__ import annotations

import signal
import sys
from collections.abc import Sequence
from types import FrameType
from typing import NoReturn

from nn_manual.cli.options import parse
from nn_manual.errors import ConfigError, DataError, NNManualError

#: What a shell reports for a program that a signal ended: 128 plus the signal's number.
INTERRUPTED, BROKEN_PIPE, TERMINATED = 130, 141, 143


class _Terminated(KeyboardInterrupt):
    """SIGTERM, which ends a run as Ctrl-C does: whatever is half-written is cleaned up on the way out."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command. Returns the exit status: 0 done, 2 usage or config, 3 gradient mismatch or a tensor that was
    zero wherever it was compared, 4 not finite, 5 data, 6 a replay that doesn't reproduce the recorded step, 130 and
    143 for SIGINT and SIGTERM, 141 if the reader of a pipe has gone.

    An error is one or a few lines on standard error, never a traceback. Bad usage raises SystemExit(2), as argparse
    does.
    """
    signal.signal(signal.SIGTERM, _terminate)
    options = parse(arguments)
    try:
        status = int(options.command(options))
        sys.stdout.flush()
    except NNManualError as error:
        return _end(error, str(error), error.exit_status)
    except _Terminated as end:
        return _end(end, "terminated", TERMINATED)
    except KeyboardInterrupt as end:
        return _end(end, "interrupted", INTERRUPTED)
    except MemoryError as error:
        return _end(error, f"not enough memory: {error}", ConfigError.exit_status)
    except OSError as error:  # the errors of files have become DataErrors: this is one of standard output
        sys.stdout = None  # keeps Python from writing again, and failing again, at exit
        if isinstance(error, BrokenPipeError):
            return BROKEN_PIPE
        return _end(error, f"{error.filename or 'standard output'}: {error.strerror or error}", DataError.exit_status)
    return status


def _end(error: BaseException, message: str, status: int) -> int:
    """Say what ended the command, with the notes that were added on the way; returns `status`."""
    print("\n".join([f"nn-manual: {message}", *getattr(error, "__notes__", [])]), file=sys.stderr)
    return status


def _terminate(signum: int, frame: FrameType | None) -> NoReturn:  # noqa: ARG001 - a signal handler's signature
    raise _Terminated
