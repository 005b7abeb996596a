"""What a checked step leaves behind."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from nn_manual.arrays import Array
from nn_manual.check.compare.comparison import relative
from nn_manual.check.compare.tolerances import severity
from nn_manual.check.compare.worst import Differences
from nn_manual.check.judge.tensor_table import FIGURES, ROUNDING, figures, in_notebook
from nn_manual.check.step.plan import Plan
from nn_manual.messages import notebook


@dataclass(eq=False, repr=False)
class StepCheck:
    """What a checked step that passed leaves behind: for each quantity of the plan, max|ours - torch| and its scale.

    `rounding` names the tensors that are beyond the tolerance by rounding alone: the judge found their formulas right.
    `not_judged` names those that central differences are too coarse for. Steps may be proven later, together: until
    this one is `proven`, everything but its plan raises RuntimeError.
    """

    plan: Plan
    _found: Differences | None = None
    _not_judged: frozenset[str] = frozenset()

    def __str__(self) -> str:
        """How many tensors there are, and whether the step is proven."""
        tensors = f"{len(self.plan.tensors)} tensors"
        if not self.proven:
            return f"{tensors}, not proven yet"
        rounding = f", {len(self.rounding)} of them but for rounding" if self.rounding else ""
        return f"{tensors} equal torch's{rounding}"

    def __repr__(self) -> str:
        return f"<StepCheck: {self}>"

    def _repr_html_(self) -> str:
        """The same in a notebook, with the figures of each tensor once it is proven."""
        if not self.proven:
            return notebook.page(notebook.words(str(self)))
        columns = zip(self.tensors, self.absolute, self.relative, self.tolerances, self.ulps, strict=True)
        rows = [(name, *figures(*each), ROUNDING if name in self.rounding else "") for name, *each in columns]
        return notebook.page(notebook.verdict(str(self)), in_notebook(rows, ("tensor", *FIGURES, "")))

    def prove(self, found: Differences, not_judged: frozenset[str] = frozenset()) -> None:
        """The step has passed."""
        self._found, self._not_judged = found, not_judged

    @property
    def proven(self) -> bool:
        """Whether the step has been compared with torch's, and has passed."""
        return self._found is not None

    @property
    def found(self) -> Differences:
        """The differences, and the names of the tensors that are off by rounding."""
        if self._found is None:
            raise RuntimeError("this step is not proven yet: it is when its epoch ends, or after trainer.flush()")
        return self._found

    @property
    def absolute(self) -> Array:
        """max|ours - torch| of each tensor."""
        return self.found.absolute

    @property
    def scale(self) -> Array:
        """What it is compared on, max|torch|."""
        return self.found.scale

    @property
    def rounding(self) -> frozenset[str]:
        """The names of the tensors that are off by rounding alone."""
        return self.found.rounding

    @property
    def not_judged(self) -> frozenset[str]:
        """The names of the gradients that differences are too coarse for."""
        return self._not_judged if self.found else frozenset()

    @property
    def tensors(self) -> tuple[str, ...]:
        """The name of each tensor."""
        return self.plan.tensors

    @property
    def tolerances(self) -> Array:
        """The tolerance of each, relative to its scale."""
        return self.plan.tolerances

    @cached_property
    def relative(self) -> Array:
        """The error of each relative to its scale; 0 where both are 0, infinite where only the scale is 0."""
        errors: Array = relative(self.absolute, self.scale)
        return errors

    @cached_property
    def severity(self) -> Array:
        """How near the error of each is to its tolerance."""
        errors: Array = severity(self.relative, self.plan.tolerances)
        return errors

    @property
    def ulps(self) -> Array:
        """The error of each in units of the last place at its scale."""
        with np.errstate(over="ignore", invalid="ignore"):  # of a scale that the dtype can't hold
            errors: Array = self.absolute / np.spacing(self.scale.astype(self.plan.dtype))
        return errors
