"""Who watches the steps of a training: the check at once, or the Prover, which proves many together, later."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Protocol

from nn_manual.arrays import Array
from nn_manual.step.watch import Watch

if TYPE_CHECKING:  # torch is only loaded for a run that is checked
    from nn_manual.check.judge.report import StepCheck
    from nn_manual.check.whole_step.checker import GradientChecker


class Watcher(Protocol):
    """Watches a step while it is made, and compares it."""

    @property
    def watch(self) -> Watch:
        """What the step reports to."""

    def recording(self, input: Array) -> AbstractContextManager[object]:
        """The context in which the step on `input` must run."""

    def compare(self) -> StepCheck:
        """The check of the step that has run. Raises GradientMismatch or NotFiniteError, perhaps of an earlier step."""

    def skip(self) -> None:
        """The step that has run has no loss and nothing to compare."""


class AtOnce:
    """The checker compares each step as soon as it is made."""

    def __init__(self, checker: GradientChecker) -> None:
        self._checker = checker
        #: A checker of slices looks at each of them.
        self.watch = checker if isinstance(checker, Watch) else Watch()

    def recording(self, input: Array) -> AbstractContextManager[object]:  # noqa: ARG002 - as of every Watcher
        """As of every Watcher."""
        return self._checker.recording()

    def compare(self) -> StepCheck:
        """As of every Watcher."""
        return self._checker.compare()

    def skip(self) -> None:
        """As of every Watcher."""
