"""KEY=VALUE from the command line, put into the tree before it is validated."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import takewhile

from nn_manual.config.component_names import is_component
from nn_manual.config.leaf import describe
from nn_manual.config.repeat import expand_repeats
from nn_manual.config.user_classes import is_import_path
from nn_manual.config.yaml_tree import Errors, Node, Place, read_tree
from nn_manual.messages.text import quoted

#: One name of a path. The name of a user's own class, `package.module:Class`, has dots in it, but no index.
NAME = re.compile(r"(?:[^\W\d]\w*\.)*[^\W\d]\w*:[^.]*|[^.]*")


def apply_overrides(root: Node, overrides: Sequence[str], errors: Errors) -> None:
    """Set the values of all overrides, and put copies of the layers in the place of each Repeat. An override that goes
    through a Repeat changes it before it is copied; all others see the copies.
    """
    numbered = [(override, Place(f"override {quoted(override)}", column=n)) for n, override in enumerate(overrides)]
    of_repeat = [override for override in overrides if "Repeat" in _names(override.partition("=")[0])]
    for override, place in numbered:
        if override in of_repeat:
            apply_override(root, override, place, errors)
    expand_repeats(root, errors)
    for override, place in numbered:
        if override not in of_repeat:
            apply_override(root, override, place, errors)
    expand_repeats(root, errors)  # of an override's value


def apply_override(root: Node, override: str, place: Place, errors: Errors) -> None:
    """Set one value, such as `optimizer.SGD.lr=0.05`, `model.0.Linear.out_features=32` or `loss=MSELoss`.

    The key is a path of keys, component names and list indices; the value is YAML. A key that isn't there yet is added,
    and so are a component's keyword arguments where only its name is given. A path that leads nowhere and a value that
    isn't YAML are recorded in `errors`; the validation checks keys and values later. The place of the new value is
    `place`, to which a layer in a list adds its path. A lone "-", the name of standard input, is text: for YAML it
    would be a list with an empty item.
    """
    path, equals, text = override.partition("=")
    if not equals:
        errors.add(place, "is not KEY=VALUE")
        return
    if not text.strip():
        errors.add(place, "has no value after '='")
        return
    value = Node("-", place, place) if text.strip() == "-" else read_tree(text, lambda _line, _column: place, errors)
    if value is None:
        return
    _place_items(value, path, place)
    node: Node | None = root
    *parents, last = _names(path)
    for depth, name in enumerate(parents):
        node = node and _child(node, name, ".".join(parents[:depth]), place, errors)
    if node and _child(node, last, ".".join(parents), place, errors):
        node.value[int(last) if isinstance(node.value, list) else last] = value


def _place_items(node: Node, path: str, override: Place) -> None:
    """Add the path of each layer in the lists of an override's value, such as `model.2`, to its place and to that of
    what is in it: no line and column tell the layers apart.
    """
    is_list = isinstance(node.value, list)
    children = enumerate(node.value) if is_list else node.value.items() if isinstance(node.value, dict) else ()
    for key, child in children:
        name = next(iter(child.value), None) if isinstance(child.value, dict) else child.value
        is_named = is_list and (is_component(name) or (isinstance(name, str) and is_import_path(name)))
        place = override._replace(source=f"{override.source}: {path}.{key}") if is_named else node.place
        child.place = child.name_place = place
        _place_items(child, f"{path}.{key}", override)


def _names(path: str) -> Iterator[str]:
    first, _, _ = path.partition(".")  # a key of the config
    yield first
    start = len(first) + 1
    while start <= len(path):
        name = NAME.match(path, start)
        assert name is not None  # the empty name matches anywhere
        yield name.group()
        start = name.end() + 1


def _child(node: Node, name: str, path: str, place: Place, errors: Errors) -> Node | None:
    """The node called `name` in `node`, which stands at `path`. It is made where a mapping doesn't have it yet.

    None where there can't be such a node; the error is recorded. Behind a Repeat that can't be expanded, nobody knows
    what a list has: there it is None without an error.
    """
    if node.value is None:
        node.value = {}
    elif node.value == name or is_component(node.value):  # alone: without keyword arguments
        node.value = {node.value: Node({}, node.place, node.place)}
    if isinstance(node.value, dict):
        child: Node = node.value.setdefault(name, Node({}, place, place))
        return child
    if isinstance(node.value, list):
        known: list[Node] = list(takewhile(lambda item: not item.is_faulty, node.value))
        if name in map(str, range(len(known))):
            return known[int(name)]
        if len(known) < len(node.value):
            return None
    found = describe(node.value)
    if isinstance(node.value, list) and node.value:
        found += f" of 0 to {len(node.value) - 1}"
    errors.add(place, f"{path or 'the config'} is {found} and has no {quoted(name)}")
    return None
