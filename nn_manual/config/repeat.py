"""`Repeat: {times: 4, layers: [...]}` in a list of layers: it stands for so many fresh copies of them."""

from __future__ import annotations

import copy

from nn_manual.config.leaf import describe
from nn_manual.config.names import REPEAT, advice
from nn_manual.config.tree import Errors, Node
from nn_manual.messages import quoted

#: More layers than this are no config of a person's: a digit too many must not fill the memory.
MAX_TIMES = 1_000


def expand_repeats(node: Node, errors: Errors) -> None:
    """Put the copies in the place of each Repeat below `node`. They are nodes of their own at the same places: an
    override can change one of them, and an error in all of them is one error.
    """
    if isinstance(node.value, dict):
        for child in node.value.values():
            expand_repeats(child, errors)
    elif isinstance(node.value, list):
        for child in node.value:
            expand_repeats(child, errors)
        node.value = [item for child in node.value for item in _repeated(child, errors)]


def _repeated(node: Node, errors: Errors) -> list[Node]:
    if node.value == REPEAT:
        arguments = node
    elif isinstance(node.value, dict) and list(node.value) == [REPEAT]:
        arguments = node.value[REPEAT]
    else:
        return [node]
    num_errors = len(errors.found)
    given = arguments.value if isinstance(arguments.value, dict) else {}
    for name, child in given.items():
        if name not in ("times", "layers"):
            errors.add(child.name_place, f"unknown key {quoted(name)} in {REPEAT}{advice(name, ('times', 'layers'))}")
    missing = [name for name in ("times", "layers") if name not in given]
    if missing:
        errors.add(arguments.name_place, f"{REPEAT} needs {' and '.join(missing)}")
        return []
    times, layers = given["times"], given["layers"]
    if type(times.value) is not int or not 1 <= times.value <= MAX_TIMES:
        found = times.value if type(times.value) is int else describe(times.value)
        errors.add(times.name_place, f"times must be an integer from 1 to {MAX_TIMES}, not {found}")
    if not isinstance(layers.value, list) or not layers.value:
        errors.add(layers.name_place, f"{REPEAT} takes a list of layers, not {describe(layers.value)}")
    if len(errors.found) > num_errors:
        return []
    return [copy.deepcopy(layer) for _ in range(times.value) for layer in layers.value]
