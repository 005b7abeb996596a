"""Names of runs and tensors, shortened so that they still differ."""

from __future__ import annotations

from collections.abc import Sequence

from nn_manual.messages.text import one_line

ELLIPSIS = "\N{HORIZONTAL ELLIPSIS}"


def shorten(names: Sequence[str], length: int) -> list[str]:
    """The names as printable text. In a name of more than `length` characters, an ellipsis takes the place of a part.

    This part is the middle, or as near to it as possible so that no other name fits what is left. If there is no such
    part, it is the middle.
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
