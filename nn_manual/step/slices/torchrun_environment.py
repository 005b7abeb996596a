"""What the environment says to a process that torchrun has started."""

from __future__ import annotations

import os

from nn_manual.errors import ConfigError
from nn_manual.messages.text import quoted

#: What torchrun sets in the environment of each process.
RANK, WORLD_SIZE, RESTARTS = "RANK", "WORLD_SIZE", "TORCHELASTIC_RESTART_COUNT"
ADDRESS, PORT = "MASTER_ADDR", "MASTER_PORT"
#: TCP has no higher port.
MOST_PORT = 65_535

#: The variable with the seconds that a process waits for the others in one collective. By default, a run that has lost
#: a process ends within a minute: it takes a few seconds more to find out which one.
TIME_LIMIT = "NN_MANUAL_TIME_LIMIT"
SECONDS = 55.0
#: A day: torch counts the limit in milliseconds, and a far larger one would overflow.
MOST_SECONDS = 86_400.0


def is_by_torchrun() -> bool:
    """Whether torchrun has started this process, and so has the store."""
    return os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True"


def number(name: str, default: int, *, least: int = 0, most: int | None = None) -> int:
    """The integer that the environment has under this name. Raises ConfigError for a text that is none, and for one out
    of range.
    """
    text = os.environ.get(name, str(default))
    if not text.isdecimal() or int(text) < least or (most is not None and int(text) > most):
        known = f"an integer from {least}" + ("" if most is None else f" to {most}")
        raise ConfigError(f"{name} must be {known}, as torchrun sets it, not {quoted(text)}")
    return int(text)


def seconds_of(text: str) -> float | None:
    """The limit that the environment gives, in seconds; None for a text that can't be one."""
    try:
        seconds = float(text)
    except ValueError:
        return None
    return seconds if 0 < seconds < MOST_SECONDS else None
