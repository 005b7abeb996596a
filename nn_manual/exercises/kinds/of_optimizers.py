"""Optimizers as exercises: the reader writes move, the formulas of a step."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import numpy as np

from nn_manual.check.catalogue.input_kinds import draw
from nn_manual.exercises.kinds.exercise import Case, Exercise, Results
from nn_manual.exercises.kinds.untouched import Untouched
from nn_manual.layers import Linear, Tanh
from nn_manual.model import Sequential
from nn_manual.optim import Optimizer

SEED = 0
#: Enough for a count of steps that is off by one, and for a state that is kept or lost, to show; and RAdam's formula is
#: another one from the sixth step on.
NUM_STEPS = 7
#: The kinds of gradients. Scattered ones make the parameters diverge.
KINDS = ("random", "negative", "tied", "zero", "tiny")


class OptimizerExercise(Exercise):
    """`owner` is a class of optimizers."""

    methods: ClassVar[tuple[str, ...]] = ("move",)
    given: ClassVar[tuple[str, ...]] = ("vector_names", "coefficients")
    room: ClassVar[str] = "optim"

    def cases(self) -> list[Case]:
        """Each example, on steps with each kind of gradients."""
        found = []
        for settings in self.owner.examples():
            written = ", ".join(f"{name}={value!r}" for name, value in settings.items())
            for kind in KINDS:
                run = functools.partial(self._run, settings=settings, kind=kind)
                instance = self._optimizer(self.owner, settings)
                prepare = functools.partial(self._prepare, settings=settings, kind=kind)
                title = f"{self.title}({written})"
                found.append(Case(title, f"{kind} gradients", run, {}, instance, prepare=prepare))
        return found

    def _optimizer(self, own: type[Optimizer], settings: Mapping[str, Any]) -> Optimizer:
        bias = self.owner.num_dims is None
        model = Sequential(Linear(3, 4, bias=bias), Tanh(), Linear(4, 2, bias=bias), seed=SEED, dtype="float64")
        return own(model, **{"lr": 0.1} | dict(settings))

    def _run(self, own: type[Optimizer], settings: Mapping[str, Any], kind: str) -> Results:
        return self._prepare(own, settings, kind)(True)

    def _prepare(self, own: type[Optimizer], settings: Mapping[str, Any], kind: str) -> Callable[[bool], Results]:
        optimizer = self._optimizer(own, settings)
        arena, generator = optimizer.model.grad_arena, np.random.default_rng(SEED)
        grads = [draw(kind, arena.shape, "float64", generator) for _ in range(NUM_STEPS)]
        lr = optimizer.lr
        before = [(vector, vector.copy()) for vector in (optimizer.model.param_arena, *optimizer.vectors.values())]

        def run(forward: bool) -> Results:  # noqa: ARG001 - an optimizer has none
            optimizer.num_steps = 0
            for vector, start in before:
                vector[...] = start
            results = {}
            for step, grad in enumerate(grads, start=1):
                arena[...] = grad
                optimizer.lr = lr / step  # an lr kept from the last step shows
                untouched = Untouched(optimizer)
                optimizer.step()
                untouched.refuse_changes()
                for name, vector in optimizer.vectors.items():
                    results[f"{name} after step {step}"] = vector.copy()
                results[f"parameters after step {step}"] = optimizer.model.param_arena.copy()
            return results

        return run

    def wanted(self) -> str:
        """What move does."""
        return "Make one step of param and of the vectors, in place. `coefficients` has the numbers of this step."
