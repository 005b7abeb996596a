"""What the processes of a run must have in common before they compute anything together."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import yaml

from nn_manual.config import RunConfig, dump_config
from nn_manual.data import Split
from nn_manual.distributed.group import Group
from nn_manual.errors import ConfigError, DataError
from nn_manual.messages import one_line
from nn_manual.model import Sequential
from nn_manual.running.changes import differences, shown
from nn_manual.running.environment import sha256_of, versions


def agree(config: RunConfig, split: Split, model: Sequential, group: Group, **others: str) -> None:
    """Compare config, data, package and parameters of all processes, and what else is given by name. Raises ConfigError
    or, for data, DataError, with the process, the key and both values.
    """
    if group.size == 1:
        return
    package = hashlib.sha256()
    for path in sorted(Path(__file__).parents[1].rglob("*.py")):
        package.update(path.read_bytes())
    own: dict[str, Any] = {
        **others,
        "versions": versions() | {"platform": ""},
        "package": package.hexdigest(),
        "config": yaml.safe_load(dump_config(config)),
        "data": sha256_of(split),
        "initial parameters": hashlib.sha256(model.param_arena.tobytes()).hexdigest(),
    }
    everyone = group.gather(own)
    for rank, theirs in enumerate(everyone):
        for key, first, other in differences(everyone[0], theirs):
            name = one_line(key.removeprefix("config."))
            error = DataError if key == "data" else ConfigError
            raise error(f"process {rank} has another {name} than process 0: {shown(other)}, not {shown(first)}")


def check_all_see(directory: Path, group: Group) -> None:
    """Raise DataError where a process doesn't see the run directory that process 0 has made."""
    group.gather(None)  # it is made
    for rank, sees in enumerate(group.gather(directory.is_dir())):
        if not sees:
            raise DataError(f"{directory}: process {rank} doesn't see the run directory, which process 0 has made")
