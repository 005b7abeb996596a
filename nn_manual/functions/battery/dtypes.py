"""The rows of the other dtypes, and of the full size in each dtype."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from nn_manual.check.compare.comparison import CannotCompare
from nn_manual.errors import raise_if_nobodys_fault
from nn_manual.functions.battery.dimensions import few_sizes
from nn_manual.functions.battery.grad_output import grad_output
from nn_manual.functions.battery.layouts_and_kinds import kinds, layouts
from nn_manual.functions.battery.lengths import Choice
from nn_manual.functions.battery.trial import Dtype, Run, Skip, Trial, Wrong, agree
from nn_manual.functions.function_case import FunctionCase
from nn_manual.functions.judged_case import judge

#: The families that run in each of the other dtypes, too: a kernel has code of its own for each.
IN_EACH = {"grad_output": grad_output, "inputs": layouts, "kinds": kinds, "sizes": few_sizes}

#: What is wrong in a dtype that nobody named, as a fraction of the largest value: far more than rounding in float32.
FAR_OFF = 0.02


def dtype(trial: Trial) -> Iterator[tuple[str, Run]]:
    """The other dtypes, on the inputs as they are, in other layouts, with other values and in a few other sizes. In 16
    bits the distance to the reference in float64 is judged, beside the reference's own distance. If nobody named a
    dtype, what gets float32 is also tried in float64, where a kernel may take another path. The other way round is left
    out: what looks for a root to 12 digits never ends in float32.
    """
    for name in trial.dtypes[1:]:
        yield from _in_one(trial, name, _called(name))
    if trial.dtypes == (None,) and trial.case.is_in_float32:
        yield "float64", lambda: _unasked(trial.like_case("float64"))


def _in_one(trial: Trial, name: Dtype | None, called: str) -> Iterator[tuple[str, Run]]:
    wrong = []

    def as_they_are() -> None:
        try:
            _agree(trial.like_case(name))
        except (Wrong, CannotCompare):
            wrong.append(called)
            raise

    def where_right(run: Run) -> str | None:
        if wrong:
            raise Skip(f"wrong in {called} as it is")
        return run()

    yield called, as_they_are
    small = {
        of: Choice([size]) if isinstance(trial.sizes[of], Choice) else size for of, size in trial.small_sizes.items()
    }
    in_dtype = replace(trial, dtypes=(name,), sizes=small)
    for family_name, family in IN_EACH.items():
        try:
            rows = list(family(in_dtype))
        except Exception as error:  # a reference may raise anything in another dtype; the row above says what
            raise_if_nobodys_fault(error)
            continue
        yield from ((f"{called} {family_name} {variant}", partial(where_right, run)) for variant, run in rows)


def _unasked(case: FunctionCase) -> None:
    """A kernel may be for float32 alone, and may compute in float32 whatever it gets. But it must not return other
    numbers without an error.
    """
    try:
        agree(replace(case, tolerance=FAR_OFF))
    except CannotCompare as problem:
        raise Skip(f"{problem}; it may not be for float64; dtypes=['float32', 'float64'] says that it is") from problem
    except Wrong as wrong:
        raise Wrong(f"{wrong}; if it is for float32 alone, dtypes=['float32'] says so") from wrong


def full_size(trial: Trial) -> Iterator[tuple[str, Run]]:
    """The full sizes, if the other rows ran on smaller ones."""
    if not trial.is_whole:
        for name in trial.dtypes:
            yield _called(name), lambda name=name: _agree_in_full(trial, name)  # type: ignore[misc] # a default


def _called(name: Dtype | None) -> str:
    return "" if name is None else name if isinstance(name, str) else ", ".join(name)


def _agree_in_full(trial: Trial, name: Dtype | None) -> None:
    """Compare with one upstream gradient, and without copies of what the function might write into: at the full size
    there may be no memory for them.
    """
    case = trial.at(trial.full_sizes, name)
    _agree(replace(case, watched=False, upstreams=case.upstreams[:1]))


def _agree(case: FunctionCase) -> None:
    report = judge(case)
    if not report.agrees:
        raise Wrong(report.in_words())
