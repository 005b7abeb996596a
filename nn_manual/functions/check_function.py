"""check_function: the check of code that isn't a layer, such as an autograd.Function or the wrapper of a kernel."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from numbers import Integral
from types import MappingProxyType
from typing import Any

import torch

from nn_manual.arrays import Domain
from nn_manual.check.compare.comparison import CannotCompare
from nn_manual.check.judge.report import GradientReport
from nn_manual.functions.battery.families import Chosen, Known, Told, naming_what_runs, nobody_listens, run_rows
from nn_manual.functions.battery.trial import Dtype, Inputs, Trial, in_dtype
from nn_manual.functions.callables import Function, class_of_forward, is_mere_class
from nn_manual.functions.exceptions import met_in
from nn_manual.functions.function_report import OF_ITSELF, FunctionReport
from nn_manual.functions.handwritten import run_function
from nn_manual.functions.handwritten_class import Given, HandwrittenClass, handwritten_hint, in_one_form
from nn_manual.functions.judged_case import judge
from nn_manual.functions.options import domains_of, dtypes_of, kinds_of, sizes_of, tolerance_of
from nn_manual.functions.order_of_backward import compare_values
from nn_manual.functions.own_dtype import in_own_dtype
from nn_manual.functions.randomness import AT_RANDOM, IsRandom
from nn_manual.functions.settings import (
    compiled_for_every_run,
    in_full_precision,
    kept_generators,
    noticing_anew,
    set_around,
)
from nn_manual.messages.text import LONGEST_VALUE, one_line


def check_function(
    function: Given,
    reference: Function | None,
    inputs: Inputs,
    *,
    dtypes: Sequence[Dtype] | None = None,
    sizes: Mapping[str, int | Sequence[int]] | None = None,
    kinds: Sequence[str] | None = None,
    domain: Domain | Mapping[str, Domain] = "real",
    tolerance: float | None = None,
    skip: Sequence[str] = (),
    only: Sequence[str] = (),
    seed: int = 0,
) -> FunctionReport:
    """Compare a function's outputs, and the gradient of each floating input, with those of `reference`,

        grad_input = sum over outputs of (d output / d input)^T grad_output

    for a random and for a negative grad_output, drawn from `seed`. Then the function goes through a battery: other
    layouts, sizes, dtypes, values and orders of runs, each of which is a row of the report.

    `function` takes torch tensors and is differentiable by autograd: a subclass of torch.autograd.Function, its apply,
    a module, or anything built on one. Or it is a pair `(forward, backward)`, which gets arrays or tensors as `inputs`
    has them: `forward(*inputs)` returns `(outputs, saved)`, and `backward(*grad_outputs, saved)`, or with `saved`
    first, the gradients: a tuple of one for each floating input, or a dict by name. Or it is a HandwrittenClass.
    `reference` is the definition on torch tensors, which autograd differentiates; with None, the gradients are compared
    with differences of the function's own forward in float64. If `function` is a module, `reference` is a module with
    the same parameters, which count as inputs. Both functions return a tensor or a number, or lists, tuples and dicts
    of these.

    inputs: a list of numpy arrays, torch tensors, lists and dicts of these, and anything else, which is passed on as it
    is; a dict of the same, for keyword arguments; or a function `inputs(generator, **sizes)` that makes such a list or
    dict with a torch.Generator. sizes: for such a function, the full size of each dimension by its name. With a
    sequence of sizes, even of one, the rows try these alone. Rows run on small sizes, and once at the full ones.
    dtypes: "float16", "bfloat16", "float32", "float64", or tuples of them with one for each floating input. All rows
    run in the first one; None means the inputs' own. kinds: from "negative", "tied", "zero", "tiny", "scattered",
    "spread", "large" and "shifted", the kinds of values that floating inputs must also take; None tries all of them,
    and forgives a function that raises an error on them. domain: where the floating inputs lie, for those that the rows
    change: "positive", "nonzero" or (low, high), of all of them or by name. tolerance: relative to the largest value of
    the reference; it replaces the dtype's. skip: names of rows, or of families of rows, that are left out. only: names
    of those that run, in the place of all; the values are always compared.

    float32 may be off by 1e-5 of the largest value and float64 by 1e-12; or by more, if a computation in float64 shows
    that it is only rounding. float16 and bfloat16 may be three times as far from the reference in float64 as the
    reference is in that dtype. Where the reference is NaN or infinite, the function must return the same.

    Returns a report, whatever `function` does. Raises TypeError for something that isn't a function, and for other
    dtypes of the inputs or of the reference's outputs, also for complex ones. Raises ValueError for inputs or a
    reference with nothing to differentiate, for a random reference, for other arguments that don't fit, and under
    torch.no_grad() or torch.autocast. An error that the reference or `inputs` raises goes on to the caller, with a
    note.
    """
    trial = trial_of(function, reference, inputs, dtypes, sizes, kinds, tolerance, seed, domain)
    return put_through(trial, Chosen(skip, only))


def trial_of(
    function: Given,
    reference: Function | None,
    inputs: Inputs,
    dtypes: Sequence[Dtype] | None = None,
    sizes: Mapping[str, int | Sequence[int]] | None = None,
    kinds: Sequence[str] | None = None,
    tolerance: float | None = None,
    seed: int = 0,
    domain: Domain | Mapping[str, Domain] = "real",
) -> Trial:
    """Check the arguments of `check_function`, without a run of the function. Raises TypeError or ValueError."""
    if around := set_around():
        raise ValueError(f"{around}: check outside of it")
    _check_functions(function, reference)
    if not (isinstance(seed, Integral) and 0 <= seed < 2**63):  # torch's generators take no larger ones
        raise ValueError(f"seed must be a whole number from 0 to 2**63 - 1, not {one_line(repr(seed), LONGEST_VALUE)}")
    if reference is None:
        if dtypes not in (None, ["float64"], ("float64",)):
            raise ValueError(f"without a reference, everything is computed in float64: dtypes must not be {dtypes!r}")
        dtypes = ["float64"]
    return Trial(
        in_one_form(function),
        reference,
        inputs,
        dtypes_of(dtypes),
        sizes_of(inputs, sizes),
        kinds_of(kinds),
        tolerance_of(tolerance),
        seed,
        domains=domains_of(domain),
    )


def put_through(
    trial: Trial, chosen: Chosen, told: Told = nobody_listens, known_rows: Known = MappingProxyType({})
) -> FunctionReport:
    """Compare the values, then run every row that is chosen and not known already. `told` is called with the name of
    each part before it begins, and with each row when it has ended.
    """
    chosen.check_lists()
    met: set[str] = set()
    with kept_generators(), in_full_precision(), compiled_for_every_run(), noticing_anew():
        try:
            with naming_what_runs("the comparison of the values", trial, told):
                floating = trial.case.floating  # raises what is wrong with the inputs
                for name in trial.domains.keys() - {"", *floating}:
                    raise ValueError(f"domain: there is no floating input {name!r}, only {', '.join(floating)}")
                for each in trial.dtypes:
                    in_dtype(trial.case.arguments, each)  # raises what is wrong with the dtypes
                trial, dtype = in_own_dtype(trial)
                trial, found, order = compare_values(trial)
        except CannotCompare as problem:  # of a function whose kernel ended the use of the device
            return FunctionReport((), problem=one_line(str(problem)))
        if isinstance(found, CannotCompare):
            if trial.reference is None and (words := _of_own_forward(trial)):
                return FunctionReport((), problem=words)
            values, met = FunctionReport((), problem=one_line(str(found))), set(met_in(found))
            met |= {AT_RANDOM} if isinstance(found, IsRandom) else set()
        else:
            values = found
        said = tuple(filter(None, (order, dtype, *values.kinks.values(), *_left_out(trial))))
        vacuous = (*values.not_judged, *_vacuous_in_all(trial, values))
        values = replace(values, sources=said, vacuous=vacuous)
        settled = frozenset(failure.name.partition(",")[0] for failure in values.failures)
        trial = replace(trial, settled=settled, habits=values.habits)
        return replace(values, rows=run_rows(trial, chosen, met, told, known_rows))


def _of_own_forward(trial: Trial) -> str:
    """Why forward can't be its own reference; empty where it can. Without one there are no rows."""
    try:
        run_function(trial.case.reference, trial.case.arguments, trial.case.leaves(), trial.case.wants())
    except CannotCompare as problem:
        return one_line(str(problem))
    return ""


