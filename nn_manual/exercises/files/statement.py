"""What of a component's docstring an exercise shows at once, and what it uncovers bit by bit."""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from nn_manual.exercises.files.source import plain_text
from nn_manual.exercises.kinds.exercise import Exercise
from nn_manual.messages.text import WIDTH

#: What forward computes, by the names in formulas: what leads to none of these is of the way back.
OUTPUTS = ("output", "answer", "loss")
_DERIVATION = re.compile(r"\bDerivation\b(?=[:,])")
#: Where a docstring goes on after the derivation.
_AFTER = re.compile(r"(?:^|(?<=[.\n]) ?)(?:Source|Raises|In floating point)\b", re.MULTILINE)
#: The same in a teacher's docstring, which may have any layout.
_DERIVED = re.compile(r"^\W*(?:derivation|proof|backward|gradients?|way back)\b", re.MULTILINE | re.IGNORECASE)
_SENTENCE_END = re.compile(r"(?<=[.]) (?=[A-Z`\d]|torch )")
_OF_WAY_BACK = re.compile(r"grad|\bderivatives?\b|\bd\w*/d\w", re.IGNORECASE)
#: Where another formula begins in the same line, outside of brackets, and where one of a gradient does, which is hidden
#: wherever it stands.
_NEXT = re.compile(r"[,;]\s{2,}(?=[\w.]+(?:, *[\w.]+)* *= )")
_NEXT_BACK = re.compile(r"[,;]\s+(?=(?:grad|derivative)[\w.]* *= )")
#: Marks the beginning of brackets, and what is in them.
_OPEN, _INSIDE = "\1", "\0"
_BRACKETS = re.compile(r"[(\[{][^()\[\]{}]*[)\]}]")
#: The names before a comma that more names of the same formula follow.
_NAMES = re.compile(r"\s*[\w.]+(?:, *[\w.]+)*")
#: A sentence about the slope where a function has several.
_AT_KINKS = re.compile(r"\b(?:tie|ties|tied|kinks?|torch takes)\b")
_LINE = re.compile(r"(?P<names>[\w.]+(?:, \w+)*)(?:\[[^=]*\])? *=(?!=) ")


class _Formula(NamedTuple):
    """A formula in a block of a docstring: the names that it is of, and its text, which may have several lines."""

    names: tuple[str, ...]
    text: str


def statement(exercise: Exercise) -> str:
    """The docstring up to the derivation, without formulas of the way back. Those of an optimizer, and of a schedule,
    say what it is, so that they stay.
    """
    text = plain_text(exercise.owner)
    if not exercise.has_way_back:
        return _before_derivation(text)
    paragraphs = _before_derivation(text).split("\n\n")
    kept = _kept([formula for paragraph in paragraphs for formula in _formulas(paragraph)])
    shown: list[str] = []
    for paragraph in paragraphs:
        if paragraph.startswith("    "):
            paragraph = "\n".join(formula.text for formula in _formulas(paragraph) if formula in kept)
            if not paragraph and shown and shown[-1].endswith(":"):
                shown.pop()  # it announced what isn't shown
        if paragraph:
            shown.append(paragraph)
    return "\n\n".join(shown)


def without_way_back(text: str) -> str:
    """A teacher's docstring, of any layout, without its derivation and the formulas that the output doesn't need."""
    blocks: list[_Formula] = []  # prose has no names
    for piece in _pieces(_up_to(_DERIVATION, _up_to(_DERIVED, text))):
        found = _LINE.match(piece.strip())
        if found:
            blocks.append(_Formula(tuple(found["names"].split(", ")), piece))
        elif piece.strip() and blocks and blocks[-1].names:  # it goes on with the formula before it
            blocks[-1] = blocks[-1]._replace(text=f"{blocks[-1].text}\n{piece}")
        else:
            blocks.append(_Formula((), piece))
    kept = _kept([block for block in blocks if block.names])
    shown = [one.text for one in blocks if (one in kept if one.names else not _OF_WAY_BACK.search(one.text))]
    return re.sub(r"\n\s*\n(?=\s*\n)", "\n", "\n".join(shown)).strip()


def _pieces(text: str) -> list[str]:
    """The lines of a text, and of a line with several formulas each of them, indented as the line. A line that begins
    within brackets is of the one before it.
    """
    pieces: list[str] = []
    outside = "\n\n".join(map(_without_brackets, text.split("\n\n"))).split("\n")
    for line, bare in zip(text.split("\n"), outside, strict=True):
        begin = f"{pieces.pop()}\n" if bare.startswith(_INSIDE) else ""
        indent, start = line[: len(line) - len(line.lstrip())], 0
        for comma in sorted([*_NEXT.finditer(bare), *_NEXT_BACK.finditer(line)], key=re.Match.start):
            piece = line[start : comma.start()]
            if start <= comma.start() and not _NAMES.fullmatch(piece):
                pieces.append(begin + piece)
                begin, start = indent, comma.end()
        pieces.append(begin + line[start:])
    return pieces


def _without_brackets(text: str) -> str:
    """A text with marks in the place of its brackets and of what is in them."""
    while (bare := _BRACKETS.sub(_marked, text)) != text:
        text = bare
    return text


