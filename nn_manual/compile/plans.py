"""The plans of a trainer. Each is made when it is needed for the first time."""

from __future__ import annotations

import sys
from collections.abc import Hashable, Mapping
from dataclasses import fields, is_dataclass
from types import NoneType
from typing import Any, Protocol

from nn_manual.arrays import Array, Shape
from nn_manual.compile.blas import Choice, check_choice, check_threads
from nn_manual.compile.compile_step import Report, check_numba
from nn_manual.compile.plan import Plan
from nn_manual.layers.composite import descendants
from nn_manual.losses import Loss
from nn_manual.messages.text import noted
from nn_manual.model import Sequential
from nn_manual.optim import Clipping, Optimizer, Scheduler
from nn_manual.optim.scheduling import settings_that_stay
from nn_manual.trace.proving import fingerprint
from nn_manual.trace.trace import CannotTrace


class Compile(Protocol):
    """A function that makes a plan. It raises the errors of compile_step."""

    def __call__(self, *, report: Report, choice: Choice, loop_threads: int | None) -> Plan:
        """`report` takes a line for the user; `choice` says which BLAS multiplies, on how many threads, and
        `loop_threads` on how many loops run.
        """


class Plans:
    """Plans by keys. `reason` says why there is no plan, or why a plan leaves something to NumPy. Unless `is_silent`,
    this is printed once. `choice` is the BLAS and the number of threads. If one of these is None, the first plan sets
    it.

    Raises NoNumba if numba isn't installed, NoBlas for a BLAS that isn't there, and ConfigError for a bad number of
    threads.
    """

    def __init__(self, choice: Choice, loop_threads: int | None = None, *, is_silent: bool = False) -> None:
        check_numba()
        check_choice(choice)
        check_threads("loop_threads", loop_threads)
        self.choice, self.loop_threads, self.reason = choice, loop_threads, ""
        self._is_silent = is_silent
        self._plans: dict[Hashable, Plan | None] = {}
        self._settings: list[str | bytes] = []

    def renew(self, settings: list[str | bytes]) -> None:
        """Forget plans that were made with other settings."""
        if settings != self._settings:
            self._plans.clear()
            self._settings = settings

    def __contains__(self, key: Hashable) -> bool:
        return key in self._plans

    def __getitem__(self, key: Hashable) -> Plan:
        """A plan that was made."""
        plan = self._plans[key]
        assert plan is not None
        return plan

    def of(self, key: Hashable, make: Compile) -> Plan | None:
        """The plan of a key. `make` makes it if there is none yet. None if the step can't be traced."""
        if key not in self._plans:
            try:
                made = make(report=self._note, choice=self.choice, loop_threads=self.loop_threads)
                self._plans[key], self.choice = made, Choice(made.blas.name, made.threads)
            except CannotTrace as error:
                self._plans[key], self.reason = None, str(error)
                self._note(f"this model isn't compiled: {error}")
        plan = self._plans[key]
        if plan is not None and plan.reasons and not self.reason:
            self.reason = "; ".join(plan.reasons)
            self._note(f"not all of this model is compiled: {self.reason}")
        return plan

    def _note(self, line: str) -> None:
        if not self._is_silent:
            print(noted(f"note: {line}", sys.stderr), file=sys.stderr)


def may_compile(model: Sequential, *, is_silent: bool) -> bool:
    """Whether the steps of a model can be compiled, as far as its layers say. A note says why not: lengths of sequences
    are another input, which a plan doesn't take.
    """
    if model.lengths_heeded_by and not is_silent:
        note = f"note: this model isn't compiled: {model.lengths_heeded_by} heeds lengths"
        print(noted(note, sys.stderr), file=sys.stderr)
    return not model.lengths_heeded_by


#: For these types repr says everything, in a tenth of the time of a fingerprint. It is called before each run.
PLAIN = (bool, int, float, str, NoneType)


def settings_of(
    model: Sequential, loss: Loss, optimizer: Optimizer, clipping: Clipping | None, scheduler: Scheduler | None
) -> list[str | bytes]:
    """A list that stays equal while no setting of layers, loss, optimizer and clipping changes. The lr and what the
    schedule moves don't count: a plan is given them anew for each step. The type of the loss counts.
    """
    parts: list[Any] = [layer for _, layer in descendants(model)]
    values: list[Any] = [repr(clipping), f"{type(loss).__module__}.{type(loss).__qualname__}"]
    values += [
        getattr(part, item.name)
        for part in (*parts, loss)
        if is_dataclass(part)
        for item in fields(part)
    ]
    values.append(optimizer.groups)
    values += settings_that_stay(optimizer, scheduler).values()
    return [repr(value) if type(value) in PLAIN else fingerprint(value) for value in values]


def takes_noise(plan: Plan) -> bool:
    """Whether a plan's steps are given random numbers."""
    return any(".noise." in name for name in plan.of_steps)


def noise_of(model: Sequential, input_shape: Shape, step: int) -> Mapping[str, Array]:
    """The random numbers for a forward on inputs of this shape, from the model's first row on, by their names in a
    trace.
    """
    model.bind_noise(input_shape, step)
    layers = [(name, vars(layer.noise)) for name, layer in descendants(model) if hasattr(layer, "noise")]
    return {f"{name}.noise.{key}": array for name, noise in layers for key, array in noise.items()}