def _vacuous_in_all(trial: Trial, values: GradientReport) -> Iterator[str]:
    """The sentences about tensors that prove nothing, neither on the small sizes, on which the values are compared, nor
    at the full size. On a small size a gradient may be zero for a good reason: a scan of one step passes nothing on.
    """
    large = trial.large_case if values.vacuous else None
    proven = {c.name.partition(",")[0] for c in judge(large).comparisons if c.scale > 0} if large else set()
    for sentence in values.vacuous:
        if not any(sentence.startswith(f"{trial.label}: {name} ") for name in proven):
            yield sentence


def _left_out(trial: Trial) -> Iterator[str]:
    """A sentence about frozen parameters, and one about the buffers that only the reference has."""
    if trial.case.arguments.frozen:
        names = [name for name in trial.case.arguments.names if name in trial.case.arguments.frozen]
        yield f"not compared: {', '.join(f'grad_{name}' for name in names)}; frozen in {trial.label}, by requires_grad"
    if trial.reference is None:
        yield OF_ITSELF
    if isinstance(trial.reference, torch.nn.Module):
        names = [name for name, _ in trial.reference.named_buffers() if name not in trial.case.arguments.buffers]
        if names:
            lacking = f"{trial.label} has none of that name, shape and dtype"
            yield f"not compared, of the reference: buffer {', '.join(names)}; {lacking}"


def _check_functions(function: Any, reference: Any) -> None:
    named = [("function", function), *([("reference", reference)] if reference is not None else [])]
    if reference is None and isinstance(function, torch.nn.Module):
        raise ValueError(f"{type(function).__name__} is a module: its reference must be one, with the same parameters")
    if isinstance(function, HandwrittenClass):
        del named[0]
    elif isinstance(function, tuple):
        if len(function) != 2:
            raise TypeError(f"function must be one, or a pair (forward, backward), not a tuple of {len(function)}")
        named[:1] = zip(("forward", "backward"), function, strict=True)
    for name, each in named:
        if not callable(each):
            meant = "a tuple, (forward, backward)" if isinstance(each, list) else handwritten_hint(type(each))
            hint = f": pass {meant}" if meant else ""
            raise TypeError(f"{name} must be a function of tensors, not {one_line(repr(each), LONGEST_VALUE)}{hint}")
        if is_mere_class(each):
            meant = handwritten_hint(each) or f"an instance of it, {each.__name__}(...)"
            raise TypeError(f"{each.__name__} is a class: pass {meant}")
        if (owner := class_of_forward(each)) and not isinstance(function, tuple):
            raise TypeError(f"{owner}.forward takes a context: pass the class, {owner}")
