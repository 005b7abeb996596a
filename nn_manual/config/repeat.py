"""`Repeat: {times: 4, layers: [...]}` in a list of layers: it stands for 4 fresh copies of these layers."""

from __future__ import annotations

from collections.abc import Iterable

from nn_manual.config.component_names import REPEAT
from nn_manual.config.leaf import describe
from nn_manual.config.yaml_tree import Errors, Node
from nn_manual.messages.text import advice, quoted

#: No person writes a config with more copies than this. A digit too many must not fill the memory.
MAX_TIMES = 1_000
#: The most names, keys and values in all copies of a config, for the same reason: Repeats can lie in Repeats.
MAX_COPIED = 100_000


def expand_repeats(root: Node, errors: Errors) -> None:
    """Replace each Repeat below `root` by its copies. Each copy has nodes of its own with the same places: an override
    can change one copy, and an error in all of them is recorded once. A Repeat that can't be expanded stays, and so do
    the Repeats around it.
    """
    _Check(errors).num_nodes(root)
    _expand(root)


def layers_of(repeat: Node) -> list[Node]:
    """The layers in a Repeat; none where it has no list of layers."""
    arguments = repeat.value[REPEAT].value if isinstance(repeat.value, dict) else None
    layers = arguments.get("layers") if isinstance(arguments, dict) else None
    return layers.value if layers is not None and isinstance(layers.value, list) else []


def _expand(node: Node) -> None:
    """Replace each Repeat below `node` by its copies, the innermost first."""
    for child in _inner(node):
        _expand(child)
    if isinstance(node.value, list):
        node.value = [item for child in node.value for item in _copies(child)]


def _copies(node: Node) -> list[Node]:
    """The copies of a Repeat's layers; the node itself where it is no Repeat, or one that can't be expanded."""
    arguments = _arguments_of(node)
    if arguments is None or node.is_faulty:
        return [node]
    times, layers = (arguments.value[name] for name in ("times", "layers"))
    return [layer.copied() for _ in range(times.value) for layer in layers.value]


def _arguments_of(node: Node) -> Node | None:
    """The arguments of a Repeat; None for any other node."""
    if node.value == REPEAT:
        return node
    return node.value[REPEAT] if isinstance(node.value, dict) and list(node.value) == [REPEAT] else None


class _Check:
    """Counts what one config would copy, before anything is copied. A Repeat that can't be expanded is recorded as an
    error, and marked.
    """

    def __init__(self, errors: Errors) -> None:
        self.errors = errors
        self.num_copied = 0

    def num_nodes(self, node: Node) -> int:
        """How many nodes there are in `node`, itself included, when its Repeats are expanded."""
        count = self.num_of_item if isinstance(node.value, list) else self.num_nodes
        return 1 + sum(map(count, _inner(node)))

    def num_of_item(self, node: Node) -> int:
        """The same for an item of a list. For a Repeat, it is the number of nodes in all of its copies."""
        arguments = _arguments_of(node)
        if arguments is None or node.is_faulty:
            return self.num_nodes(node)
        checked = self.arguments(arguments)
        if checked is None:
            node.is_faulty = True
            return self.num_nodes(node)
        times, layers = checked
        num_nodes = self.num_nodes(layers)
        if _has_faulty(layers):
            node.is_faulty = True
            return num_nodes
        num_times: int = times.value
        num_copied = self.num_copied + num_times * num_nodes
        if num_copied > MAX_COPIED:
            message = f"the copies have more than {MAX_COPIED:,} names, keys and values: is there a digit too many?"
            self.errors.add(times.name_place, message)
            _mark(node)
            return num_nodes
        self.num_copied = num_copied
        return num_times * (num_nodes - 1)

    def arguments(self, node: Node) -> tuple[Node, Node] | None:
        """The nodes of times and layers; None where something is wrong with them."""
        errors = self.errors
        num_errors = len(errors.found)
        given = node.value if isinstance(node.value, dict) else {}
        for name, child in given.items():
            if name not in ("times", "layers"):
                hint = advice(name, ("times", "layers"))
                errors.add(child.name_place, f"unknown key {quoted(name)} in {REPEAT}{hint}")
        missing = [name for name in ("times", "layers") if name not in given]
        if missing:
            errors.add(node.name_place, f"{REPEAT} needs {' and '.join(missing)}")
            return None
        times, layers = given["times"], given["layers"]
        if type(times.value) is not int or not 1 <= times.value <= MAX_TIMES:
            found = times.value if type(times.value) is int else describe(times.value)
            errors.add(times.name_place, f"times must be an integer from 1 to {MAX_TIMES}, not {found}")
        if not isinstance(layers.value, list) or not layers.value:
            errors.add(layers.name_place, f"{REPEAT} takes a list of layers, not {describe(layers.value)}")
        return None if len(errors.found) > num_errors else (times, layers)


def _mark(node: Node) -> None:
    """Mark all Repeats in `node`, which isn't copied: they needn't be expanded, either."""
    node.is_faulty = _arguments_of(node) is not None
    for child in _inner(node):
        _mark(child)


def _has_faulty(node: Node) -> bool:
    """Whether there is a Repeat in `node` that can't be expanded."""
    return node.is_faulty or any(map(_has_faulty, _inner(node)))


def _inner(node: Node) -> Iterable[Node]:
    return node.value.values() if isinstance(node.value, dict) else node.value if isinstance(node.value, list) else ()
