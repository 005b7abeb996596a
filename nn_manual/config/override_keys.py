"""The keys that an override of a config can have: the dotted paths of its values."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import partial

from nn_manual.config.listing import keys
from nn_manual.config.repeat import expand_repeats
from nn_manual.config.run_config import RunConfig
from nn_manual.config.yaml_tree import Errors, Node, Place, read_file, read_tree
from nn_manual.errors import ConfigError


def override_keys(path: str | os.PathLike[str]) -> list[str]:
    """The paths of all values in a config's file, such as `optimizer.SGD.lr`, and the other keys of a config. Mistakes
    in the file are passed over: there are no keys for a file that can't be read.
    """
    errors = Errors()
    try:
        tree = read_tree(read_file(path), partial(Place, os.fspath(path)), errors)
    except ConfigError:
        return []
    if tree is None or not isinstance(tree.value, dict):
        return []
    expand_repeats(tree, errors)
    return [*_paths(tree, ""), *(name for name, _, _ in keys(RunConfig) if name not in tree.value)]


def _paths(node: Node, path: str) -> Iterator[str]:
    """The paths of the values in a node. A list that holds no mapping is one value."""
    inner: dict[str, Node] = {}
    if isinstance(node.value, dict):
        inner = node.value
    elif isinstance(node.value, list) and any(isinstance(item.value, dict) for item in node.value):
        inner = {str(index): item for index, item in enumerate(node.value)}
    if not inner:
        yield path
    for name, child in inner.items():
        yield from _paths(child, f"{path}.{name}".lstrip("."))
