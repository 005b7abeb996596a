"""The arrays between the layers of a compiled step, in the form that the check takes.

A checked step runs the same operations as a step that isn't checked, and the check proves the step that ran. Since the
arrays are written to memory, LLVM may add up a short sum in another order than where nobody wants them.
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

#: The fields of a layer's record: the arrays that it received and returned, its calls, and what it saved.
ARRAYS = ("input", "output", "grad_output", "grad_input")
COUNTS = ("place", "num_forwards", "num_backwards", "num_updates", "only_parameters")
SAVED = ("saved", "saved_again", "saved_for_update")
OF_LOSS = ("prediction", "grad_prediction")


class Boundaries:
    """Watches the layers while a step is traced; later fills a recording with the arrays of a step that the plan ran.

        boundaries = Boundaries(copy_grads=...)
        plan = compile_step(..., observe=boundaries.observe)
        plan.run(inputs, targets, of_steps)
        boundaries.fill(recorded, plan.results(inputs, targets, of_steps), input, target)

    If buffers move after the step, `kept` has what they need.
    """

    def __init__(self, *, copy_grads: bool, kept: KeptForBuffers | None = None) -> None:
        self._copy_grads, self._kept = copy_grads, kept
        #: For each layer, in the order of a recording: what its record has besides arrays.
        self._calls: list[dict[str, Any]] = []

    @contextmanager
    def observe(self, model: Sequential, loss: Loss) -> Iterator[Callable[[Sequence[Any]], Mapping[str, Array]]]:
        """The context in which the traced step runs."""
        from nn_manual.check.step.recording import Recording

        traced = Recording(model, loss, copy_grads=self._copy_grads)
        with traced:
            yield functools.partial(self._arrays, traced)

    def _arrays(self, traced: Recording, saved: Sequence[Any]) -> dict[str, Array]:
        """All arrays that passed between layers in the step that has run, by names."""
        found: dict[str, Any] = {f"loss.{name}": getattr(traced.loss, name) for name in OF_LOSS}
        found |= {} if self._kept is None else self._kept.arrays(saved)
        self._calls = []
        for i, calls in enumerate(traced.layers):
            found |= {f"{i}.{name}": getattr(calls, name) for name in ARRAYS}
            if self._copy_grads:
                found |= {f"{i}.grads.{name}": grad for name, grad in calls.grads.items()}
            # The plan keeps what was saved. The record gets a mark instead: the same mark for the same object.
            marks = {id(getattr(calls, name)): object() for name in SAVED}
            if self._kept is not None:
                marks |= {identity: self._kept.names[identity] for identity in marks & self._kept.names.keys()}
            marked = {name: marks[id(getattr(calls, name))] for name in SAVED}
            self._calls.append({name: getattr(calls, name) for name in COUNTS} | marked)
        del found[f"{traced.layers.index(traced.first)}.input"]  # whoever fills a recording has it
        return {name: array for name, array in found.items() if isinstance(array, np.ndarray)}

    def fill(
        self,
        recorded: Recording,
        arrays: Mapping[str, Array],
        input: Array,
        target: Array,
        kept: Mapping[str, Any] | None = None,
    ) -> None:
        """Fill a recording with the arrays of a step on `input` and `target`, as they were before it. `kept` is what
        the buffers need later, by the names of its parts.
        """
        for i, (calls, attributes) in enumerate(zip(recorded.layers, self._calls, strict=True)):
            marked = {name: kept[attributes[name]] for name in SAVED if kept and attributes[name] in kept}
            vars(calls).update(attributes | marked)
            calls.keep_noise()
            for name in ARRAYS:
                setattr(calls, name, arrays.get(f"{i}.{name}"))
            if self._copy_grads:
                calls.grads = {name: arrays[f"{i}.grads.{name}"] for name in calls.grad_views}
        recorded.first.input = input
        loss = recorded.loss
        loss.target, loss.value = target, arrays["loss"][()]
        for name in OF_LOSS:
            setattr(loss, name, arrays[f"loss.{name}"])
