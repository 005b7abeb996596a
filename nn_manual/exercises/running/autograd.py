"""Whether a reader's code asks torch's autograd for a gradient."""

from __future__ import annotations

import sys
import traceback
from pathlib import Path
from typing import Any

from nn_manual.exercises.running.answer import Failure

#: The functions of torch.autograd through which tensors, torch.autograd and torch.func get gradients.
FUNCTIONS = ("backward", "grad")
#: The note about a file that does so.
ASKS = "it asks torch's autograd for the gradient, which the exercise is to derive"


class Autograd:
    """Listens to torch's autograd, once a file has imported torch. `notes` says where the file calls it."""

    def __init__(self, file: Path) -> None:
        self._file = str(file)
        self._listens = False
        self.notes: list[Failure] = []
        self.look()

    def look(self) -> None:
        """Listen from now on, if torch is there by now."""
        torch: Any = sys.modules.get("torch")
        if torch is None or self._listens or not hasattr(torch, "autograd"):
            return
        self._listens = True
        for name in FUNCTIONS:
            setattr(torch.autograd, name, self._heard(getattr(torch.autograd, name)))

    def _heard(self, function: Any) -> Any:
        def heard(*arguments: Any, **named: Any) -> Any:
            lines = [frame.lineno for frame in traceback.extract_stack() if frame.filename == self._file]
            if lines and not self.notes:
                self.notes.append(Failure(ASKS, lines[-1] or 0))
            return function(*arguments, **named)

        return heard
