"""Comparisons that agree and prove nothing.

One rule for all: a tensor that is zero in all that was compared, though it need not be, is not proven, and what is not
proven doesn't pass. `nn-manual check` compares one batch, the catalogue and the pytest plugin many kinds of input, and
training each checked step. So a net whose last layer starts with zeros fails the check of its first batch, and passes
in training, where the second step has other weights. A gradient that differences could never judge isn't proven either.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import torch

from nn_manual.check.comparison import Quantity
from nn_manual.check.step.plan import Plan
from nn_manual.check.step.proof import Proof, beside_torch
from nn_manual.check.step.recording import Recording
from nn_manual.check.tolerances import MARGIN
from nn_manual.check.twin.differences import Finding
from nn_manual.check.twin.model import Twin
from nn_manual.check.verdict.rounding import eps_of
from nn_manual.model import Sequential

#: A single unit behind a kink is zero in half of the draws: in all of so many, once in 256 times.
NUM_DRAWS = 8


def not_judged(plan: Plan, findings: Mapping[str, Finding]) -> Iterator[str]:
    """A sentence for each gradient that central differences are too coarse to judge."""
    for quantity in plan.backward:
        finding = findings.get(quantity.name)
        if finding is not None and finding.error:
            yield (
                f"{quantity.layer}: differences can't judge {quantity.name}, their error is {finding.error:.1g} of it; "
                "give the layer a reference in torch"
            )


def at_kinks(findings: Mapping[str, Finding]) -> Iterator[str]:
    """A sentence for each gradient that is right because a kink leaves a choice."""
    for name, finding in findings.items():
        if finding.num_kinks:
            yield (
                f"{name}: {finding.num_kinks} of {finding.reference.size} positions are at a kink, where every slope "
                "between those left and right passes"
            )


def vacuous(model: Sequential, step: Proof) -> Iterator[str]:
    """A sentence for each comparison of a step that could hardly have failed.

    Those are gradients that come of a constant upstream gradient, under which a lost mean or softmax can't be seen;
    and values that are zero everywhere in torch: a wrong factor, sign or index passes.
    """
    yield from not_judged(step.plan, step.findings)
    for calls in step.recorded.layers:
        grad_output = calls.grad_output
        if grad_output is not None and grad_output.size > 1 and grad_output.any() and np.ptp(grad_output) == 0:
            yield f"{calls.label}: its grad_output is {grad_output.flat[0]:.6g} everywhere"
    zero = [pair.quantity for pair in step.pairs if not pair.reference.any()]
    yield from zero_everywhere(model, step.recorded, step.plan, zero)


def zero_everywhere(model: Sequential, recorded: Recording, plan: Plan, zero: list[Quantity]) -> Iterator[str]:
    """A sentence for each of the quantities in `zero`, which were zero in all that was compared. A formula that gives
    zero for random inputs, parameters and targets, too, is left out: zero is what it must give.
    """
    if zero:
        not_always = _not_always_zero(model, recorded, plan)
        for quantity in zero:
            if quantity.name in not_always:
                yield f"{quantity.layer}: {quantity.name} is zero everywhere"


def _not_always_zero(model: Sequential, recorded: Recording, plan: Plan) -> set[str]:
    """The names of the quantities that torch finds other than zero when every number is drawn at random, in float64.
    What is left of terms that cancel is rounding there, far below what float32 can show, and counts as zero.
    """
    generator, names = torch.Generator().manual_seed(0), set()

    def draw(like: torch.Tensor) -> torch.Tensor:
        if not like.is_floating_point():
            return like
        return torch.randn(like.shape, generator=generator, dtype=like.dtype)

    twin = Twin(model, recorded.loss.loss, np.float64)
    for _ in range(NUM_DRAWS):
        twin.param[...] = draw(torch.from_numpy(twin.param)).numpy()
        both, _ = beside_torch(twin, recorded, plan, draw)
        magnitudes = [float(pair.reference.abs().max()) for pair in both]
        rounding = MARGIN * eps_of(np.dtype(np.float32)) * max(magnitudes)
        names |= {pair.quantity.name for pair, magnitude in zip(both, magnitudes, strict=True) if magnitude > rounding}
    return names
