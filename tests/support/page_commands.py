"""The commands that a page shows."""

from __future__ import annotations

import shlex


def commands(page: str, after: str) -> list[list[str]]:
    """The arguments of each nn-manual in the block of a page behind these words."""
    block = page.partition(after)[2].partition("```sh\n")[2].partition("```")[0]
    lines = [shlex.split(line, comments=True) for line in block.splitlines()]
    assert all(line[0] == "nn-manual" for line in lines)
    return [line[1:] for line in lines]
