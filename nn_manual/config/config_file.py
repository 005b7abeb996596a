"""A config read from a file, and written back with every default."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import fields, is_dataclass
from functools import partial
from pathlib import Path
from typing import Any

import yaml

from nn_manual.config.build import Builder
from nn_manual.config.leaf import path_in, text_of
from nn_manual.config.misfits import find_misfits
from nn_manual.config.overrides import apply_overrides
from nn_manual.config.run_config import RunConfig
from nn_manual.config.updates import find_compiling_misfits, find_update_misfits
from nn_manual.config.user_classes import Importer, class_of, import_path
from nn_manual.config.users_code import kept_streams
from nn_manual.config.yaml_tree import Errors, Node, Place, parse_scalar, read_file, read_tree
from nn_manual.layers import Layer
from nn_manual.registry import KINDS, takes_layers


@kept_streams()
def load_config(
    path: str | os.PathLike[str], overrides: Sequence[str] = (), *, folder: Path | None = None
) -> RunConfig:
    """The run that a YAML file describes, with `overrides` such as "optimizer.SGD.lr=0.05" put in before validation.

    Relative paths in it, those of overrides too, count from `folder`, by default the file's. Raises ConfigError with
    every error that there is, one a line, each with its `file:line:column` or override. This is the place of a key
    where the error is about the key or its value, and the place of a name where it is about the name.
    """
    errors = Errors()
    tree = read_tree(read_file(path), partial(Place, os.fspath(path)), errors)
    if tree is not None:
        apply_overrides(tree, overrides, errors)
        folder = folder or Path(os.path.abspath(path)).parent
        importer = Importer(_layer_folder(tree, folder))
        builder = Builder(folder, importer, errors)
        arguments = builder.arguments(RunConfig, "the config", tree)
        if importer.is_used:
            arguments["layer_folder"] = importer.folder
        places = {**dict(_places_of_keys(tree)), **builder.places}
        find_misfits(arguments, places, errors)
        find_update_misfits(arguments, places, errors)
        find_compiling_misfits(arguments, places, errors)
    errors.raise_if_any()
    config = RunConfig(**arguments)
    config.places.update(places)
    return config


def _places_of_keys(node: Node, path: str = "") -> Iterator[tuple[str, Place]]:
    """The place of each key of the config, and of each key in these, by its path."""
    for name, child in node.value.items() if isinstance(node.value, dict) else ():
        yield f"{path}{name}", child.name_place
        yield from _places_of_keys(child, f"{path}{name}.")


def _layer_folder(tree: Node, folder: Path) -> Path:
    """Where the user's own classes lie. This key is read before all others, wherever it stands; it is checked with
    them.
    """
    node = tree.value.get("layer_folder") if isinstance(tree.value, dict) else None
    return path_in(folder, node.value) if node is not None and isinstance(node.value, str) else folder


def dump_config(config: RunConfig) -> str:
    """YAML that `load_config` reads as the same run from any folder: every default is written out."""
    entries = {field.name: plain_of(getattr(config, field.name)) for field in fields(config) if field.init}
    return dump_yaml(entries)


def dump_yaml(value: Any, *, on_one_line: bool = False) -> str:
    """A plain value as YAML that `read_tree` reads as the same."""
    flow = True if on_one_line else None  # None: what has only plain scalars is on one line
    return yaml.dump(
        value, Dumper=_Dumper, sort_keys=False, default_flow_style=flow, allow_unicode=True, width=sys.maxsize
    )


def plain_of(thing: Any) -> Any:
    """Components as `Name` or `{Name: arguments}`, paths as text, everything else as it is."""
    if isinstance(thing, list | tuple):
        return [plain_of(item) for item in thing]
    if isinstance(thing, Layer) and takes_layers(type(thing)):
        return {import_path(type(thing)): plain_of(list(thing.children().values()))}
    if isinstance(thing, partial):
        return {import_path(class_of(thing)): thing.keywords}
    if is_dataclass(thing):
        arguments = {field.name: plain_of(getattr(thing, field.name)) for field in fields(thing) if field.init}
        if not isinstance(thing, tuple(KINDS)):
            return arguments
        name = import_path(type(thing))
        return {name: arguments} if arguments else name
    return text_of(thing) if isinstance(thing, Path) else thing


class _Dumper(yaml.SafeDumper):
    """Quotes the text that our reader, not YAML's, would take for something else; writes no aliases."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002 - the signature is PyYAML's
        return True

    def represent_text(self, text: str) -> yaml.ScalarNode:
        """The text without quotes where it is read back as the same text, else with quotes."""
        return self.represent_scalar("tag:yaml.org,2002:str", text, style=None if parse_scalar(text) == text else "'")


_Dumper.add_representer(str, _Dumper.represent_text)
