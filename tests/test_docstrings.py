"""The docstring of a component, whatever Python has taken away of its indentation."""

from __future__ import annotations

import pytest

from nn_manual.docstrings import before_derivation, text_of, texts_of_family
from nn_manual.layers import Layer, Tanh

FORMULAS = "    gate, low = f(input),\n                1\n    output = gate * low"


def documented(text: str) -> type:
    return type("Own", (Tanh,), {"__doc__": text})


@pytest.mark.parametrize("indent", ["", "    ", "        "], ids=["Python 3.13", "a margin", "none but formulas"])
def test_formulas_are_indented_whatever_python_has_taken_away(indent: str) -> None:
    lines = "\n".join(indent + line.removeprefix("    ") for line in FORMULAS.splitlines())
    assert text_of(documented(f"A gate.\n\n{lines}\n    ")) .rstrip() == f"A gate.\n\n{FORMULAS}"


def test_words_stay_at_the_margin() -> None:
    text = f"A gate.\n\n{FORMULAS}\n\nn = 3 is the number.\n\nSource: a book\n\nn = 4"
    assert text_of(documented(text)) == text
    assert before_derivation(text) == text.partition("Source")[0]
    text = "lr = gamma**count.\n\nWords, and a derivation.\n\nWhy: n = 4\n\n    n = 5"
    assert text_of(documented(text)) == text


def test_the_contract_is_not_of_the_family() -> None:
    texts = texts_of_family(documented("Own."))
    assert texts[:2] == ["Own.", text_of(Tanh)]
    assert text_of(Layer) not in texts
