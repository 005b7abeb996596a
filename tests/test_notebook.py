"""HTML for notebooks: it is well formed, whatever the texts are, and says what is wrong in words."""

from __future__ import annotations

import base64

import pytest
from html_pages import Page

from nn_manual import notebook
from nn_manual.notebook import Row


def test_a_table() -> None:
    page = Page(notebook.table(("name", "size", ""), [Row(("a", "1", "")), Row(("b", "2", "WRONG"), True)], "<><"))
    assert page.rows == [
        (("name", "size", ""), False),
        (("a", "1", ""), False),
        (("b", "2", "WRONG"), True),
    ]
    assert [row.cells for row in Page(notebook.table((), [Row(("data", "Digits"))], "<<")).rows] == [("data", "Digits")]


def test_numbers_are_aligned_to_the_right() -> None:
    html = notebook.table(("name", "size"), [Row(("a", "1"))], "<>")
    assert html.count("text-align: left") == html.count("text-align: right") == 2


@pytest.mark.parametrize("text", ["<b>bold</b>", "</td></tr>", "a & b", "\"quoted\" 'twice'", "<script>f()</script>"])
def test_texts_are_escaped(text: str) -> None:
    page = Page(
        notebook.page(
            notebook.title(text),
            notebook.verdict(text),
            notebook.words(text),
            notebook.lines([text, text]),
            notebook.table((text,), [Row((text,), True)], "<"),
            notebook.picture(b"", text),
        )
    )
    assert page.texts == [text, f"✓ {text}", text, f"{text}\n{text}"]
    assert page.rows == [((text,), False), ((text,), True)]
    assert page.pictures[0]["alt"] == text


def test_what_can_not_be_seen_is_escaped() -> None:
    assert Page(notebook.words("one\ntwo\x1b[31m\u202e")).texts == [r"one\ntwo\x1b[31m\u202e"]


def test_the_verdict_says_in_its_text_what_it_is() -> None:
    assert Page(notebook.verdict("all")).texts == ["✓ all"]
    assert Page(notebook.verdict("failed", is_wrong=True)).texts == ["✗ failed"]


def test_a_picture_lies_in_the_page() -> None:
    (picture,) = Page(notebook.picture(b"bytes", "curves")).pictures
    assert picture["src"] == f"data:image/png;base64,{base64.b64encode(b'bytes').decode()}"


def test_mathjax_leaves_names_alone() -> None:
    assert notebook.page("").startswith('<div class="tex2jax_ignore mathjax_ignore">')


def test_no_colour_of_a_text_or_of_the_page_is_set() -> None:
    """Dark text on a dark notebook couldn't be read. A tint is mostly transparent."""
    html = notebook.page(
        notebook.verdict("", is_wrong=True), notebook.table(("",), [Row(("",), True)], "<"), notebook.lines([""])
    )
    assert " color:" not in html
    assert html.count("background: rgba(220, 50, 50, 0.2)") == html.count("background") == 2
