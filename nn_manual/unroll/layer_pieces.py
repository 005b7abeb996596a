"""The lines of each layer in a step: what they take, what they make, and what later lines need."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import NamedTuple

from nn_manual.trace.observed import MethodCall
from nn_manual.unroll.statement import Statement
from nn_manual.unroll.syntax import Name, Parts, targets
from nn_manual.unroll.versions import layer_of


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


def pieces_of(lines: Sequence[Statement], shared: set[Name]) -> dict[str, list[Piece]]:
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
        needed = tuple(name for name in names if is_needed(name, lines[place:]))
        found.setdefault(layer_of(call.owner), []).append(Piece(call, start, place, tuple(used), names, needed))
    return found


def is_needed(name: Name, later: Sequence[Statement]) -> bool:
    """Whether later lines read a variable before they assign to it."""
    for line in later:
        made = targets(line.parts)
        if name in line.parts[2 * len(made) - 1 if made else 0 :]:
            return True
        if name in made:
            return False
    return False


def local_names(piece: Piece) -> dict[Name, Name]:
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


def has_one_input(piece: Piece) -> bool:
    """Whether the layer takes one array of other layers, or one gradient: a sum of branches takes several."""
    return len({*local_names(piece).values()}) == len(local_names(piece))


def lines_of(piece: Piece, lines: Sequence[Statement]) -> list[tuple[int, Parts]]:
    """The depth and the text of each line, with the names of the function."""
    names = local_names(piece)
    return [
        (line.depth, tuple(names.get(part, part) if isinstance(part, Name) else part for part in line.parts))
        for line in lines[piece.start : piece.stop]
    ]


def arguments_of(piece: Piece) -> list[Name]:
    """The arguments in their order: the input, the layer's own arrays, the gradient, and what all layers share."""
    names, layer = local_names(piece), layer_of(piece.call.owner)
    order = {"input": 0, "grad_output": 2}
    return sorted(piece.outside, key=lambda name: order.get(names[name].local, 1 if name.layer == layer else 3))


def results_of(piece: Piece) -> list[Name]:
    """The variables that later lines need. The layer's output or grad_input comes first."""
    return sorted(piece.needed, key=lambda name: name.local not in ("output", "grad_input"))


def saved_by(layer: list[Piece], lines: Sequence[Statement]) -> tuple[Name, ...]:
    """The variables of forward that backward alone needs; () if there is only one."""
    forward, backward = layer
    later = lines[backward.stop :]  # the buffers may need one, too
    needed = (name for name in forward.needed if name in backward.outside and name.local != "output")
    both = tuple(name for name in needed if not is_needed(name, later))
    return both if len(both) > 1 else ()
