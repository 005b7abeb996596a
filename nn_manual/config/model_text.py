"""A model by itself as YAML: its layers, as a config has them, its dtype and its shared parameters."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Literal

from nn_manual.config.build import Builder
from nn_manual.config.config_file import dump_yaml, plain_of
from nn_manual.config.run_config import Layers
from nn_manual.config.user_classes import Importer, why_not_found
from nn_manual.config.users_code import kept_streams
from nn_manual.config.yaml_tree import Errors, Place, parse_scalar, read_tree
from nn_manual.layers import Layer
from nn_manual.layers.composite import descendants
from nn_manual.model import Sequential

#: What YAML writes for numbers that aren't finite. A config has none of them, and a layer that was made in Python may.
NOT_FINITE = {".inf": math.inf, "-.inf": -math.inf, ".nan": math.nan}


@dataclass(frozen=True)
class _Model:
    """What the text holds. Its fields are those of a config."""

    model: Layers
    dtype: Literal["float32", "float64"] = "float32"
    tied: list[list[str]] = field(default_factory=list)


def dump_model(model: Sequential) -> str:
    """The text of a model, without its parameters. Raises TypeError for a layer that a config can't hold."""
    _check_held(layer for _, layer in descendants(model))
    pairs = [[first, name] for first, names in model.ties.names.items() for name in names if name != first]
    return dump_yaml({"model": plain_of(model.layers), "dtype": model.dtype.name, "tied": pairs})


@kept_streams()
def parse_model(text: str, source: str, layer_folder: Path) -> Sequential:
    """The model of a text that `dump_model` returned, with initial parameters. Layers of the user's own are imported
    from the folder. Raises ConfigError, which names the `source` and each place in the text.
    """
    errors = Errors()
    tree = read_tree(text, partial(Place, source), errors, _scalar)
    arguments = {}
    if tree is not None:
        builder = Builder(layer_folder, Importer(layer_folder), errors)
        arguments = builder.arguments(_Model, "the model", tree)
    errors.raise_if_any()
    parts = _Model(**arguments)
    tied = [(first, name) for first, name in parts.tied]
    return Sequential(*parts.model, dtype=parts.dtype, tied=tied)


def _scalar(text: str) -> Any:
    """What unquoted text stands for."""
    return NOT_FINITE[text] if text in NOT_FINITE else parse_scalar(text)


def _check_held(layers: Iterable[Layer]) -> None:
    for layer in layers:
        own = type(layer)
        if "__dataclass_fields__" not in vars(own) and not isinstance(layer, Sequential):
            words = "is no dataclass, which has its settings: write @dataclass(eq=False) above the class"
            raise TypeError(f"{own.__name__} {words}")
        if own.__module__ == "__main__":  # a script or a notebook, which nobody imports
            raise TypeError(f"{own.__name__} is defined in __main__, where nobody finds it again: move it to a module")
        if words := why_not_found(own):
            raise TypeError(words)
