"""Learn a gradient by deriving it: every component of the package without its derivative, and a check of solutions.

    from nn_manual.exercises import check, check_tensors
"""

from nn_manual.exercises.commands.notebook_checks import check, check_tensors

__all__ = ["check", "check_tensors"]
