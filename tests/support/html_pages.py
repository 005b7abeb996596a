"""HTML that a notebook would show, read back: its elements must be closed in order, and nothing may run in it."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import Any, NamedTuple

#: The elements that the package writes; those that have no end tag.
KNOWN = {"div", "p", "strong", "pre", "table", "thead", "tbody", "tr", "th", "td"}
WITHOUT_END = {"br", "img"}


class SeenRow(NamedTuple):
    """A row of a table: its texts, and whether it is marked by a tint and bold text."""

    cells: tuple[str, ...]
    is_marked: bool


class Page(HTMLParser):
    """A page: the rows of its tables, its paragraphs and lines, its pictures. It fails for what isn't well formed."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.rows: list[SeenRow] = []
        #: The texts of paragraphs and of preformatted lines, and the attributes of pictures.
        self.texts: list[str] = []
        self.pictures: list[dict[str, str | None]] = []
        self._open: list[str] = []
        self._cells: list[str] = []
        self._is_marked = False
        self.feed(html)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        assert len(given) == len(attrs)
        assert not any(name.startswith("on") for name in given)
        if tag in WITHOUT_END:
            if tag == "img":
                self.pictures.append(given)
            else:
                self.handle_data("\n")
            return
        assert tag in KNOWN, tag
        self._open.append(tag)
        if tag == "tr":
            style = given.get("style") or ""
            self._cells, self._is_marked = [], "background" in style and "bold" in style
        elif tag in ("td", "th"):
            self._cells.append("")
        elif tag in ("p", "pre"):
            self.texts.append("")

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag
        if tag == "tr":
            self.rows.append(SeenRow(tuple(self._cells), self._is_marked))

    def handle_data(self, data: str) -> None:
        if {"td", "th"} & set(self._open):
            self._cells[-1] += data
        else:
            assert {"p", "pre"} & set(self._open), data
            self.texts[-1] += data

    @property
    def marked(self) -> list[tuple[str, ...]]:
        """The cells of the rows that are marked."""
        return [row.cells for row in self.rows if row.is_marked]


def page_of(shown: Any) -> Page:
    """What a notebook shows of an object."""
    return Page(shown._repr_html_())
