"""What is said of memory that a reader's backward leaves without numbers."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from nn_manual.exercises.kinds.exercise import Case, Results
from nn_manual.exercises.kinds.words import written_gradient
from nn_manual.exercises.running.answer import Failure
from nn_manual.layers import Layer

#: How a number is lost.
NO_NUMBER = "is not a number: 0 / 0, infinity times 0, or infinity minus infinity."


def is_memory(owner: Any, name: str) -> bool:
    """Whether a tensor is memory that backward writes into, and isn't returned."""
    is_layer = isinstance(owner, type) and issubclass(owner, Layer)
    return is_layer and name.startswith("grad_") and name != "grad_input"


def no_number(owner: Any, name: str) -> str:
    """About a tensor that has no number anywhere."""
    return never_written(name, " anywhere") if is_memory(owner, name) else f"{name} {NO_NUMBER}"


def never_written(name: str, where: str) -> str:
    """About memory that has no number in some places, or anywhere."""
    return (
        f"{name} is not a number{where}: it was never written there, or added with += to what was there. The memory is "
        f"not 0 before backward runs. Write into it: {written_gradient(name)}[...] = ..."
    )


def kept_as_it_was(cases: Sequence[Case], expected: Sequence[Results], theirs: Sequence[Results]) -> str:
    """About the memory of an optimizer that no step of any case changes, although the right step does; empty where
    there is none.
    """
    kept = []
    for group in dict.fromkeys(name.partition(" after step ")[0] for right in expected for name in right):
        pairs = [
            (np.asarray(own.get(name)), np.asarray(array), case.instance)
            for case, right, own in zip(cases, expected, theirs, strict=True)
            for name, array in right.items()
            if name.partition(" after step ")[0] == group
        ]
        starts = [instance.vectors.get(group, instance.model.param_arena) for *_, instance in pairs]
        theirs_and_right = list(zip(*((own, right) for own, right, _ in pairs), strict=True))
        is_kept, is_right = (all(map(np.array_equal, arrays, starts)) for arrays in theirs_and_right)
        if is_kept and not is_right:
            kept.append("param" if group == "parameters" else group)
    if not kept:
        return ""
    what = f"{' and '.join(kept)} {'keeps its' if len(kept) == 1 else 'keep their'} old numbers"
    first = kept[0]
    are_zeros = not any(case.instance.vectors.get(first, case.instance.model.param_arena).any() for case in cases)
    multiples = ", or only multiples of its zeros" if are_zeros else ""
    how = f"Write {first}[...] = ...; `{first} = ...` makes another array."
    if are_zeros:
        how = f"Write {first}[...] = ... where you have `{first} = ...`, which makes another array; "
        how += "where you write in place already, something that isn't 0 must be added."
    return f"{what}: nothing is written into {first}{multiples}. {how}"


def added(tree: ast.AST, results: Sequence[Mapping[str, Any] | Failure]) -> list[Failure]:
    """Each line that adds to memory which is no number then."""
    found = []
    names = {name for each in results if not isinstance(each, Failure) for name in each}
    written = {written_gradient(name): name for name in sorted(names)}
    for node in ast.walk(tree):
        if isinstance(node, ast.AugAssign):
            target = f"{ast.unparse(node.target)}[".replace("'", '"')
            own = next((each for each in written if target.startswith(f"{each}[")), None)
            if own is not None and any(_has_nan(each, written[own]) for each in results):
                words = f"{own} += adds to what was there, which is not 0: write {own}[...] = ..."
                found.append(Failure(words, node.lineno))
    return found


def _has_nan(results: Mapping[str, Any] | Failure, name: str) -> bool:
    array = None if isinstance(results, Failure) else results.get(name)
    return isinstance(array, np.ndarray) and array.dtype.kind == "f" and bool(np.isnan(array).any())
