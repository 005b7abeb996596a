"""Several changes at once: one at every place where it can be made, and two different ones."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterator

from nn_manual.exercises.candidates import Candidate, Text

#: Changes of a higher rank are tried alone, and not in pairs.
MOST_RANK = 7


def repeated(singles: list[Candidate], text: Text) -> Iterator[Candidate]:
    """The same change at each place where it can be made: of all lines of a name, of all lines but forward's, and of
    all lines.
    """
    groups: dict[tuple[str, ...], list[Candidate]] = {}
    for each in singles:
        words = each.edits[0][1].words
        groups.setdefault((words, "name", each.name), []).append(each)
        groups.setdefault((words, "all"), []).append(each)
        if not text.of_forward(each):
            groups.setdefault((words, "backward"), []).append(each)
    for key, group in groups.items():
        if len(group) > 1:
            edits = tuple(edit for each in group for edit in each.edits)
            lines = tuple(each.lines[0] for each in group)
            ranks = [each.rank for each in group]
            yield Candidate(edits, lines, group[0].name, min(ranks) if key[1] == "name" else max(ranks) + 1)


def _around(outer: Candidate, inner: Candidate, within: frozenset[int]) -> bool:
    """Whether one change leaves whole what another one changes: the line times 2, or without a call around it, and in
    it one name for another. The outer one is made first.
    """
    (unit, change), *others = outer.edits
    if others or any(index != unit for index, _ in inner.edits):
        return False
    left = {id(node) for node in ast.walk(change.wrong)}
    return within <= left and (id(change.node) in left or any(node is change.wrong for node in ast.walk(change.node)))


def pairs(singles: list[Candidate]) -> Iterator[Candidate]:
    """Two changes, those with the simplest words first."""
    by_rank: dict[int, list[tuple[Candidate, frozenset[int]]]] = {}
    for each in singles:
        if each.rank <= MOST_RANK:
            nodes = (node for _, change in each.edits for node in ast.walk(change.node))
            inside = frozenset(id(node) for node in nodes if isinstance(node, ast.expr | ast.stmt))
            by_rank.setdefault(each.rank, []).append((each, inside))
    for low, high in sorted(itertools.combinations_with_replacement(sorted(by_rank), 2), key=sum):
        own, others = by_rank[low], by_rank[high]
        two = itertools.combinations(own, 2) if low == high else itertools.product(own, others)
        for (first, inside), (second, within) in two:
            if not inside & within or _around(first, second, within):
                yield Candidate((*first.edits, *second.edits), (*first.lines, *second.lines), first.name, low + high)