def _marked(brackets: re.Match[str]) -> str:
    return _OPEN + re.sub(r"[^\n]", _INSIDE, brackets[0][1:])


def hints(exercise: Exercise) -> list[str]:
    """What `exercise hint` uncovers, one after the other: each sentence and each line of the derivation, then each
    formula of the way back.
    """
    text = plain_text(exercise.owner)
    found = _DERIVATION.search(text)
    derivation = [] if found is None else [*_sentences(_up_to(_AFTER, text[found.start() :]))]
    return [*derivation, *(formulas_back(exercise) if exercise.has_way_back else exercise.way_back())]


def formulas_back(exercise: Exercise) -> list[str]:
    """The formulas of the way back. Those of an operation are code that runs in the reader's file."""
    paragraphs = _before_derivation(plain_text(exercise.owner)).split("\n\n")
    formulas = [formula for paragraph in paragraphs for formula in _formulas(paragraph)]
    kept = _kept(formulas)
    texts = [textwrap.dedent(formula.text) for formula in formulas if formula not in kept]
    if not exercise.is_function:
        return texts
    own = {name for formula in formulas for name in formula.names} | {*inspect.signature(exercise.owner).parameters}
    return [_by_full_names(ast.parse(text), own) for text in texts]


def _by_full_names(formula: ast.Module, own: set[str]) -> str:
    """A formula in which NumPy's functions are called by their full names."""
    for node in ast.walk(formula):
        if isinstance(node, ast.Name) and hasattr(np, node.id) and node.id not in own:
            node.id = f"np.{node.id}"
    return ast.unparse(formula)


def said_of_kinks(exercise: Exercise) -> str:
    """The sentences of the docstring about ties and kinks; empty where it has none."""
    paragraphs = plain_text(exercise.owner).split("\n\n")
    prose = (" ".join(paragraph.split()) for paragraph in paragraphs if not paragraph.startswith("    "))
    sentences = (each for paragraph in prose for each in _SENTENCE_END.split(paragraph) if _AT_KINKS.search(each))
    return " ".join(each.removeprefix("Derivation: ") for each in sentences)


def order(exercise: Exercise) -> list[str]:
    """The names of formulas in the order of the docstring."""
    if own := exercise.formulas():
        return [line.name for line in own]
    paragraphs = _before_derivation(plain_text(exercise.owner)).split("\n\n")
    formulas = [formula for paragraph in paragraphs for formula in _formulas(paragraph)]
    return list(dict.fromkeys(name for formula in formulas for name in formula.names))


def _before_derivation(text: str) -> str:
    return _up_to(_DERIVATION, text).rstrip()


def _up_to(pattern: re.Pattern[str], text: str) -> str:
    found = pattern.search(text)
    return text if found is None else text[: found.start()].rstrip()


def _formulas(paragraph: str) -> Iterator[_Formula]:
    """The formulas of a paragraph, if it is an indented block. A line that is none goes on with the one before it."""
    if not paragraph.startswith("    "):
        return
    texts: list[str] = []
    for line in paragraph.splitlines():
        if texts and not _LINE.match(line.strip()):
            texts[-1] += f"\n{line}"
        else:
            texts.append(line)
    for text in texts:
        found = _LINE.match(text.strip())
        yield _Formula(tuple(found["names"].split(", ")) if found else (), text)


def _kept(formulas: Sequence[_Formula]) -> set[_Formula]:
    """Those that the output depends on. Where no formula is the output's, those that depend on no gradient."""
    names = {name for formula in formulas for name in formula.names}
    way_back = {name for name in names if name.startswith(("grad", "derivative"))}
    wanted = names & {*OUTPUTS}
    if wanted:
        formulas = [one for one in formulas if not way_back & {*one.names}]
        while more := {word for one in formulas if wanted & {*one.names} for word in _words(one)} & (
            names - wanted - way_back
        ):
            wanted |= more
        return {one for one in formulas if wanted & {*one.names}}
    while more := {name for one in formulas if _words(one) & way_back for name in one.names} - way_back:
        way_back |= more
    return {one for one in formulas if not way_back & {*one.names} and "grad_" not in one.text}


def _words(formula: _Formula) -> set[str]:
    """The names that a formula reads. One that reads a_n also reads a, of which it is a part."""
    words = set(re.findall(r"\w+", formula.text.partition("=")[2]))
    return words | {word.rpartition("_")[0] for word in words}


def _sentences(text: str) -> Iterator[str]:
    """The sentences of paragraphs, and the lines of blocks. A sentence that goes on with a block has its first line."""
    begun = ""
    for paragraph in text.split("\n\n"):
        if paragraph.startswith("    "):
            first, *others = (line.strip() for line in paragraph.splitlines())
            yield f"{begun}\n  {first}" if begun else first
            yield from others
            begun = ""
            continue
        if begun:
            yield begun
        *sentences, begun = (
            textwrap.fill(sentence, WIDTH - 2, break_long_words=False)
            for sentence in _SENTENCE_END.split(" ".join(paragraph.split()))
        )
        yield from sentences
        if begun.endswith("."):
            yield begun
            begun = ""
    if begun:
        yield begun
