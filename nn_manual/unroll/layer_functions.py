"""Layers of one kind as functions: lines that many layers share become a function, which the step calls."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from nn_manual.arrays import Shape
from nn_manual.trace.observed import MethodCall
from nn_manual.unroll.statement import Statement
from nn_manual.unroll.syntax import NUMBER, Name, Parts, targets
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


class Piece(NamedTuple):
    """The lines of a layer's forward or backward: their place in the step, the variables from `outside`, the variables
    that the lines make (`own`), and those of them that later lines need.
    """

    call: MethodCall
    start: int
    stop: int
    outside: tuple[Name, ...]
    own: tuple[Name, ...]
    needed: tuple[Name, ...]


def with_functions(
    lines: Sequence[Statement], shared: Iterable[Name], shapes: dict[Name, Shape]
) -> tuple[list[Function], list[Statement]]:
    """The functions, and the step with calls of them. `shared` are variables that functions see without taking them as
    arguments.
    """
    pieces = _pieces(lines, set(shared))
    layers = [layer for layer in pieces if len(pieces[layer]) == 2]
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


def _pieces(lines: Sequence[Statement], shared: set[Name]) -> dict[str, list[Piece]]:
    """The forward and backward of layers that aren't made of layers, by the layers' names."""
    found: dict[str, list[Piece]] = {}
    place = 0
    for key, group in itertools.groupby(lines, key=lambda line: (id(line.call), line.owner)):
        own = list(group)
        call, start, place = own[0].call, place, place + len(own)
        if call is None or call.method not in ("forward", "backward") or not layer_of(call.owner) or not key[1]:
            continue
        names = tuple(dict.fromkeys(name for line in own for name in targets(line.parts)))
        said = (part for line in own for part in line.parts if isinstance(part, Name))
        used = dict.fromkeys(name for name in said if name not in shared and name not in names)
        needed = tuple(name for name in names if _is_needed(name, lines[place:]))
        found.setdefault(layer_of(call.owner), []).append(Piece(call, start, place, tuple(used), names, needed))
    return found


def _is_needed(name: Name, later: Sequence[Statement]) -> bool:
    """Whether later lines read a variable before they assign to it."""
    for line in later:
        made = targets(line.parts)
        if name in line.parts[2 * len(made) - 1 if made else 0 :]:
            return True
        if name in made:
            return False
    return False


def _locals(piece: Piece) -> dict[Name, Name]:
    """The names in the function of a layer's variables."""
    layer, is_backward = layer_of(piece.call.owner), piece.call.method == "backward"
    names = {name: Name(name.local) for name in piece.own}
    for name in piece.outside:
        if name.layer == layer:
            local = Name(name.local)
        else:
            local = Name("grad_output" if is_backward and name.local.startswith("grad") else "input")
        names[name] = local if name.layer or name.local in ("input", "target", "grad_prediction") else name
    return names


def _words(piece: Piece, lines: Sequence[Statement]) -> list[tuple[int, Parts]]:
    names = _locals(piece)
    return [
        (line.depth, tuple(names.get(part, part) if isinstance(part, Name) else part for part in line.parts))
        for line in lines[piece.start : piece.stop]
    ]


def _skeleton(piece: Piece, lines: Sequence[Statement]) -> tuple[object, ...]:
    """The lines without their numbers, and the names of what comes in and goes out."""
    names = _locals(piece)
    words = tuple(
        (depth, tuple(part if isinstance(part, Name) else NUMBER.sub("#", part) for part in parts))
        for depth, parts in _words(piece, lines)
    )
    return words, tuple(names[name] for name in (*piece.outside, *piece.needed))


def _functions(
    name: str, layers: list[list[Piece]], lines: Sequence[Statement], shapes: dict[Name, Shape]
) -> list[Function] | None:
    """The functions of forward and backward. None if numbers differ from layer to layer and aren't sizes of arguments.
    """
    first = layers[0]
    saved = _saved(first, lines)
    made = []
    for number, piece in enumerate(first):
        words = _general([own[number] for own in layers], lines, shapes)
        if words is None:
            return None
        names = _locals(piece)
        own_saved = tuple(names[each] for each in saved)
        arguments = tuple(names[each] for each in _arguments(piece) if each not in saved)
        returns = tuple(names[each] for each in _ordered(piece) if each not in saved)
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


def _arguments(piece: Piece) -> list[Name]:
    """The arguments in their order: the input, the layer's own arrays, the gradient, and what all layers share."""
    names, layer = _locals(piece), layer_of(piece.call.owner)
    order = {"input": 0, "grad_output": 2}
    return sorted(piece.outside, key=lambda name: order.get(names[name].local, 1 if name.layer == layer else 3))


def _ordered(piece: Piece) -> list[Name]:
    """The variables that later lines need. The layer's output or grad_input comes first."""
    return sorted(piece.needed, key=lambda name: name.local not in ("output", "grad_input"))


def _saved(layer: list[Piece], lines: Sequence[Statement]) -> tuple[Name, ...]:
    """The variables of forward that backward alone needs; () if there is only one."""
    forward, backward = layer
    later = lines[backward.stop :]  # the buffers may need one, too
    needed = (name for name in forward.needed if name in backward.outside and name.local != "output")
    both = tuple(name for name in needed if not _is_needed(name, later))
    return both if len(both) > 1 else ()


def _general(
    pieces: list[Piece], lines: Sequence[Statement], shapes: dict[Name, Shape]
) -> list[tuple[int, Parts]] | None:
    """The lines for all layers. A number that differs becomes a size of an argument; None if it is none."""
    every = [_words(piece, lines) for piece in pieces]
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
    names, sizes = _locals(piece), dict[Parts, int]()
    for name in sorted(piece.outside, key=lambda each: names[each].local not in ("input", "grad_output")):
        shape = shapes.get(name, ())
        if shape:
            sizes[names[name], ".shape[-1]"] = shape[-1]
            sizes["len(", names[name], ")"] = shape[0]
    return sizes


def _called(function: Function, piece: Piece, layer: list[Piece], lines: Sequence[Statement]) -> Statement:
    """The line of the step that calls a function for a layer."""
    saved = _saved(layer, lines)
    kept = Name("saved", layer_of(piece.call.owner))
    arguments = [name for name in _arguments(piece) if name not in saved]
    returns: list[Name] = [name for name in _ordered(piece) if name not in saved]
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
