"""What a compiled step leaves between the layers, in the form in which the check watches a step that runs as written.

The plan computes these values anyway, by the same operations whether a step is checked or not: so it is what ran that
is proven.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from nn_manual.arrays import Array
from nn_manual.compile.kept_for_buffers import KeptForBuffers
from nn_manual.losses import Loss
from nn_manual.model import Sequential

if TYPE_CHECKING:  # torch is only loaded for a run that is checked
    from nn_manual.check.step.recording import Recording

#: What a layer received and returned; how often it was called; and where what it saved goes.
ARRAYS = ("input", "output", "grad_output", "grad_input")
COUNTS = ("place", "num_forwards", "num_backwards", "num_updates", "only_parameters")
SAVED = ("saved", "saved_again", "saved_for_update")
OF_LOSS = ("prediction", "grad_prediction")


class Boundaries:
    """Watches the layers while a step is traced, and fills a recording with what a step of the plan left.

        boundaries = Boundaries(copy_grads=...)
        plan = compile_step(..., observe=boundaries.observe)
        plan.run(inputs, targets, of_steps)
        boundaries.fill(recorded, plan.results(inputs, targets), target)

    Of a step whose buffers move later, `kept` has what they are moved by.
    """

    def __init__(self, *, copy_grads: bool, kept: KeptForBuffers | None = None) -> None:
        self._copy_grads, self._kept = copy_grads, kept
        #: Of each layer, in the order of a recording, what a call of it leaves besides arrays.
        self._calls: list[dict[str, Any]] = []

    @contextmanager
    def observe(self, model: Sequential, loss: Loss) -> Iterator[Callable[[Sequence[Any]], Mapping[str, Array]]]:
        """The context in which the step that is traced runs."""
        from nn_manual.check.step.recording import Recording

        traced = Recording(model, loss, copy_grads=self._copy_grads)
        with traced:
            yield functools.partial(self._arrays, traced)

    def _arrays(self, traced: Recording, saved: Sequence[Any]) -> dict[str, Array]:
        """All that passed between layers, by names, of the step that has run."""
        found: dict[str, Any] = {f"loss.{name}": getattr(traced.loss, name) for name in OF_LOSS}
        found |= {} if self._kept is None else self._kept.arrays(saved)
        self._calls = []
        for i, calls in enumerate(traced.layers):
            found |= {f"{i}.{name}": getattr(calls, name) for name in ARRAYS}
            if self._copy_grads:
                found |= {f"{i}.grads.{name}": grad for name, grad in calls.grads.items()}
            # In the place of what was saved, which the plan keeps, a mark: the same one for the same object.
            marks = {id(getattr(calls, name)): object() for name in SAVED}
            if self._kept is not None:
                marks |= {identity: self._kept.names[identity] for identity in marks & self._kept.names.keys()}
            marked = {name: marks[id(getattr(calls, name))] for name in SAVED}
            self._calls.append({name: getattr(calls, name) for name in COUNTS} | marked)
        return {name: array for name, array in found.items() if isinstance(array, np.ndarray)}

    def fill(
        self, recorded: Recording, arrays: Mapping[str, Array], target: Array, kept: Mapping[str, Any] | None = None
    ) -> None:
        """Let a recording be of the step that left these arrays; `kept` is what the buffers will be moved by."""
        for i, (calls, attributes) in enumerate(zip(recorded.layers, self._calls, strict=True)):
            marked = {name: kept[attributes[name]] for name in SAVED if kept and attributes[name] in kept}
            vars(calls).update(attributes | marked)
            calls.keep_noise()
            for name in ARRAYS:
                setattr(calls, name, arrays.get(f"{i}.{name}"))
            if self._copy_grads:
                calls.grads = {name: arrays[f"{i}.grads.{name}"] for name in calls.grad_views}
        loss = recorded.loss
        loss.target, loss.value = target, arrays["loss"][()]
        for name in OF_LOSS:
            setattr(loss, name, arrays[f"loss.{name}"])
