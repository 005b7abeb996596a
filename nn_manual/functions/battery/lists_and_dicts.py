"""A function must not change the lists and dicts that it was given, or that it returned before."""

from __future__ import annotations

from typing import Any

from nn_manual.functions.arguments import Number, as_tensor
from nn_manual.functions.battery.trial import Wrong
from nn_manual.functions.callables import applied, floats, is_array
from nn_manual.functions.exceptions import going_on, naming, raised_by_the_reference
from nn_manual.functions.function_case import FunctionCase
from nn_manual.functions.handwritten import Checked, Handwritten
from nn_manual.functions.outputs import flat


def check_lists_and_dicts(case: FunctionCase, *, of_outputs: bool) -> None:
    """Raise Wrong if the function changes a list or dict that it was given, or that it returned before. A change that
    the reference makes, too, is right: a function may be there to fill a cache.
    """
    changed_in = _returned_before if of_outputs else _given
    with naming(case.label, "a run"):
        ours = changed_in(case, case.function)
    if ours:
        with raised_by_the_reference():
            theirs = changed_in(case, case.reference)
        if left := [name for name in ours if name not in theirs]:
            how = "returned before" if of_outputs else "was given"
            raise Wrong(f"it changes {left[0]}, a list or dict that it {how}")


def _given(case: FunctionCase, function: Checked) -> list[str]:
    """The names of the lists and dicts among the arguments that hold other things after forward."""
    leaves = _own_leaves(case, function)
    positional, keywords = case.arguments.filled(leaves)
    names, names_of_keywords = case.arguments.filled(case.arguments.names)
    both = [
        *zip(case.arguments.positional, positional, names, strict=True),
        *zip(case.arguments.keywords.values(), keywords.values(), names_of_keywords.values(), strict=True),
    ]
    # A list without tensors is passed on as it is. It isn't watched: functions may keep things there.
    watched = {_name_of(called): thing for template, thing, called in both if not isinstance(template, Number)}
    before = {name: dict(flat(thing, name)) for name, thing in watched.items()}
    _call(case, function, leaves, positional, keywords)
    return [name for name, thing in watched.items() if not _same_things(before[name], dict(flat(thing, name)))]


def _returned_before(case: FunctionCase, function: Checked) -> list[str]:
    """["output"] if what forward returned holds other tensors after forward has run again; else an empty list."""

    def run() -> Any:
        leaves = _own_leaves(case, function)
        return _call(case, function, leaves, *case.arguments.filled(leaves))

    returned = run()
    before = _arrays(returned)
    if not _same_things(before, _arrays(returned)):
        return []  # an object that makes its items anew whenever they are read
    run()
    return [] if _same_things(before, _arrays(returned)) else ["output"]


def _arrays(returned: Any) -> dict[str, Any]:
    return {name: thing for name, thing in flat(returned, "output") if is_array(thing)}


def _own_leaves(case: FunctionCase, function: Checked) -> list[Any]:
    """Copies, on which a function may work in place."""

    def own(leaf: Any, *, wanted: bool) -> Any:
        if isinstance(function, Handwritten):
            return leaf.copy() if hasattr(leaf, "copy") else leaf.detach().clone()
        return as_tensor(leaf).detach().clone().requires_grad_(wanted and floats(leaf)).clone()

    pairs = zip(case.leaves(), case.wants(), strict=True)
    return [own(leaf, wanted=wanted) if is_array(leaf) else leaf for leaf, wanted in pairs]


def _call(case: FunctionCase, function: Checked, leaves: list[Any], positional: Any, keywords: Any) -> Any:
    """What forward returns, without what it saves."""
    with going_on(function):
        returned, _ = case.arguments.call_filled(applied(function), leaves, positional, keywords)
    return returned


def _name_of(called: Any) -> str:
    """The name of an argument, from a list or dict of the names of its leaves: "several" from "several[0]"."""
    return next(str(name) for _, name in flat(called, "")).partition("[")[0]


def _same_things(before: dict[str, Any], after: dict[str, Any]) -> bool:
    return before.keys() == after.keys() and all(after[name] is thing for name, thing in before.items())
