"""What a notebook shows of an object: words, tables and pictures as HTML, every text escaped.

A notebook is light or dark: text has the notebook's own colour. What is wrong is said in words, in bold, on a tint that
lets both backgrounds through. Each element has its own style, because many viewers drop style sheets.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Sequence
from html import escape
from typing import NamedTuple

from nn_manual.messages.text import one_line

#: Red that is mostly transparent: text on it has enough contrast on white and on black.
TINT = "background: rgba(220, 50, 50, 0.2)"
#: The distances around a line of text.
LINE = "margin: 0.3em 0; padding: 0.2em"
#: Blanks count, as in the indented names of layers, and long texts are wrapped.
CELL = "white-space: pre-wrap; padding: 0.2em 0.6em; vertical-align: top"
#: A longer table scrolls: about 40 rows are seen at once.
HEIGHT = "max-height: 60em; overflow: auto"
ALIGNMENTS = {"<": "left", ">": "right"}


class Row(NamedTuple):
    """The texts of a table's row, and whether it is marked as wrong: then one of the texts says so, too."""

    cells: Sequence[str]
    is_wrong: bool = False


def page(*parts: str) -> str:
    """The parts below each other. The classes keep MathJax away: a name may have a $."""
    return f'<div class="tex2jax_ignore mathjax_ignore">{"".join(parts)}</div>'


def verdict(text: str, *, is_wrong: bool = False) -> str:
    """What counts most, in bold, behind a mark that says right or wrong."""
    mark, style = ("✗", f"{LINE}; {TINT}") if is_wrong else ("✓", LINE)
    return f'<p style="{style}"><strong>{mark} {_text(text)}</strong></p>'


def title(text: str) -> str:
    """What the parts below are about."""
    return f'<p style="{LINE}"><strong>{_text(text)}</strong></p>'


def words(text: str) -> str:
    """A paragraph."""
    return f'<p style="{LINE}">{_text(text)}</p>'


def lines(texts: Iterable[str]) -> str:
    """Lines in which each character has its column."""
    return f'<pre style="{LINE}; font-family: monospace">{"<br>".join(map(_text, texts))}</pre>'


def table(headings: Sequence[str], rows: Iterable[Row], alignments: str) -> str:
    """A table. `alignments` has for each column "<" for words or ">" for numbers, as in a format.
    """
    styles = [f"text-align: {ALIGNMENTS[alignment]}; {CELL}" for alignment in alignments]
    head = f"<thead>{_row('th', Row(headings), styles)}</thead>" if headings else ""
    body = "".join(_row("td", row, styles) for row in rows)
    style = "border-collapse: collapse; table-layout: auto; margin: 0.3em 0"  # each column as wide as its texts
    return f'<div style="{HEIGHT}"><table style="{style}">{head}<tbody>{body}</tbody></table></div>'


def picture(png: bytes, description: str) -> str:
    """A picture on its own white background, and the words for those who don't see it."""
    source = f"data:image/png;base64,{b64encode(png).decode()}"
    return f'<img src="{source}" alt="{_text(description)}" style="{LINE}; max-width: 100%; width: 50em">'


def _row(tag: str, row: Row, styles: Sequence[str]) -> str:
    cells = zip(row.cells, styles, strict=True)
    inner = "".join(f'<{tag} style="{style}">{_text(text)}</{tag}>' for text, style in cells)
    marked = f' style="font-weight: bold; {TINT}"' if row.is_wrong else ""
    return f"<tr{marked}>{inner}</tr>"


def _text(text: str) -> str:
    return escape(one_line(text))
