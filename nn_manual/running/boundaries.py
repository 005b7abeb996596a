"""What a compiled step leaves between the layers, in the form in which the check watches a step that runs as written.

The plan computes these values anyway, by the same operations whether a step is checked or not: so it is what ran that
is proven.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from nn_manual.arrays import Array
from nn_manual.losses import Loss
from nn_manual.model import Sequential

if TYPE_CHECKING:  # torch is only loaded for a run that is checked
    from nn_manual.check.step.recording import Recording

#: What a layer received and returned, and how often it was called.
ARRAYS = ("input", "output", "grad_output", "grad_input")
COUNTS = ("place", "num_forwards", "num_backwards", "num_updates", "only_parameters")
OF_LOSS = ("prediction", "grad_prediction")


class Boundaries:
    """Watches the layers while a step is traced, and fills a recording with what a step of the plan left.

        boundaries = Boundaries(copy_grads=...)
        plan = compile_step(..., observe=boundaries.observe)
        plan.run(inputs, targets, of_steps)
        boundaries.fill(recorded, plan.results(inputs, targets), target)
    """

    def __init__(self, *, copy_grads: bool) -> None:
        self._copy_grads = copy_grads
        self._traced: Recording | None = None

    @contextmanager
    def observe(self, model: Sequential, loss: Loss) -> Iterator[Callable[[], Mapping[str, Array]]]:
        """The context in which the step that is traced runs."""
        from nn_manual.check.step.recording import Recording

        self._traced = Recording(model, loss, copy_grads=self._copy_grads)
        with self._traced:
            yield self._arrays

    def _arrays(self) -> dict[str, Array]:
        """All that passed between layers, by names."""
        assert self._traced is not None  # the step has run
        found: dict[str, Any] = {f"loss.{name}": getattr(self._traced.loss, name) for name in OF_LOSS}
        for i, calls in enumerate(self._traced.layers):
            found |= {f"{i}.{name}": getattr(calls, name) for name in ARRAYS}
            if self._copy_grads:
                found |= {f"{i}.grads.{name}": grad for name, grad in calls.grads.items()}
        return {name: array for name, array in found.items() if isinstance(array, np.ndarray)}

    def fill(self, recorded: Recording, arrays: Mapping[str, Array], target: Array) -> None:
        """Let a recording be of the step that left these arrays."""
        assert self._traced is not None  # there is a plan
        for i, (calls, traced) in enumerate(zip(recorded.layers, self._traced.layers, strict=True)):
            for name in COUNTS:
                setattr(calls, name, getattr(traced, name))
            for name in ARRAYS:
                setattr(calls, name, arrays.get(f"{i}.{name}"))
            if self._copy_grads:
                calls.grads = {name: arrays[f"{i}.grads.{name}"] for name in traced.grads}
            calls.saved = calls.saved_again = calls.saved_for_update = self  # it was the plan that kept it
        loss = recorded.loss
        loss.target, loss.value = target, arrays["loss"][()]
        for name in OF_LOSS:
            setattr(loss, name, arrays[f"loss.{name}"])
