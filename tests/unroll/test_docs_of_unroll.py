"""docs/unroll.md: the lines that it shows stand on the page."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_piece_is_one_of_the_page() -> None:
    (piece,) = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "unroll.md").read_text(encoding="utf-8"), re.DOTALL)
    page = (ROOT / "tests" / "golden" / "digits.py.txt").read_text()
    title, *layers = piece.split("\n\n")
    assert f"{title}\n" in page
    for layer in layers:
        assert f"\n\n{layer.rstrip()}\n\n" in page
