"""Lines as wide as a terminal."""

from __future__ import annotations

import textwrap

WIDTH = 80


def wrapped(text: str, indent: str = "") -> str:
    """A text whose first line has this indent, and the others a deeper one."""
    return textwrap.fill(text, WIDTH, initial_indent=indent, subsequent_indent=f"{indent}    ")
