"""A step as a script: traced for two sizes of the batch, merged, and run beside the step itself."""

from __future__ import annotations

from typing import NamedTuple

from nn_manual.losses import Loss
from nn_manual.model import Sequential
from nn_manual.optim import Optimizer
from nn_manual.running.trainer import Batch
from nn_manual.trace.observed import observe_step
from nn_manual.trace.step import trace_step
from nn_manual.unroll.batch import Differs, merged
from nn_manual.unroll.constants import Settings
from nn_manual.unroll.given import Given, given_to
from nn_manual.unroll.statements import Statement, Statements
from nn_manual.unroll.text import Name, Parts
from nn_manual.unroll.versions import Versions


class Script(NamedTuple):
    """The statements of a step, what it gets, and the settings and the arrays that its statements name."""

    lines: list[Statement]
    given: Given
    settings: Settings
    fixed: dict[Name, Parts]
    #: The names of the optimizer's vectors.
    vectors: list[str]


def script_of(
    model: Sequential, loss: Loss, optimizer: Optimizer, batch: Batch, other: Batch, max_norm: float | None = None
) -> Script:
    """The script of a step on a batch of the size of either. Raises CannotTrace as `trace_step` does."""
    trace_step(model, loss, optimizer, *batch, max_norm)  # what can't be traced is found there
    own, its = (_script_of(model, loss, optimizer, each, max_norm) for each in (batch, other))
    sizes = len(batch[0]), len(other[0])
    texts = [line.parts for line in own.lines], [line.parts for line in its.lines]
    lines = [line._replace(parts=parts) for line, parts in zip(own.lines, merged(*texts, *sizes), strict=True)]
    if own.fixed.keys() != its.fixed.keys():
        raise Differs
    fixed = dict(zip(own.fixed, merged(list(own.fixed.values()), list(its.fixed.values()), *sizes), strict=True))
    return own._replace(lines=lines, fixed=fixed)


def _script_of(
    model: Sequential, loss: Loss, optimizer: Optimizer, batch: Batch, max_norm: float | None
) -> Script:
    observed = observe_step(model, loss, optimizer, *batch, max_norm)
    layers = [layer for _, layer in model.descendants()]
    settings = Settings(name for layer in layers for name, value in vars(layer).items() if isinstance(value, float))
    given = given_to(observed, model, optimizer, settings)
    versions = Versions(observed, given.arrays, given.gradients)
    statements = Statements(observed, versions, settings, given.names)
    return Script(statements.lines, given, settings, {name: text.parts for text, name in statements.fixed.items()}, list(optimizer.vectors))
