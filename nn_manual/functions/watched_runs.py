"""A function's runs, watched for writes into its inputs, into what it saved and into what it returned.

Who writes there has a habit. It is reported, and what was there is written back: so it doesn't hide what is wrong with
the values.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch

from nn_manual.check.conduct.unchanged import Unchanged, arrays_in, same_values
from nn_manual.functions.arguments import as_tensor
from nn_manual.functions.callables import Forward, as_copy, is_array
from nn_manual.functions.exceptions import naming
from nn_manual.functions.function_case import FunctionCase
from nn_manual.functions.handwritten import Handwritten, run_function
from nn_manual.functions.outputs import Outputs
from nn_manual.functions.randomness import IsRandom, varying_output, words

#: What a habit writes into, and how the names of arrays begin that belong there: "saved[0]" is part of what forward
#: saved.
HABITS = {
    "inputs": "its input ",
    "saved": "saved",
    "grad_output": "the gradient of its ",
    "returned": "",
}


class Between(NamedTuple):
    """What runs between a forward and its backward, on what that forward returned; and what a message calls that
    backward.
    """

    run: Callable[[Forward], object]
    backward: str = "backward, after forward ran again on other values,"


class WatchedRuns:
    """The runs of a case's function. `habits` gets a sentence for each of the HABITS that is seen."""

    def __init__(self, case: FunctionCase, habits: dict[str, str]) -> None:
        self.case, self.kept, self.habits = case, Unchanged(case.label, {}), habits
        self.names = case.arguments.names
        self.forward: Forward | None = None
        self.first: dict[str, Any] = {}
        self.returned = Outputs({}, {})

    def keep(self, arrays: dict[str, Any]) -> None:
        """Watch these arrays, too, also those of text or objects."""
        if self.case.watched:
            kinds = np.ndarray | torch.Tensor
            self.kept.add({name: array for name, array in arrays.items() if isinstance(array, kinds)})

    def run_forward(self) -> dict[str, Any]:
        """Run forward, and return its outputs by name. The next run of backward belongs to it."""
        case = self.case
        leaves = case.leaves_in_layout()
        with naming(case.label, "forward"):
            self.forward = run_function(case.function, case.arguments, leaves, case.wants())
        self.returned, outputs = self.forward.returned, self.forward.outputs
        with naming(case.label, "reading what forward returned"):
            if case.watched:
                self._check_inputs(leaves)
            self.keep({f"its {name}": output.detach() for name, output in outputs.items() if is_array(output)})
            self.keep({f"saved{place}": array for place, array in arrays_in(self.forward.saved)})
            # What an object saved can't be seen, but these may be part of it.
            given = zip(self.names, self.forward.given, strict=True)
            self.keep({f"{HABITS['inputs']}{name}": array for name, array in given})
        return outputs

    def _check_inputs(self, leaves: list[Any]) -> None:
        """The function may work in place on an input that it returns, and on no other."""
        assert self.forward is not None
        for name, before, after in zip(self.names, leaves, self.forward.given, strict=True):
            if before is after or not is_array(after) or any(after is out for out in self.forward.outputs.values()):
                continue
            if not same_values(as_tensor(before).detach(), as_tensor(after).detach()):
                words = f"forward wrote into {name}"
                if not isinstance(self.case.function, Handwritten):
                    words += "; an autograd.Function that works in place returns its input and calls mark_dirty"
                self.habits.setdefault("inputs", words)

    def run_backward(self, grad_outputs: dict[str, torch.Tensor], between: Between | None) -> list[Any]:
        """The gradients, by one backward after one forward."""
        case = self.case
        # Here they must be near each other: the row `determinism` compares every bit.
        if self.forward is None and (name := varying_output((self.first, self.run_forward()), {})):
            raise IsRandom(words(case.label, name))
        assert self.forward is not None
        doing = "backward"
        if between is not None:
            between.run(self.forward)
            self.kept.check("forward, run again on other values, overwrote")
            doing = between.backward
        if "grad_output" in case.habits and not case.watched:
            grad_outputs = {name: as_copy(grad) for name, grad in grad_outputs.items()}
        self.keep({f"the gradient of its {name}": grad for name, grad in grad_outputs.items()})
        with naming(case.label, doing):
            grads = self.forward.backward(grad_outputs)
            if self.kept.changed():  # what was returned may lie in what it wrote into
                grads = [grad.detach().clone() if isinstance(grad, torch.Tensor) else grad for grad in grads]
            seen: dict[str, str] = {}
            for what in self.kept.restore():
                habit = next(habit for habit, words in HABITS.items() if what.startswith(words))
                seen.setdefault(habit, f"backward wrote into {what}")
            if "saved" in seen:  # an input that was saved is the same memory
                seen.pop("inputs", None)
            for habit, sentence in seen.items():
                self.habits.setdefault(habit, sentence)
        self.first, self.forward = self.first or self.forward.outputs, None
        return grads
