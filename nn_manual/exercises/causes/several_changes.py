"""Several changes as one mistake: the same one at each place, two names exchanged, two that are apart."""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from nn_manual.exercises.causes.candidates import Candidate, Text
from nn_manual.exercises.causes.change import LEFT_OUT
from nn_manual.exercises.causes.changes_of_names import SCALED

#: Changes of a higher rank are tried alone, and not in pairs.
MOST_RANK = 7
_INSTEAD = re.compile(r"with `(.+)` in the place of `(.+)`$")
_OF_AXES = re.compile(r"with the `\w+` over .*(?= in the place of )")


def repeated(singles: Sequence[Candidate], text: Text) -> Iterator[Candidate]:
    """The same change at each place where it can be made: of all lines of a name, of all lines but forward's, and of
    all lines. A sum over other axes is the same whatever is summed.
    """
    groups: dict[tuple[str, ...], list[Candidate]] = {}
    for each in singles:
        words = each.edits[0][1].words
        groups.setdefault((words, "name", each.name), []).append(each)
        groups.setdefault((words, "all"), []).append(each)
        if not text.of_forward(each):
            groups.setdefault((words, "backward"), []).append(each)
            if axes := _OF_AXES.match(words):
                groups.setdefault((axes[0], "axes"), []).append(each)
    for key, group in groups.items():
        if len(group) > 1:
            edits = tuple(edit for each in group for edit in each.edits)
            lines = tuple(each.lines[0] for each in group)
            ranks = [each.rank for each in group]
            yield Candidate(edits, lines, group[0].name, min(ranks) if key[1] == "name" else max(ranks) + 1)


def exchanged(singles: Sequence[Candidate], text: Text) -> Iterator[Candidate]:
    """Two names exchanged wherever they stand, but in a line where a name is inside of what stands for the other."""
    moves: dict[tuple[str, str], list[Candidate]] = {}
    for each in singles:
        found = _INSTEAD.match(each.edits[0][1].words.replace("[t]", ""))
        if found and len(each.edits) == 1 and not text.of_forward(each):
            moves.setdefault((found[2], found[1]), []).append(each)
    for (one, other), there in moves.items():
        back = moves.get((other, one), []) if one < other else []
        by_line: dict[tuple[int, str], list[Placed]] = {}
        for each in (*there, *back) if back else ():
            by_line.setdefault((each.edits[0][0], each.lines[0]), []).append(Placed.of(each))
        apart = [each for of_line in by_line.values() if _apart(of_line) for each in of_line]
        if len(apart) > 1:
            edits = tuple(edit for each in apart for edit in each.candidate.edits)
            lines = tuple(each.candidate.lines[0] for each in apart)
            rank = max(each.candidate.rank for each in apart) + 1
            yield Candidate(edits, lines, apart[0].candidate.name, rank)


def pairs(singles: Sequence[Candidate]) -> Iterator[Candidate]:
    """Two changes, those with the simplest words first."""
    by_rank: dict[int, list[Placed]] = {}
    for each in singles:
        if each.rank <= MOST_RANK:
            by_rank.setdefault(each.rank, []).append(Placed.of(each))
    for low, high in sorted(itertools.combinations_with_replacement(sorted(by_rank), 2), key=sum):
        own, others = by_rank[low], by_rank[high]
        for first, second in itertools.combinations(own, 2) if low == high else itertools.product(own, others):
            if not first.inside & second.inside:
                yield first.candidate.beside(second.candidate)
            elif first.is_simple or second.is_simple:  # of others, some may come to what the reader wrote by chance
                if second.changed <= first.kept:
                    yield first.candidate.beside(second.candidate)
                elif first.changed <= second.kept:
                    yield second.candidate.beside(first.candidate)


class Placed(NamedTuple):
    """A change, the nodes that it replaces and all nodes in them, and of these the ones that stay inside of it."""

    candidate: Candidate
    changed: frozenset[int]
    inside: frozenset[int]
    kept: frozenset[int]
    is_simple: bool

    @classmethod
    def of(cls, candidate: Candidate) -> Placed:
        """The places of a candidate."""
        changes = [change for _, change in candidate.edits]
        inside = frozenset(id(node) for change in changes for node in _nodes(change.node))
        changed = frozenset(id(change.node) for change in changes)
        kept = frozenset(id(node) for change in changes for node in _nodes(change.wrong))
        return cls(candidate, changed, inside, kept & inside, changes[0].rank == LEFT_OUT or changes[0].words in SCALED)


def _apart(placed: Sequence[Placed]) -> bool:
    return not any(one.inside & other.inside for one, other in itertools.combinations(placed, 2))


def _nodes(tree: ast.AST) -> Iterator[ast.AST]:
    """The expressions and statements of a tree: others, as the mark of a load, stand in many."""
    return (node for node in ast.walk(tree) if isinstance(node, ast.expr | ast.stmt))
