"""What replaces a run's writer, its files and its bar on the processes that neither write nor show anything."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any, Self

from nn_manual.run.event_log import EventLog, check_tensorboard
from nn_manual.run.writer import RunWriter
from nn_manual.step.slices.process_group import ProcessGroup
from nn_manual.trainer.steps import Step


class NoLines:
    """Takes the place of JsonLines and LedgerLines. Its methods do nothing."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        pass

    def append(self, record: Mapping[str, Any]) -> None:
        """See JsonLines."""

    def append_step(self, step: int, check: object) -> None:
        """See LedgerLines."""

    def append_mismatch(self, step: int, report: object) -> None:
        """See LedgerLines."""

    def load_state(self, state: Mapping[str, Any]) -> None:
        """See LedgerLines."""

    def flush(self) -> None:
        """See JsonLines."""


class NoBar:
    """Takes the place of RunBar, and shows nothing."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        pass

    def note(self, text: str) -> None:
        """See RunBar."""

    def note_one_by_one(self, prover: object) -> None:
        """See RunBar."""

    def say(self, line: str) -> None:
        """See RunBar."""

    def say_epoch(self, record: Mapping[str, Any], *, is_best: bool) -> None:
        """See RunBar."""

    def over(self, steps: Iterator[Step], epoch: int) -> Iterator[Step]:  # noqa: ARG002 - RunBar's signature
        """The steps as they are."""
        return steps


class NoWriter:
    """Takes the place of RunWriter. Its methods write nothing and print nothing."""

    def lock(self) -> AbstractContextManager[None]:
        """See RunWriter."""
        return nullcontext()

    def check_new(self) -> None:
        """See RunWriter."""

    def create(self) -> None:
        """See RunWriter."""

    def remove_temporary(self) -> None:
        """See RunWriter."""

    def write_config(self, *args: object) -> None:
        """See RunWriter."""

    def cut_back(self, *args: object) -> None:
        """See RunWriter."""

    def remember(self, group: ProcessGroup) -> None:
        """See RunWriter."""

    def say(self, text: str) -> None:
        """See RunWriter."""

    def note(self, text: str) -> None:
        """See RunWriter."""

    def epochs(self, size: int | None) -> NoLines:  # noqa: ARG002 - RunWriter's signature
        """Lines that are written nowhere."""
        return NoLines()

    def gradients(self, window: int, size: int | None) -> NoLines:  # noqa: ARG002 - as above
        """Lines that are written nowhere."""
        return NoLines()

    def bar(self, training: object) -> NoBar:  # noqa: ARG002 - as above
        """A bar that isn't shown."""
        return NoBar()

    def write_checkpoint(self, *args: object) -> None:
        """See RunWriter."""

    def keep_mismatch(self, *args: object) -> None:
        """See RunWriter."""

    def write_stopped(self, summary: Mapping[str, Any]) -> None:
        """See RunWriter."""

    def finish(self, *args: object) -> dict[str, Any]:  # noqa: ARG002 - as above
        """An empty summary."""
        return {}

    def draw(self) -> None:
        """See RunWriter."""


def writer_of(directory: Path, group: ProcessGroup, *, has_log: bool = False) -> RunWriter | NoWriter:
    """The writer of the run directory on this process: the first process of a group writes, and no other. Every process
    raises ConfigError if there is to be a log and nothing that writes it.
    """
    if has_log:
        check_tensorboard()
    return NoWriter() if group.rank else RunWriter(directory, EventLog(directory) if has_log else None)
