"""Names of runs and tensors, cut so that what differs stays."""

from __future__ import annotations

from collections.abc import Sequence

from nn_manual.messages import one_line

ELLIPSIS = "\N{HORIZONTAL ELLIPSIS}"


def shorten(names: Sequence[str], length: int) -> list[str]:
    """The names as can be printed, those of more than `length` characters without a part that an ellipsis stands for.

    The part is the middle, or as near to it as lets no other name fit what is left. Names that differ in too many
    places for that lose their middle.
    """
    names = [one_line(name) for name in names]
    return [name if len(name) <= length else _cut(name, set(names) - {name}, length) for name in names]


def _cut(name: str, others: set[str], length: int) -> str:
    kept = length - len(ELLIPSIS)
    middle = kept - kept // 2
    cuts = [(name[:head], name[len(name) - kept + head :]) for head in range(kept + 1)]
    cuts.sort(key=lambda cut: abs(len(cut[0]) - middle))
    for head, tail in cuts:
        if not any(other.startswith(head) and other.endswith(tail) for other in others):
            return head + ELLIPSIS + tail
    return ELLIPSIS.join(cuts[0])
