"""The rows in which some of the inputs require a gradient."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace

from nn_manual.functions.battery.trial import Run, Skip, Trial, agree
from nn_manual.functions.callables import by_autograd
from nn_manual.functions.function_report import NOT_BY_AUTOGRAD


def requires_grad(trial: Trial) -> Iterator[tuple[str, Run]]:
    """Each floating input alone requires a gradient, then all but each, and each two of four: of up to four inputs,
    every choice is tried. All do in the comparison of the values.
    """
    floating = trial.case.floating
    subsets = {f"{name} alone": frozenset({name}) for name in floating if len(floating) > 1}
    if len(floating) > 2:  # of two inputs, all but one is the other alone
        subsets |= {f"all but {name}": frozenset(floating) - {name} for name in floating}
    if len(floating) == 4:  # of fewer, the rows above are all choices; of more, the choices are many
        subsets |= {f"{one} and {other}": frozenset({one, other}) for one, other in itertools.combinations(floating, 2)}
    for name, wanted in subsets.items():
        yield name, lambda wanted=wanted: _subset(trial, wanted)  # type: ignore[misc] # a default


def _subset(trial: Trial, wanted: frozenset[str]) -> None:
    if trial.is_pair:
        raise Skip(NOT_BY_AUTOGRAD)
    case = replace(trial.case, wanted=wanted)
    theirs = by_autograd(case.reference, case.arguments, case.leaves(), case.wants())
    if not any(output.requires_grad for output in theirs.outputs.values()):
        raise Skip("nothing in the reference depends on these inputs")
    agree(case)
