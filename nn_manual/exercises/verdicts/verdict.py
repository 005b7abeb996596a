"""The verdict on a reader's code, as a screen of a terminal and as a table of a notebook."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from nn_manual.exercises.files.statement import OUTPUTS
from nn_manual.exercises.verdicts.rows import RIGHT, WRONG, Row
from nn_manual.messages import notebook
from nn_manual.messages.text import counted, one_line, wrapped
from nn_manual.plotting.jacobians import Jacobians, draw_jacobians
from nn_manual.plotting.saving import rendered

#: What is said in the place of "Everything is right.".
OF_AUTOGRAD = "The numbers are right, and torch's autograd made them: derive the gradient yourself."


@dataclass(frozen=True)
class Verdict:
    """How a file's solution of an exercise does: `str()` is a screen for a terminal, a notebook shows a table.

    `explanation` has the lines about the first wrong tensor, or about what ended the code; `notes` are told beside it.
    `jacobians`, of the first wrong gradient, are a notebook's picture. `asks_autograd` says that torch's autograd ran,
    and `case` is the number of the input that the explanation shows.
    """

    file: str
    title: str
    num_inputs: int
    rows: Sequence[Row]
    explanation: Sequence[str]
    notes: Sequence[str] = ()
    missing: Sequence[str] = ()
    jacobians: Jacobians | None = None
    asks_autograd: bool = False
    case: int = 0

    @property
    def solved(self) -> bool:
        """Whether everything is right, and the reader has derived it."""
        return self.passed and not self.asks_autograd

    @property
    def passed(self) -> bool:
        """Whether everything is right."""
        return bool(self.rows) and not self.explanation and all(row.state == RIGHT for row in self.rows)

    @property
    def asked(self) -> Sequence[Row]:
        """The rows that the reader's code answers for: without what forward gives, unless there is nothing else."""
        return [row for row in self.rows if row.name not in OUTPUTS] or self.rows

    def __bool__(self) -> bool:
        """Whether everything is right."""
        return self.passed

    @property
    def first_wrong(self) -> str:
        """The name of the first wrong gradient; empty where none is wrong."""
        return next((row.name for row in self.rows if row.state == WRONG and row.name.startswith("grad_")), "")

    @property
    def first_words(self) -> str:
        """The verdict in one line."""
        if self.passed:
            return f"right: {counted(len(self.rows), 'tensor')} on {counted(self.num_inputs, 'input')}"
        if self.explanation:
            return self.explanation[0]
        return f"not written yet: {', '.join(self.missing)}"

    def __str__(self) -> str:
        lines = [f"{self.title} in {one_line(self.file)}, {counted(self.num_inputs, 'input')}"]
        width = max((len(row.name) for row in self.rows), default=0)
        lines += [f"  {row.name:<{width}}  {row.words}" for row in self.rows]
        right = OF_AUTOGRAD if self.asks_autograd else "Everything is right."
        said = self.explanation or [right if self.passed else f"{self.first_words}."]
        return "\n".join([*lines, *(part for text in [*said, *self.notes] for part in wrapped(one_line(text)))])

    def _repr_html_(self) -> str:
        rows = (notebook.Row((row.name, row.words), row.state != RIGHT) for row in self.rows)
        said = map(notebook.words, [*self.explanation[1:], *self.notes])
        head = notebook.verdict(f"{self.title}: {self.first_words}", is_wrong=not self.passed)
        return notebook.page(head, notebook.table(("tensor", ""), rows, "<<"), *said, *self._picture())

    def _picture(self) -> Iterator[str]:
        if self.jacobians is not None:
            png = rendered(partial(draw_jacobians, self.jacobians), ".png")
            yield notebook.picture(png, f"the Jacobian of {self.first_wrong}, yours and the true one")
