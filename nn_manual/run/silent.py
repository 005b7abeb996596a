"""What stands in the place of a run's writer, files and bar on the processes that neither write nor show anything."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any, Self

from nn_manual.run.writer import RunWriter
from nn_manual.step.process_group import ProcessGroup
from nn_manual.training.steps import Step


class NoLines:
    """In the place of JsonLines and LedgerLines."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        pass

    def append(self, record: Mapping[str, Any]) -> None:
        """Nothing, as all that follows."""

    def append_step(self, step: int, check: object) -> None:
        """A checked step."""

    def append_mismatch(self, step: int, report: object) -> None:
        """The step that ended the run."""

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Where the file goes on."""

    def flush(self) -> None:
        """Lines that wait."""


class NoBar:
    """In the place of RunBar."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        pass

    def note(self, text: str) -> None:
        """Nothing."""

    def say(self, line: str) -> None:
        """Nothing."""

    def over(self, steps: Iterator[Step], epoch: int) -> Iterator[Step]:  # noqa: ARG002 - RunBar's signature
        """The steps."""
        return steps


class NoWriter:
    """In the place of RunWriter: nothing is written, and nothing said."""

    def lock(self) -> AbstractContextManager[None]:
        """Nothing, as all that follows."""
        return nullcontext()

    def check_new(self) -> None:
        """Whether there can be a directory."""

    def create(self) -> None:
        """The directory."""

    def remove_temporary(self) -> None:
        """What is half written."""

    def write_config(self, *args: object) -> None:
        """What the run is of."""

    def cut_back(self, *args: object) -> None:
        """What a run leaves at its end."""

    def remember(self, group: ProcessGroup) -> None:
        """Where the run is."""

    def say(self, text: str) -> None:
        """A line on standard output."""

    def note(self, text: str) -> None:
        """A line on standard error."""

    def epochs(self, size: int | None) -> NoLines:  # noqa: ARG002 - RunWriter's signature
        """A file that takes no lines."""
        return NoLines()

    def gradients(self, window: int, size: int | None) -> NoLines:  # noqa: ARG002 - as above
        """The same."""
        return NoLines()

    def bar(self, training: object) -> NoBar:  # noqa: ARG002 - as above
        """A bar that isn't shown."""
        return NoBar()

    def note_unproven(self, training: object) -> None:
        """What was never proven."""

    def write_checkpoint(self, *args: object) -> None:
        """A checkpoint."""

    def keep_mismatch(self, *args: object) -> None:
        """A step that differed."""

    def write_stopped(self, summary: Mapping[str, Any]) -> None:
        """The summary of a run that ended early."""

    def finish(self, *args: object) -> dict[str, Any]:  # noqa: ARG002 - as above
        """An empty summary."""
        return {}


def writer_of(directory: Path, group: ProcessGroup) -> RunWriter | NoWriter:
    """Who writes the run directory on this process of a group: the first, and nobody else."""
    return NoWriter() if group.rank else RunWriter(directory)
