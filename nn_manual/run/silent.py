"""What stands in the place of a run's files and of its bar on the processes that neither write nor show anything."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Self

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
