"""The command line, nn-manual. Every heavy import waits until a command needs it."""

# PYTHON_ARGCOMPLETE_OK: the shell may run nn-manual to complete its command line.

from __future__ import annotations

import signal
import sys
import traceback
from collections.abc import Sequence
from typing import TextIO

from nn_manual.cli.options import parse
from nn_manual.cli.terminal import going_on_without_a_reader, is_closed, own_streams
from nn_manual.errors import (
    SIGNALS,
    ConfigError,
    DataError,
    FirstSignal,
    Interrupted,
    NNManualError,
    is_from_handler,
    is_from_outside,
    notes_of,
    out_of_memory,
    words_of,
)
from nn_manual.messages.text import in_lines, one_line

#: What a shell reports for a program that ends because its pipe has no reader: 128 plus the signal's number.
BROKEN_PIPE = 141


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command. Returns the exit status: 0 done, 2 usage, config or too little memory, 3 gradient
    mismatch or a tensor that was zero wherever it was compared, 4 not finite, 5 data, 6 a replay that doesn't reproduce
    the recorded step, 7 one of several processes was lost, 129, 130 and 143 for SIGHUP, SIGINT and SIGTERM, 141 if the
    reader of a pipe has gone.

    An error is one or a few lines on standard error, wrapped for a terminal, never a traceback. Bad usage raises
    SystemExit(2), as argparse does.
    """
    options, handler = None, FirstSignal()
    with own_streams() as out:
        try:
            _end_on_signals(handler)
            try:
                options = parse(arguments)
            except SystemExit:  # of --help and --version, too
                out.flush()
                raise
            status = int(options.command(options))
            out.flush()
        except BaseException as error:
            if options is None and isinstance(error, SystemExit):
                raise
            if handler.signum is not None and not isinstance(error, NNManualError | Interrupted):
                error = Interrupted(handler.signum)  # what it was within, such as an import, may end with another error
            message, status = _ending(error, out)
            if message and not getattr(error, "is_told", False):  # else another process reports it
                with going_on_without_a_reader():
                    told = "\n".join([f"nn-manual: {message}", *notes_of(error)])
                    print(in_lines(told, sys.stderr), file=sys.stderr)
    return status


def _ending(error: BaseException, out: TextIO) -> tuple[str, int]:
    """The message about what ended the command, and the exit status. Raises `error` again if it is a defect of the
    package.
    """
    if isinstance(error, NNManualError | Interrupted):
        return str(error), error.exit_status
    if (shortage := out_of_memory(error)) is not None:
        return shortage, ConfigError.exit_status
    if isinstance(error, BrokenPipeError):
        return "", BROKEN_PIPE
    is_handlers = is_from_handler(error)  # one that the user's code has set
    # Errors of files have become DataErrors: this is one of standard output, or its folder was removed under a process.
    if isinstance(error, OSError) and not is_handlers:
        nameless = "the current folder" if isinstance(error, FileNotFoundError) else "standard output"
        return one_line(f"{error.filename or nameless}: {error.strerror or error}"), DataError.exit_status
    if isinstance(error, ValueError) and is_closed(out):
        return "standard output was closed by what ran here", DataError.exit_status
    if isinstance(error, Exception) and not is_handlers:
        raise error
    if isinstance(error, KeyboardInterrupt) and is_from_outside(error):
        return _ending(Interrupted(signal.SIGINT), out)
    file, line, *_ = traceback.extract_tb(error.__traceback__)[-1]
    return one_line(f"{file}:{line}: {words_of(error)}"), ConfigError.exit_status


def _end_on_signals(handler: FirstSignal) -> None:
    """Let the first signal end the command in order, and a second one end it at once."""
    for signum in SIGNALS:
        if signal.getsignal(signum) is not signal.SIG_IGN:  # as nohup has it
            signal.signal(signum, handler)
