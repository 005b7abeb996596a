"""Layers of one kind as functions: lines that many layers share become a function, which the step calls."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from nn_manual.arrays import Shape
from nn_manual.trace.observed import MethodCall
from nn_manual.unroll.layer_pieces import (
    Piece,
    arguments_of,
    has_one_input,
    lines_of,
    local_names,
    pieces_of,
    results_of,
    saved_by,
)
from nn_manual.unroll.statement import Statement
from nn_manual.unroll.syntax import NUMBER, Name, Parts
from nn_manual.unroll.versions import layer_of

#: A step gets functions if it has so many lines, and so many layers of one kind.
MANY_LINES, MANY_LAYERS = 150, 3


class Function(NamedTuple):
    """A function: its name, the layer whose formulas stand in it, its arguments, its lines, and what it returns.
    `saved` are the arrays that forward puts into the variable `saved`, and backward takes from it.
    """

    name: str
    layer: str
    is_backward: bool
    arguments: tuple[Name, ...]
    lines: tuple[tuple[int, Parts], ...]
    returns: tuple[Name, ...]
    saved: tuple[Name, ...]


def with_functions(
    lines: Sequence[Statement], shared: Iterable[Name], shapes: dict[Name, Shape]
) -> tuple[list[Function], list[Statement]]:
    """The functions, and the step with calls of them. `shared` are variables that functions see without taking them as
    arguments.
    """
    pieces = pieces_of(lines, set(shared))
    layers = [layer for layer, both in pieces.items() if len(both) == 2 and all(map(has_one_input, both))]
    kinds: dict[tuple[str, object], list[str]] = {}
    for layer in layers:
        both = tuple(_skeleton(piece, lines) for piece in pieces[layer])
        kinds.setdefault((_class(pieces[layer][0].call), both), []).append(layer)
    counts = [len(own) for own in kinds.values()]
    if len(lines) < MANY_LINES or max(counts, default=0) < MANY_LAYERS:
        return [], list(lines)
    functions: list[Function] = []
    calls: dict[int, tuple[int, Statement]] = {}
    for (name, _), own in kinds.items():
        size = sum(piece.stop - piece.start for piece in pieces[own[0]])
        if len(own) < 2 or size < 3:
            continue
        num_same = sum(function.name.startswith(f"{name}_backward") for function in functions)
        plain = f"{name}_{num_same + 1}" if num_same else name
        made = _functions(plain, [pieces[layer] for layer in own], lines, shapes)
        if made is None:
            continue
        functions += made
        for layer in own:
            for function, piece in zip(made, pieces[layer], strict=True):
                calls[piece.start] = piece.stop, _called(function, piece, pieces[layer], lines)
    found, place = [], 0
    while place < len(lines):
        stop, line = calls.get(place, (place + 1, lines[place]))
        found.append(line)
        place = stop
    return functions, found


def _skeleton(piece: Piece, lines: Sequence[Statement]) -> tuple[object, ...]:
    """The lines without their numbers, and the names of what comes in and goes out."""
    names = local_names(piece)
    words = tuple(
        (depth, tuple(part if isinstance(part, Name) else NUMBER.sub("#", part) for part in parts))
        for depth, parts in lines_of(piece, lines)
    )
    return words, tuple(names[name] for name in (*piece.outside, *piece.needed))


def _functions(
    name: str, layers: list[list[Piece]], lines: Sequence[Statement], shapes: dict[Name, Shape]
) -> list[Function] | None:
    """The functions of forward and backward. None if numbers differ from layer to layer and aren't sizes of arguments.
    """
    first = layers[0]
    saved = saved_by(first, lines)
    made = []
    for number, piece in enumerate(first):
        words = _general([own[number] for own in layers], lines, shapes)
        if words is None:
            return None
        names = local_names(piece)
        own_saved = tuple(names[each] for each in saved)
        arguments = tuple(names[each] for each in arguments_of(piece) if each not in saved)
        returns = tuple(names[each] for each in results_of(piece) if each not in saved)
        if number and saved:
            arguments = (Name("saved"), *arguments)
        is_backward = bool(number)
        made.append(
            Function(
                f"{name}_backward" if is_backward else name,
                layer_of(piece.call.owner),
                is_backward,
                arguments,
                tuple(words),
                returns if is_backward or not saved else (*returns, Name("saved")),
                own_saved,
            )
        )
    return made


def _general(
    pieces: list[Piece], lines: Sequence[Statement], shapes: dict[Name, Shape]
) -> list[tuple[int, Parts]] | None:
    """The lines for all layers. A number that differs becomes a size of an argument; None if it is none."""
    every = [lines_of(piece, lines) for piece in pieces]
    sizes = [_sizes(piece, shapes) for piece in pieces]
    found = []
    for versions in zip(*every, strict=True):
        depth, first = versions[0]
        parts: list[str | Name] = []
        for own in zip(*(each for _, each in versions), strict=True):
            if isinstance(own[0], Name):
                parts.append(own[0])
                continue
            texts = [str(text) for text in own]
            split = [NUMBER.split(text) for text in texts]
            for place, piece in enumerate(split[0]):
                values = [each[place] for each in split]
                if len(set(values)) == 1:
                    parts.append(piece)
                    continue
                fitting = [e for e in sizes[0] if [str(each.get(e)) for each in sizes] == values]
                if not fitting:
                    return None
                parts += fitting[0]
        found.append((depth, tuple(part for part in parts if part != "")))
        assert first is not None
    return found


def _sizes(piece: Piece, shapes: dict[Name, Shape]) -> dict[Parts, int]:
    """The sizes of the arguments, by their expressions."""
    names, sizes = local_names(piece), dict[Parts, int]()
    for name in sorted(piece.outside, key=lambda each: names[each].local not in ("input", "grad_output")):
        shape = shapes.get(name, ())
        if shape:
            sizes[names[name], ".shape[-1]"] = shape[-1]
            sizes["len(", names[name], ")"] = shape[0]
    return sizes


def _called(function: Function, piece: Piece, layer: list[Piece], lines: Sequence[Statement]) -> Statement:
    """The line of the step that calls a function for a layer."""
    saved = saved_by(layer, lines)
    kept = Name("saved", layer_of(piece.call.owner))
    arguments = [name for name in arguments_of(piece) if name not in saved]
    returns: list[Name] = [name for name in results_of(piece) if name not in saved]
    if saved:
        arguments, returns = ([kept, *arguments], returns) if function.is_backward else (arguments, [*returns, kept])
    parts: list[str | Name] = []
    for number, name in enumerate(returns):
        parts += [", "] * bool(number) + [name]
    parts += [f" = {function.name}("]
    for number, name in enumerate(arguments):
        parts += [", "] * bool(number) + [name]
    return lines[piece.start]._replace(parts=(*parts, ")"), defines=None, depth=0, is_called=True)


def _class(call: MethodCall) -> str:
    """layer_norm for "2.0 (LayerNorm)"."""
    name = call.owner.partition("(")[2].rstrip(")")
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()
