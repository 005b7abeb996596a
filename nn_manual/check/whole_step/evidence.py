"""What the compared steps of a training have shown of its tensors, and what none of them has."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from nn_manual.check.compare.worst import Differences
from nn_manual.check.judge.vacuous import not_judged, zero_everywhere, zero_in_theory
from nn_manual.check.step.plan import Plan
from nn_manual.check.step.recording import Recording
from nn_manual.check.twin.by_differences import Finding
from nn_manual.model import Sequential


class Evidence:
    """What is kept over all compared steps of one model; a training that goes on takes it along."""

    def __init__(self) -> None:
        #: The positions in the plan of the quantities that were not zero in some compared step.
        self._not_zero: set[int] = set()
        #: What differences found in the last compared step, and the names of what they judged in any step.
        self._findings: Mapping[str, Finding] = {}
        self._judged: set[str] = set()
        #: Whether a step was compared here, and what `vacuous` said where the state was taken.
        self._has_compared, self._vacuous_before = False, tuple[str, ...]()
        #: Whether no other step can show more.
        self.is_complete = False
        #: What `zero_in_theory` has found. It depends on the formulas alone: no step changes it.
        self._zero_in_theory: tuple[str, ...] | None = None

    def add(self, found: Differences) -> None:
        """A step was compared, and has passed."""
        self._not_zero.update(found.scale.nonzero()[0].tolist())
        self._has_compared, self.is_complete = True, len(self._not_zero) >= len(found.scale)

    def add_findings(self, findings: Mapping[str, Finding]) -> frozenset[str]:
        """Add what differences found in this step; returns the names of the gradients that they are too coarse for."""
        self._findings = findings
        too_coarse = frozenset(name for name, finding in findings.items() if finding.error)
        self._judged |= findings.keys() - too_coarse
        return too_coarse

    def vacuous(self, model: Sequential, recorded: Recording, plan_of_last: Callable[[], Plan]) -> tuple[str, ...]:
        """A sentence for each tensor that was zero everywhere in all compared steps: a wrong formula would have agreed,
        too. The last compared step is recorded, and has this plan.
        """
        if not self._has_compared:  # a run that went on, and has no step left to be compared
            return self._vacuous_before
        plan = plan_of_last()
        compared = [*plan.forward, *plan.backward]
        zero = [quantity for i, quantity in enumerate(compared) if i not in self._not_zero]
        never = {name: finding for name, finding in self._findings.items() if name not in self._judged}
        return (*not_judged(plan, never), *zero_everywhere(model, recorded, plan, zero))

    def zero_in_theory(
        self, model: Sequential, recorded: Recording, plan_of_last: Callable[[], Plan]
    ) -> tuple[str, ...]:
        """A sentence for each gradient that is rounding alone in every step: see `vacuous.zero_in_theory`."""
        if self._zero_in_theory is None and self._has_compared:
            self._zero_in_theory = zero_in_theory(model, recorded, plan_of_last())
        return self._zero_in_theory or ()

    def state(self) -> dict[str, Any]:
        """What is known, as JSON has it."""
        known = self._zero_in_theory
        zero_in_theory = None if known is None else list(known)
        return {"not_zero": sorted(self._not_zero), "judged": sorted(self._judged), "zero_in_theory": zero_in_theory}

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Go on from what `state` returned, and from what was unproven then."""
        self._not_zero, self._judged = set(state["not_zero"]), set(state["judged"])
        self._vacuous_before = tuple(state["unproven"])
        known = state.get("zero_in_theory")  # older runs don't say
        self._zero_in_theory = None if known is None else tuple(known)
