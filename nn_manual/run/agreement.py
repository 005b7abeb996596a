"""What the processes of a run must have in common before they compute anything together."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import yaml

from nn_manual.config import RunConfig, dump_config
from nn_manual.data import Split
from nn_manual.errors import ConfigError, DataError
from nn_manual.messages.text import one_line
from nn_manual.model import Sequential
from nn_manual.run.changes import differences, shown
from nn_manual.run.environment import blas, sha256_of, versions
from nn_manual.run.sources import sources_of
from nn_manual.step.slices.process_group import ProcessGroup

#: How many characters of a SHA-256 are compared and shown.
SHOWN = 16


def agree(config: RunConfig, split: Split, model: Sequential, group: ProcessGroup, **others: str) -> None:
    """Compare the config, the data, the package and the parameters of all processes, and what `others` give by name.
    Raises ConfigError or, for the data, DataError, with the process, the key and both values.
    """
    if group.size == 1:
        return
    own: dict[str, Any] = {
        **others,
        "versions": versions() | {"platform": ""},
        "config": yaml.safe_load(dump_config(config)),
        "source": _package() | sources_of(config),  # layers of the user's own are among these
        "data": sha256_of(split),
        "initial parameters": {
            name: hashlib.sha256(array.tobytes()).hexdigest()[:SHOWN]
            for name, array in model.state_dict(aliases=False).items()
        },
        # The bits of a product depend on the threads that share it.
        "number of BLAS threads": blas().get("num_threads") if config.bitwise else None,
    }
    everyone = group.gather(own)
    names = sorted({name for each in everyone for name in each["source"]})
    for each in everyone:
        each["source"] = {name: each["source"].get(name, "no such file")[:SHOWN] for name in names}
    for rank, theirs in enumerate(everyone):
        for key, first, other in differences(everyone[0], theirs):
            name = one_line(key.removeprefix("config."))
            error = DataError if key == "data" else ConfigError
            raise error(f"process {rank} has another {name} than process 0: {shown(other)}, not {shown(first)}")


def _package() -> dict[str, str]:
    """The SHA-256 of each of the package's files, by its path."""
    folder = Path(__file__).parents[1]
    files = sorted(folder.rglob("*.py"))
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def check_all_see(directory: Path, group: ProcessGroup) -> None:
    """Raise DataError where a process doesn't see the run directory that process 0 has just made, which is empty."""
    group.gather(None)  # it is made
    try:
        is_seen = not any(directory.iterdir())
    except OSError:
        is_seen = False
    for rank, sees in enumerate(group.gather(is_seen)):
        if not sees:
            raise DataError(f"{directory}: process {rank} doesn't see the run directory, which process 0 has made")
