"""The curves of metrics.jsonl for TensorBoard, in event files."""

from __future__ import annotations

import io
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from nn_manual.errors import ConfigError, DataError
from nn_manual.run_directory import files, metrics
from nn_manual.run_directory.within import within

#: The folder in a run directory, and the file in it: TensorBoard looks for "tfevents" in the names of files.
LOG_FOLDER = "tensorboard"
EVENTS_FILE = "events.out.tfevents.nn_manual"


def check_tensorboard() -> None:
    """Raise ConfigError if the package tensorboard, which writes the events, isn't installed."""
    try:
        from tensorboard.compat.proto import event_pb2  # noqa: F401 - a folder of the user's may have the package's name
    except ImportError:
        message = (
            f"--log tensorboard, or a run with the folder {LOG_FOLDER}, needs: pip install 'nn_manual[tensorboard]'"
        )
        raise ConfigError(message) from None


class EventLog:
    """Listens where metrics.jsonl is written: each number of an epoch's line becomes a point at the line's step, under
    the name that it has there. A run that goes on writes the events of all its epochs again, and goes on behind them:
    so no step is there twice, and none is missing.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    @staticmethod
    def is_in(directory: Path) -> bool:
        """Whether a run has a log: then it goes on with it."""
        return within(directory, LOG_FOLDER).is_dir()

    def make_folder(self) -> None:
        """Make the folder. Raises DataError where the system refuses, and where something else has the file's name."""
        folder, path = (within(self.directory, LOG_FOLDER, *name) for name in ((), (EVENTS_FILE,)))
        try:
            folder.mkdir(exist_ok=True)
        except OSError as error:
            raise DataError(f"{folder}: can't be made: {error.strerror}") from error
        if path.exists() and not path.is_file():
            raise DataError(f"{path}: is no file, so the log can't be written")

    def begin(self) -> None:
        """Write the epochs that metrics.jsonl has. Raises DataError where the system refuses."""
        self.make_folder()
        files.remove_temporary(within(self.directory, LOG_FOLDER))
        columns = metrics.read_metrics(self.directory)
        epochs = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
        now = time.time()
        # As if the run had never paused: TensorBoard's axes of time then have the run's seconds.
        events = [_event(epoch, now + epoch["seconds"] - epochs[-1]["seconds"]) for epoch in epochs]
        self._write(_records([_version(now), *events]))

    def _write(self, content: bytes) -> None:
        """Replace the file's content. A TensorBoard that shows the run has the file open and reads on from where it is:
        so it stays the same file. That fits, as the events of an epoch always have the same length.
        """
        path = within(self.directory, LOG_FOLDER, EVENTS_FILE)
        try:
            if not path.exists() or path.stat().st_nlink > 1:  # after `cp -al`, it is also the file of another run
                files.write_atomically(path, content)
                return
            with path.open("r+b") as file:
                file.write(content)
                file.truncate()
        except OSError as error:
            raise DataError(f"{path}: can't be written: {error.strerror}") from error

    def add(self, record: Mapping[str, Any]) -> None:
        """Add an epoch, as metrics.jsonl has it. Raises DataError where the system refuses."""
        path = within(self.directory, LOG_FOLDER, EVENTS_FILE)
        try:
            with path.open("ab") as file:
                file.write(_records([_event(record, time.time())]))
        except OSError as error:
            raise DataError(f"{path}: can't be written: {error.strerror}") from error


def _version(now: float) -> Any:
    """What a file begins with."""
    from tensorboard.compat.proto.event_pb2 import Event

    return Event(wall_time=now, file_version="brain.Event:2")


def _event(record: Mapping[str, Any], wall_time: float) -> Any:
    from tensorboard.compat.proto.event_pb2 import Event
    from tensorboard.compat.proto.summary_pb2 import Summary

    values = [Summary.Value(tag=name, simple_value=value) for name, value in record.items() if name != "step"]
    return Event(wall_time=wall_time, step=record["step"], summary=Summary(value=values))


def _records(events: Iterable[Any]) -> bytes:
    """The events as a file has them: each with its length, and with sums by which a damage is seen."""
    from tensorboard.summary.writer.record_writer import RecordWriter

    content = io.BytesIO()
    for event in events:
        RecordWriter(content).write(event.SerializeToString())
    return content.getvalue()
