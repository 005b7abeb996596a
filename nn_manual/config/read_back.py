"""Whether a run's config.yaml will be read as its config: components of the user's own are written from the objects."""

from __future__ import annotations

import sys
from functools import partial
from types import ModuleType
from typing import Any

import numpy as np
from yaml.representer import RepresenterError

from nn_manual.config.build import Builder
from nn_manual.config.config_file import dump_config, plain_of
from nn_manual.config.run_config import RunConfig
from nn_manual.config.user_classes import Importer, class_of, why_not_found
from nn_manual.config.yaml_tree import Errors, Place, read_tree
from nn_manual.errors import ConfigError
from nn_manual.layers import Layer
from nn_manual.messages.text import quoted


def check_read_back(config: RunConfig) -> None:
    """Raise ConfigError where `load_config` wouldn't read what `dump_config` writes, or would make other components of
    it.
    """
    try:
        text = dump_config(config)
    except RepresenterError as error:
        *_, thing = error.args
        raise ConfigError(f"a config can't hold {quoted(repr(thing))}, of type {type(thing).__name__}") from None
    if config.layer_folder is None:  # the package's own are what they were made of
        return
    components = config.components()
    for path, component in components.items():
        if words := why_not_found(class_of(component)):
            raise ConfigError(f"{config.places.get(path, path)}: {words}")
    errors = Errors()
    tree = read_tree(text, partial(Place, "config.yaml"), errors)
    assert tree is not None
    builder = Builder(config.layer_folder, _Imported(config.layer_folder), errors)
    arguments = builder.arguments(RunConfig, "the config", tree)
    try:
        errors.raise_if_any()
    except ConfigError as error:
        lines = "; ".join(str(error).splitlines())
        raise ConfigError(f"the run's own config couldn't be read again: {lines}") from None
    again = RunConfig(**arguments).components()
    for path, component in components.items():
        _check_drawn(component, again[path], config.places.get(path, path))
        was, now = plain_of(component), plain_of(again[path])
        if was != now:
            place, name = config.places.get(path, path), class_of(component).__name__
            raise ConfigError(
                f"{place}: {name} changes its fields when it is made: the run's config.yaml would have {was}, and make "
                f"{now} of it. Keep what you compute in an attribute that is no field"
            )


def _check_drawn(component: Any, again: Any, place: object) -> None:
    """Raise ConfigError for an array that is another one each time the component is made: nothing keeps it."""
    keep = "make it a parameter or a buffer, or " if isinstance(component, Layer) else ""
    for name, array in vars(component).items():
        other = vars(again).get(name)
        is_float = isinstance(array, np.ndarray) and array.dtype.kind == "f"
        if isinstance(array, np.ndarray) and not np.array_equal(array, np.asarray(other), equal_nan=is_float):
            raise ConfigError(
                f"{place}: {type(component).__name__} has another {name} each time it is made, and no file keeps it: "
                f"{keep}draw it with a generator that has a seed of its own"
            )


class _Imported(Importer):
    """Takes the modules that have been imported: run again, they would have other classes."""

    def module(self, name: str) -> ModuleType:
        """The module of this name."""
        return sys.modules[name] if name in sys.modules else super().module(name)
