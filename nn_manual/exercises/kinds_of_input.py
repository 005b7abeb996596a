"""On which kinds of input something is wrong, and on which it is right, in a sentence."""

from __future__ import annotations

from collections.abc import Collection, Sequence

#: At most so many kinds are listed.
LISTED = 6


def where_wrong(inputs: Sequence[tuple[str, str]], wrong: Collection[int], asked: Sequence[int], what: str) -> str:
    """For example "It is wrong on tied input, right on 8 other kinds." `inputs` are settings and kinds, `wrong` and
    `asked` places in them.

    Kinds of input tell it where each kind is all wrong or all right; else settings, if these do; else how often each
    kind is wrong.
    """
    if len(wrong) == len(asked):
        return f"{what} on every input."
    for part in (1, 0):
        groups: dict[str, list[bool]] = {}
        for i in asked:
            groups.setdefault(inputs[i][part], []).append(i in wrong)
        if all(all(group) or not any(group) for group in groups.values()):
            bad = [name for name, group in groups.items() if all(group)]
            good = [name for name, group in groups.items() if not any(group)]
            return f"{what} on {_listed(bad)}; right on {_listed(good)}."
    groups = {}
    for i in asked:
        groups.setdefault(inputs[i][1], []).append(i in wrong)
    some = [f"{name} ({sum(group)} of {len(group)})" for name, group in groups.items() if any(group)]
    good = [name for name, group in groups.items() if not any(group)]
    right = f"; right on {_listed(good)}" if good else ""
    return f"{what} on {_listed(some)}{right}."


def _listed(names: Sequence[str]) -> str:
    shown = list(names[:LISTED])
    if len(names) > LISTED:
        shown.append(f"{len(names) - LISTED} more")
    return f"{', '.join(shown[:-1])} and {shown[-1]}" if len(shown) > 1 else "".join(shown)
