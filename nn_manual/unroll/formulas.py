"""The formulas in a docstring: forward, backward, update."""

from __future__ import annotations

import copy
import inspect
import re
import textwrap
from itertools import accumulate
from typing import Any

from nn_manual import optim
from nn_manual.docstrings import before_derivation, indented_formulas, texts_of_family
from nn_manual.optim import Optimizer


def formulas(instance: Any, *, target_kind: str = "") -> tuple[list[str], list[str]]:
    """The lines of forward, which end with `output` or `loss`, and those of backward. Lines for other settings are left
    out. `target_kind` is the kind of a loss's target, "indices" or "probabilities".
    """
    forward: list[str] = []
    backward: list[str] = []
    is_backward = False
    chosen_lines = [_where(line, instance, target_kind) for line in _block(type(instance))]
    for chosen in _without_zeros([line for line in chosen_lines if line is not None], instance):
        name = chosen.partition("=")[0].split("[")[0].strip()
        if name == "grad_target":  # no step needs it
            continue
        (backward if is_backward else forward).append(_without_absent(chosen, instance))
        is_backward = is_backward or name in ("output", "loss")
    return aligned(forward), aligned(backward)


def in_floating_point(instance: Any, width: int) -> list[str]:
    """What the docstring's "In floating point" says in words, in lines of at most `width` characters; [] if there is
    none. Its formulas are the lines of code below.
    """
    text = inspect.cleandoc(type(instance).__doc__ or "")
    found = re.search(r"^In floating point: .*?(?=\n\n|\Z)", text, re.MULTILINE | re.DOTALL)
    return textwrap.wrap(found[0], width) if found else []


def of_update(instance: Optimizer) -> list[str]:
    """The formulas of an optimizer, for its settings."""
    lines, absent = [], _vectors(instance) - set(instance.vector_names())
    for line in [*_block(type(instance), first=True), *_borrowed(instance)]:
        folded = _folded(line, instance)
        left, _, right = folded.partition("=")
        if left.strip() != right.strip() and not absent & set(re.findall(r"\w+", folded)):
            lines.append(folded)
    return aligned(lines)


def _borrowed(optimizer: Optimizer) -> list[str]:
    """The lines that the docstring takes from another class, as in "then Adam's formulas without their line of ..."."""
    found = re.search(r"then (\w+)'s\s+formulas\s+without\s+their\s+line\s+of\s+(\w+)", type(optimizer).__doc__ or "")
    if not found or not hasattr(optim, found[1]):
        return []
    return [line for line in _block(getattr(optim, found[1]), first=True) if found[2] not in line]


def _vectors(optimizer: Optimizer) -> set[str]:
    """The names of the vectors that any of the settings need."""
    names = set()
    for settings in type(optimizer).examples():
        other = copy.copy(optimizer)
        vars(other).update(settings)
        names |= set(other.vector_names())
    return names


def aligned(lines: list[str]) -> list[str]:
    """The lines with their = signs one below the other."""
    pairs = [re.match(r"(\w[\w.]*) += (.*?)(?: {2,}(\S.*))?$", line) for line in lines]
    if not all(pairs):
        return lines  # as in the docstring
    name_width = max((len(pair[1]) for pair in pairs if pair), default=0)
    width = max((len(pair[2]) for pair in pairs if pair and pair[3]), default=0)
    return [
        f"{pair[1]:{name_width}} = {pair[2]:{width}}  {pair[3] or ''}".rstrip()
        for pair in pairs
        if pair is not None
    ]


def _block(owner: type, *, first: bool = False) -> list[str]:
    """The indented lines of the first docstring, of the class or of its bases but the contracts, that has formulas.
    With `first`, only the first block of them.
    """
    for text in texts_of_family(owner):
        begin, *others = before_derivation(text).split("\n\n")
        before = "\n" + "\n\n".join([indented_formulas(begin), *others])
        if first:
            before = re.split(r"(?m)(?<=\n)\n(?=\S)", before.partition("\n    ")[2])[0]
            before = f"    {before}"
        lines = [line[4:] for line in before.splitlines() if line.startswith("    ")]
        if any("=" in line for line in lines):
            return lines
    return []


def _where(line: str, instance: Any, target_kind: str) -> str | None:
    """The line without its condition; None if the condition is false."""
    text, found, condition = line.partition(" where ")
    if not found or "=" not in condition:
        return line
    field, _, setting = (part.strip() for part in condition.partition("="))
    value = target_kind if field == "target" else str(getattr(instance, field, ""))
    return text.rstrip() if value == setting else None


def _without_absent(line: str, instance: Any) -> str:
    """The line without the terms that a setting switches off."""
    if getattr(instance, "bias", True) is False:
        line = re.sub(r" \+ bias\b", "", line)
    for field, value in vars(instance).items():
        if value is None:
            line = re.sub(rf"\b{field} \* | \* {field}\[\w+\]", "", line)
    return _without_brackets(line)


def _without_brackets(line: str) -> str:
    """The line without brackets around all that stands to the right of the = sign."""
    left, sign, right = line.partition("= ")
    depths = list(accumulate({"(": 1, ")": -1}.get(character, 0) for character in right))
    are_around_it = right.startswith("(") and depths[-1] == 0 and all(depths[:-1])
    return f"{left}{sign}{right[1:-1]}" if are_around_it else line


def _without_zeros(lines: list[str], instance: Any) -> list[str]:
    """The lines without products with a setting that is 0."""
    for field, value in vars(instance).items():
        if type(value) is float and not value:
            zeros = [line.partition("=")[0].strip() for line in lines if re.search(rf"= [^(+]* \* {field}\b", line)]
            lines = [line for line in lines if line.partition("=")[0].strip() not in zeros]
            lines = [re.sub(rf"\(1 - {field}\) \* | \+ (?:{'|'.join(zeros) or '(?!)'})\b", "", line) for line in lines]
    return lines


def _folded(line: str, instance: Any) -> str:
    """The line without the settings of an optimizer that are 0 or false."""
    line = re.sub(r"^(\w+) += ", r"\1 = ", line)
    conditional = re.match(r"(\w+) = (.*\S) +if +(\w+) +else +(.*)", line)
    if conditional and hasattr(instance, conditional[3]):
        name, yes, field, no = conditional.groups()
        line = f"{name} = {yes if getattr(instance, field) else no}"
    for field, value in vars(instance).items():
        if isinstance(value, int | float) and not value:
            line = re.sub(rf" [-+] (?:\w+ \* )*{field} \* \w+", "", line)
            line = re.sub(rf"\(1 - {field}\) \* ", "", line)
    return re.sub(r"  +", "    ", line)
