"""What may change in a config when its run goes on, and what has."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from functools import partial
from typing import Any

import yaml

from nn_manual.config.yaml_tree import Errors, Place, plain, read_tree
from nn_manual.errors import ConfigError

#: The keys of a config that may change when a run goes on.
MAY_CHANGE = (
    "epochs", "early_stopping", "checkpoint", "gradient_check", "blas", "threads", "loop_threads", "layer_folder",
)
#: The keys of a data set that say where it lies. They may change, too: whether it is the same is seen by its examples.
PLACES_OF_DATA = ("file", "validation_file", "folder")

#: The values of these keys for a run of a version that didn't have the keys.
BEFORE = {
    "slices": 1, "bitwise": False, "shard_optimizer": False, "sync_batch_norm": False,
    "compiled": False, "blas": None, "threads": None, "loop_threads": None, "init_from": None,
}


def values_of(config: str) -> dict[str, Any]:
    """The values of a config, which `dump_config` has written. Raises ValueError for another text."""
    errors = Errors()
    tree = read_tree(config, partial(Place, "config"), errors)
    try:
        errors.raise_if_any()
    except ConfigError as error:
        raise ValueError(f"is no config: {str(error).partition(chr(10))[0]}") from error
    values = BEFORE | (plain(tree) if tree is not None and isinstance(tree.value, dict) else {})
    if type(values.get("epochs")) is not int or values["epochs"] < 1:
        raise ValueError("is no config: it has no epochs")
    return values


def changes(was: dict[str, Any], now: dict[str, Any]) -> list[str]:
    """A line for each value that differs between two configs and must not."""
    return [
        f"{key} was {shown(before)}, is {shown(after)}"
        for key, before, after in differences(was, now)
        if key.partition(".")[0] not in MAY_CHANGE and not _is_place_of_data(key)
    ]


def _is_place_of_data(key: str) -> bool:
    """Whether it is a path such as data.Arrays.file."""
    names = key.split(".")
    return names[0] == "data" and names[-1] in PLACES_OF_DATA


def differences(was: Any, now: Any, path: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Each value that differs: its dotted path, the first value and the second one."""
    if isinstance(was, dict) and isinstance(now, dict) and was.keys() == now.keys():
        for key in was:
            yield from differences(was[key], now[key], f"{path}.{key}".removeprefix("."))
    elif isinstance(was, list) and isinstance(now, list) and len(was) == len(now):
        for index, (before, after) in enumerate(zip(was, now, strict=True)):
            yield from differences(before, after, f"{path}.{index}")
    elif was != now:
        yield path, was, now


def shown(value: Any) -> str:
    """A value of a config, in one line."""
    text = yaml.safe_dump(value, default_flow_style=True, width=sys.maxsize).removesuffix("...\n").strip()
    return text if len(text) <= 60 else f"{text[:57]}..."
