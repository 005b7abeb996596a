"""The names that a config can use, and the hint that ends an error about any other."""

from __future__ import annotations

import difflib
from collections.abc import Collection

from nn_manual.layers import Layer
from nn_manual.model import Sequential
from nn_manual.registry import components


def named(kind: type) -> dict[str, type]:
    """What a config can name as a component of this kind; among the layers is Sequential, which is made of others."""
    return components(kind) | ({"Sequential": Sequential} if kind is Layer else {})


def nearest(name: str, known: Collection[str]) -> str:
    """The hint that ends an error about an unknown name: the nearest one, or all where none is near."""
    by_lowercase = {candidate.lower(): candidate for candidate in known}
    match = difflib.get_close_matches(name.lower(), by_lowercase, n=1)
    if match:
        return f"; did you mean {by_lowercase[match[0]]!r}?"
    return f"; known: {', '.join(known)}" if known else "; it has none"
