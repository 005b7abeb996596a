"""Learn a gradient by deriving it: every component of the package without its derivative, and a check of solutions.

    from nn_manual.exercises import check, check_tensors
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from nn_manual.exercises.commands.notebook_checks import check, check_tensors

__all__ = ["check", "check_tensors"]


def __getattr__(name: str) -> Any:
    """The checks of notebooks, imported where they are asked for: a process that runs a reader's file needs none."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from nn_manual.exercises.commands import notebook_checks

    return getattr(notebook_checks, name)
