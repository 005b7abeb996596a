"""A traced step, with the places in the source where its operations come from.

For each operation there is the expression in the source, and the arrays in the local variables there. For each layer
there is what it was given and what it returned.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterable, Mapping
from types import CodeType, FrameType
from typing import Any, NamedTuple

import numpy as np

from nn_manual.arrays import Array
from nn_manual.layers.composite import descendants
from nn_manual.losses import Loss
from nn_manual.model import Sequential
from nn_manual.optim import Clipping, Optimizer
from nn_manual.trace.operation_log import NOT_FORMULAS
from nn_manual.trace.step_arrays import given
from nn_manual.trace.trace import Trace, TracedOperation, View
from nn_manual.trace.traced import Traced
from nn_manual.trace.traced_step import TracedStep
from nn_manual.trace.tracer import Tracer


class Frame(NamedTuple):
    """A running function: its code; the position (first line, last line, first column, last column) of the expression
    that runs; a number of its own; the arrays and the numbers in its local variables; the object whose method it is,
    and whether this object is an owner.
    """

    code: CodeType
    position: tuple[int | None, ...]
    number: int
    views: Mapping[str, View]
    values: Mapping[str, Any]
    instance: Any
    is_owners: bool


class Site(NamedTuple):
    """Where an operation stands: the running functions, the innermost first, without NumPy's, up to the last method of
    the same owner. `part_of` is the innermost NumPy function that the operation is a part of, "" if there is none.
    """

    frames: tuple[Frame, ...]
    part_of: str


class MethodCall(NamedTuple):
    """A call of a layer's or the loss's method: the owner, where the call begins and ends in the list of operations,
    and the input and output, None if they aren't arrays.
    """

    owner: str
    method: str
    start: int
    stop: int
    input: View | None
    output: View | None


class Observed(NamedTuple):
    """A trace; the site of each of its operations; the calls, in the order in which they end; the form of each storage;
    the gradients of each use of a shared parameter, by name; and the optimizer with its copies for groups of
    parameters. `loops` has, for each loop over time, the operations where its iterations begin, and the one where the
    last one ends.
    """

    trace: Trace
    sites: list[Site]
    calls: list[MethodCall]
    forms: list[View]
    use_grads: dict[str, View]
    members: list[Optimizer]
    loops: list[list[int]]

    @property
    def operations(self) -> list[TracedOperation]:
        """The trace's."""
        return self.trace.operations


def observe_step(
    model: Sequential, loss: Loss, optimizer: Optimizer, input: Array, target: Array, clipping: Clipping | None = None
) -> Observed:
    """Trace a step as `trace_step` does, but once, on these values alone."""
    step = _ObservedStep(model, loss, optimizer, clipping)
    trace = step.record(given(step.model, step.optimizer, input, target)).trace
    tracer = step.observer
    uses = {name: tracer.memory.view(grad) for name, grad in step.model.ties.use_grads.items()}
    return Observed(
        trace,
        tracer.sites,
        tracer.calls,
        tracer.memory.forms(),
        uses,
        step.optimizer.members,
        tracer.loops,
    )


class _Observer(Tracer):
    """A Tracer that also notes the site of each operation."""

    def __init__(self, owners: Mapping[int, str], *, keeps_sums: bool = False) -> None:
        super().__init__(owners, keeps_sums=keeps_sums)
        self.sites: list[Site] = []
        self.calls: list[MethodCall] = []
        self._frames: dict[int, tuple[FrameType, int]] = {}  # kept alive so that no other frame gets its identity

    def record(self, *operation: Any, is_in_place: bool = False) -> None:
        """Note the operation, and its site."""
        super().record(*operation, is_in_place=is_in_place)
        self.sites.append(self._site())

    def watch(self, label: str, owner: Any, methods: Iterable[str]) -> None:
        """Note each call of these methods, except calls that one of them makes."""
        running: list[str] = []

        def watched(method: str, function: Callable[..., Any], *arguments: Any) -> Any:
            if running:
                return function(*arguments)
            running.append(method)
            start = len(self.operations)
            result = function(*arguments)
            running.pop()
            output = result[0] if type(result) is tuple else result
            given, made = (self.memory.view(a) if isinstance(a, Traced) else None for a in (arguments[-1], output))
            self.calls.append(MethodCall(label, method, start, len(self.operations), given, made))
            return result

        for method in methods:
            setattr(owner, method, functools.partial(watched, method, getattr(owner, method)))

    def _site(self) -> Site:
        frame: FrameType | None = sys._getframe(1)
        frames: list[Frame] = []
        part_of, label = "", ""
        while frame is not None:
            code, owner = frame.f_code, self._owners.get(id(frame.f_locals.get("self")), "")
            if not owner and label:
                break
            if not code.co_filename.startswith(NOT_FORMULAS):
                if label and owner != label:
                    break
                frames.append(self._frame(frame, is_owners=bool(owner)))
                label = label or owner
            elif frames and not label:
                break
            elif not frames and "numpy" in code.co_filename:
                part_of = code.co_name
            frame = frame.f_back
        return Site(tuple(frames), part_of)

    def _frame(self, frame: FrameType, *, is_owners: bool) -> Frame:
        _, number = self._frames.setdefault(id(frame), (frame, len(self._frames)))
        position = list(frame.f_code.co_positions())[frame.f_lasti // 2]
        views, values = {}, {}
        for name, value in frame.f_locals.items():
            if isinstance(value, Traced):
                views[name] = self.memory.view(value)
            elif isinstance(value, int | float | np.generic | np.ndarray | tuple):
                values[name] = value
        instance = frame.f_locals.get("self")
        return Frame(frame.f_code, position, number, views, values, instance, is_owners)


class _ObservedStep(TracedStep):
    """A step that notes the calls of its layers and its loss."""

    observer: _Observer

    def tracer(self, owners: Mapping[int, str], *, keeps_sums: bool = False) -> Tracer:
        """An _Observer that watches the layers and the loss."""
        self.observer = _Observer(owners, keeps_sums=keeps_sums)
        for _, layer in descendants(self.model):
            if not isinstance(layer, Sequential):
                self.observer.watch(owners[id(layer)], layer, LAYER_METHODS)
        self.observer.watch("loss", self.loss, ("forward", "backward"))
        return self.observer


#: The methods of a layer that a step calls.
LAYER_METHODS = ("forward", "backward", "backward_parameters", "update_buffers")
