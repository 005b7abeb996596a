"""The rows of a verdict: how each tensor does, in words."""

from __future__ import annotations

from dataclasses import dataclass

from nn_manual.messages.text import counted

RIGHT, PARTLY, WRONG = "right", "right where it was reached", "WRONG"
MISSING, NEVER, UNKNOWN, FAILS = "not written yet", "not a number", "not reached", "FAILS"


@dataclass(frozen=True)
class Row:
    """A tensor: its name, whether it is right, of how many inputs it is asked, on how many of them it is wrong, and on
    how many the code failed before it was there. `fails` says that the failure is in the code of this tensor.
    """

    name: str
    state: str
    num_asked: int = 0
    num_wrong: int = 0
    num_failed: int = 0
    fails: bool = False

    @property
    def words(self) -> str:
        """The state for a reader."""
        if self.state not in (WRONG, PARTLY, UNKNOWN) or not self.num_asked:
            return self.state
        told = [f"{WRONG} on {self._of(self.num_wrong)}"] if self.state == WRONG else []
        if self.num_failed:
            number = f"{self.num_failed}" if told else self._of(self.num_failed)
            told.append(f"{FAILS if self.fails else UNKNOWN} on {number}")
        if self.state == PARTLY:
            told.append("right on the others")
        return ", ".join(told)

    def _of(self, number: int) -> str:
        count = "all" if number == self.num_asked else f"{number} of"
        return f"{count} {counted(self.num_asked, 'input')}"
