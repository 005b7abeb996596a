"""On which kinds of input something is wrong, and on which it is right, in a sentence."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence

#: At most so many kinds are listed.
LISTED = 5
_SIZES = re.compile(r", shape [\dx]+")


def where_wrong(
    inputs: Sequence[tuple[str, str]], wrong: Collection[int], asked: Sequence[int], what: str, other: str = "right"
) -> str:
    """For example "It is wrong on tied input; right on random input and negative input." `inputs` are settings and
    kinds, `wrong` and `asked` places in them, `what` how the sentence begins, and `other` what is said of
    the others.

    The inputs are told apart by what is special about them, or by the settings: the way with the fewest groups of which
    each is all wrong or all right. Where there is none, it is said how often each kind is wrong.
    """
    if len(wrong) == len(asked):
        return f"{what} on every input."
    ways = [_groups(names, wrong) for names in _ways([inputs[i] for i in asked], asked)]
    pure = [groups for groups in ways if all(all(group) or not any(group) for group in groups.values())]
    groups = min(pure, key=len) if pure else ways[0]
    counts = {name: "" if all(group) else f" ({sum(group)} of {len(group)})" for name, group in groups.items()}
    bad = [f"{name}{counts[name]}" for name, group in groups.items() if any(group)]
    good = [name for name, group in groups.items() if not any(group)]
    if len(good) < len(bad) and pure:
        return f"{what} on every input but {_listed(good)}."
    return f"{what} on {_listed(bad)}{f'; {other} on {_listed(good)}' if good else ''}."


def _ways(inputs: Sequence[tuple[str, str]], asked: Sequence[int]) -> Iterator[list[tuple[int, str]]]:
    """Ways to name the inputs: the first part of the kind, the second one where each kind has it, ...; the whole kind,
    and the setting.
    """
    kinds = [_SIZES.sub(", other sizes", kind) for _, kind in inputs]
    parts = [kind.split(", ") for kind in kinds]
    for place in range(min(map(len, parts))):
        yield [(i, part[place]) for i, part in zip(asked, parts, strict=True)]
    yield [*zip(asked, kinds, strict=True)]
    yield [(i, setting) for i, (setting, _) in zip(asked, inputs, strict=True)]


def _groups(names: Sequence[tuple[int, str]], wrong: Collection[int]) -> dict[str, list[bool]]:
    groups: dict[str, list[bool]] = {}
    for i, name in names:
        groups.setdefault(name, []).append(i in wrong)
    return groups


def _listed(names: Sequence[str]) -> str:
    shown = list(names[:LISTED])
    if len(names) > LISTED:
        shown.append(f"{len(names) - LISTED} more")
    return f"{', '.join(shown[:-1])} and {shown[-1]}" if len(shown) > 1 else "".join(shown)
