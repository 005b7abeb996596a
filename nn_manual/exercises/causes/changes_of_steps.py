"""Changes of an optimizer's formulas: which lines read old numbers and which new, and where the parameters decay."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Sequence

from nn_manual.exercises.causes.candidates import Candidate
from nn_manual.exercises.causes.change import ANOTHER, TURNED, Change

#: What a vector is called as it was before the step.
OLD = "old_"


def of_steps(units: Sequence[ast.Assign], vectors: Collection[str]) -> Iterator[Candidate]:
    """A vector or the parameter as it was before the step, a new vector too early, a line computed again behind others,
    and a decay apart from the gradient or with it.
    """
    yield from _old_vectors(units, [*vectors, "param"])
    yield from _new_vectors(units, vectors)
    yield from _again(units, vectors)
    yield from _decoupled(units)
    yield from _coupled(units)


def _old_vectors(units: Sequence[ast.Assign], vectors: Collection[str]) -> Iterator[Candidate]:
    for vector in vectors:
        place = next((index for index, unit in enumerate(units) if _name(unit) == vector), len(units))
        words = f"with `{vector}` as it was before the step, in the place of the new one,"
        changes = [
            (index, Change(node, ast.Name(f"{OLD}{vector}", ast.Load()), words, TURNED))
            for index in range(place + 1, len(units))
            for node in _reads(units[index].value, vector)
        ]
        if changes:
            yield _several(units, changes, TURNED)


def _new_vectors(units: Sequence[ast.Assign], vectors: Collection[str]) -> Iterator[Candidate]:
    for vector in vectors:
        places = [index for index, unit in enumerate(units) if _name(unit) == vector]
        words = f"with the new `{vector}` in the place of the one before the step,"
        changes = [
            (index, Change(node, units[places[-1]].value, words, TURNED))
            for index in range(places[-1] if places else 0)
            if index not in places
            for node in _reads(units[index].value, vector)
        ]
        if changes:
            yield _several(units, changes, TURNED)


def _again(units: Sequence[ast.Assign], vectors: Collection[str]) -> Iterator[Candidate]:
    for first, unit in enumerate(units):
        for last in range(first + 2, len(units)):
            moved = {_name(each) for each in units[first + 1 : last]} & {*vectors}
            vector = next((name for name in sorted(moved) if any(_reads(unit.value, name))), None)
            words = f"with `{_name(unit)}` computed again from the new `{vector}`"
            nodes = [*_reads(units[last].value, _name(unit))]
            if nodes and vector is not None:
                yield _several(units, [(last, Change(node, unit.value, words, ANOTHER)) for node in nodes], ANOTHER)


def _decoupled(units: Sequence[ast.Assign]) -> Iterator[Candidate]:
    words = "with the decay of the parameters apart from the gradient, as AdamW has it,"
    for index, unit in enumerate(units):
        match unit.value:
            case ast.BinOp(left, ast.Add(), ast.BinOp(ast.Name("weight_decay"), ast.Mult(), ast.Name("param"))):
                params = [*_reads(units[-1].value, "param")]
                decayed = ast.parse("param * (1 - lr * weight_decay)", mode="eval").body
                apart = [(len(units) - 1, Change(node, decayed, words, TURNED)) for node in params]
                yield _several(units, [(index, Change(unit.value, left, words, TURNED)), *apart], TURNED)


def _coupled(units: Sequence[ast.Assign]) -> Iterator[Candidate]:
    words = "with the decay of the parameters as a part of the gradient, as Adam has it,"
    first = next((index for index, unit in enumerate(units) if _name(unit) == "direction"), None)
    for index, unit in enumerate(units):
        if first is not None and ast.unparse(unit) == "param = param - lr * weight_decay * param":
            decay = ast.parse("weight_decay * param", mode="eval").body
            added = ast.BinOp(units[first].value, ast.Add(), decay)
            kept = ast.Name("param", ast.Load())
            with_it = Change(units[first].value, added, words, TURNED)
            yield _several(units, [(first, with_it), (index, Change(unit.value, kept, words, TURNED))], TURNED)


def _name(unit: ast.Assign) -> str:
    return ast.unparse(unit.targets[0])


def _reads(value: ast.expr, name: str) -> Iterator[ast.Name]:
    return (node for node in ast.walk(value) if isinstance(node, ast.Name) and node.id == name)


def _several(units: Sequence[ast.Assign], changes: list[tuple[int, Change]], rank: int) -> Candidate:
    lines = tuple(ast.unparse(units[index]) for index, _ in changes)
    return Candidate(tuple(changes), lines, _name(units[changes[0][0]]), rank)
