"""Where the user's own code lies: the file and line that a message about a layer or a loss names.

One of the package has no place: there is nothing for the user to mend in it.
"""

from __future__ import annotations

import inspect
from pathlib import Path
from types import CodeType
from typing import Any

from nn_manual.layers.base import Layer
from nn_manual.losses import Loss
from nn_manual.messages.users_lines import last_line

PACKAGE = Path(__file__).parents[2]

#: What a layer's or a loss's own code may raise in.
_METHODS = ("forward", "backward", "backward_parameters", "update_buffers", "infer", "draw_noise", "term", "derivative")


def place_of_method(owner: Layer | Loss, method: str) -> str:
    """` (file:line)` of where the owner's method begins, or nothing."""
    code = _own_code(owner, method)
    return "" if code is None else f" ({code.co_filename}:{code.co_firstlineno})"


def place_of_error(owner: Layer | Loss, error: BaseException) -> str:
    """` (file:line)` of the last line of the user's own that ran before the owner raised, or nothing."""
    codes = [_own_code(owner, method) for method in _METHODS]
    places = [last_line(error, Path(code.co_filename).parent) for code in codes if code is not None]
    return next((f" ({place})" for place in places if place is not None), "")


def _own_code(owner: Layer | Loss, method: str) -> CodeType | None:
    """The code of a method that the package doesn't define."""
    function: Any = getattr(type(owner), method, None)  # few layers draw noise
    code: CodeType | None = getattr(inspect.unwrap(function), "__code__", None)
    return None if code is None or Path(code.co_filename).is_relative_to(PACKAGE) else code
