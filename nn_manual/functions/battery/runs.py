"""The rows of runs beside each other: two forwards before their backwards, two backwards, and what a run leaves."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import torch

from nn_manual.check.compare.comparison import CannotCompare
from nn_manual.check.conduct.unchanged import Unchanged
from nn_manual.errors import raise_if_nobodys_fault
from nn_manual.functions.battery.one_object import of_one_object
from nn_manual.functions.battery.one_run import TAKES_NO_OTHERS, back_of, first_taken, forward_of, silently
from nn_manual.functions.battery.other_inputs import (
    on_other_values,
    other_floats,
    other_integers_or_truth_values,
    other_sizes,
)
from nn_manual.functions.battery.trial import Run, Skip, Trial, Wrong, agree
from nn_manual.functions.callables import Forward, by_autograd
from nn_manual.functions.exceptions import naming, raised_by_the_reference
from nn_manual.functions.function_case import FunctionCase
from nn_manual.functions.handwritten import Handwritten
from nn_manual.functions.judged_case import judge
from nn_manual.functions.outputs import BUFFER
from nn_manual.functions.settings import noticed_of
from nn_manual.functions.watched_runs import Between


def two_forwards(trial: Trial) -> Iterator[tuple[str, Run]]:
    """Forward runs on the inputs and on others: other floating values, other integers, and another size. Then the
    backward of each runs, and must belong to its own forward. A module also runs on buffers that an earlier forward
    left: a running mean of zeros hides mistakes.
    """
    yield "first back first", lambda: _first_back_first(trial)
    yield "last back first", lambda: _last_back_first(trial)
    if trial.case.arguments.buffers:
        yield "buffers", lambda: _on_moved_buffers(trial.case)
    if isinstance(trial.function, Handwritten) and trial.function.of_object is not None:
        yield "of one object", lambda: of_one_object(trial.case)


def _first_back_first(trial: Trial) -> None:
    case = trial.case
    for other in _others(trial):
        with _explained(case):
            agree(case, _meanwhile(other, back=False))
        if is_right(other):
            back_of_first = Between(partial(_back_of, case, forward_of(case)))
            with _explained(case):
                agree(replace(other, upstreams=other.upstreams[:1]), back_of_first)


def _others(trial: Trial) -> list[FunctionCase]:
    """Those of the other inputs that the function takes."""
    case = trial.case
    several = (other_floats(case), other_integers_or_truth_values(case), other_sizes(trial))
    found = [other for cases in several for other in first_taken(cases)]
    if not found:
        raise Skip(TAKES_NO_OTHERS)
    return found


def _back_of(case: FunctionCase, first: Forward, _: Forward) -> None:
    back_of(case, first)


def is_right(case: FunctionCase) -> bool:
    """Whether the function takes these values in a run by itself, and agrees with its reference."""
    try:
        return judge(case).agrees
    except Exception as error:  # anyone's function may raise anything
        raise_if_nobodys_fault(error)
        return False


def _last_back_first(trial: Trial) -> None:
    for other in _others(trial):
        with _explained(trial.case):
            agree(trial.case, _meanwhile(other, back=True))


def _on_moved_buffers(case: FunctionCase) -> None:
    try:
        agree(with_moved_buffers(case))
    except (Wrong, CannotCompare) as problem:
        raise Wrong(f"differs in its second forward, on the buffers that the first one left: {problem}") from problem


def with_moved_buffers(case: FunctionCase) -> FunctionCase:
    """The case whose buffers are those that the reference's forward on other values leaves."""
    other, arguments = on_other_values(case), case.arguments
    with raised_by_the_reference():
        left = by_autograd(case.reference, other.arguments, other.leaves(), other.wants()).outputs
    moved = {name: left[f"{BUFFER}{name}"].to(buffer) for name, buffer in arguments.buffers.items()}
    return replace(case, arguments=replace(arguments, buffers=moved))


@contextlib.contextmanager
def _explained(case: FunctionCase) -> Iterator[None]:
    try:
        yield
    except Wrong as wrong:
        words = "differs when forward ran again, on other values, before backward: what backward needs must travel"
        how = "in `saved`, not in a global" if isinstance(case.function, Handwritten) else "on the context"
        raise Wrong(f"{words} {how}; {wrong}") from wrong


def _meanwhile(other: FunctionCase, *, back: bool) -> Between:
    """A run on other inputs, of which the function may not take the backward. Nothing of this run is compared."""

    def run(_: Forward) -> None:
        try:
            with silently():
                ran = forward_of(other)
                if back:
                    back_of(other, ran)
        except Exception as error:  # anyone's function may raise anything
            raise_if_nobodys_fault(error)

    return Between(run)


def retain_graph(trial: Trial) -> Iterator[tuple[str, Run]]:
    """Backward runs twice after one forward, under two gradients of the output, as `backward(retain_graph=True)` and a
    Jacobian allow it. The second is right, and leaves alone what the first returned.
    """
    yield "", lambda: _twice_back(trial.case)


def _twice_back(case: FunctionCase) -> str | None:
    firsts = Unchanged(case.label, {})

    def run_first(ran: Forward) -> None:
        grads = zip(case.floating, back_of(case, ran), strict=True)
        firsts.add({f"grad_{name}": grad.detach().to_dense() for name, grad in grads if grad is not None})

    of_object = isinstance(case.function, Handwritten) and case.function.of_object is not None
    try:
        agree(replace(case, watched=False), Between(run_first, "the second backward after one forward"))
    except Wrong as wrong:
        if of_object and _adds_up(case):
            return "its gradients add up from call to call"
        raise Wrong(f"the second backward after one forward is wrong: {wrong}") from wrong
    except CannotCompare as problem:
        if "saved" in case.habits:
            raise Skip("it writes into what it saved") from problem
        raise
    # An object's gradients belong to its last backward.
    if not of_object and "returned" not in case.habits and (changed := firsts.changed()):
        raise Wrong(f"the second backward after one forward overwrites {changed} of the first")
    return None


def _adds_up(case: FunctionCase) -> bool:
    """Whether the second backward after one forward returns a gradient that is twice as large."""
    ran = forward_of(case)
    first = [grad if grad is None else grad.to_dense().clone() for grad in back_of(case, ran)]
    both = zip(first, back_of(case, ran), strict=True)
    return any(torch.allclose(2 * grad, again) for grad, again in both if grad is not None and again is not None)


def settings(trial: Trial) -> Iterator[tuple[str, Run]]:
    """Global settings stay as they are: torch's default dtype, its number of threads, its seed, and others. A change
    that the function makes only in its first run has been noticed then.
    """
    yield "", lambda: _leaves_settings(trial.case)


def _leaves_settings(case: FunctionCase) -> None:
    function = case.function.forward if isinstance(case.function, Handwritten) else case.function
    with naming(case.label, "a run"):
        noticed = noticed_of(function, lambda: back_of(case, forward_of(case)))
    if noticed:
        raise Wrong(f"it changes {noticed[0]}; the check sets that back after each run, but nobody else does")
