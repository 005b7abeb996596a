"""The script of a step: the step is traced for two sizes of the batch, and the two are merged."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import NamedTuple

from nn_manual.arrays import Shape
from nn_manual.data import Examples
from nn_manual.layers.composite import descendants
from nn_manual.losses import Loss
from nn_manual.model import Sequential
from nn_manual.optim import Clipping, Optimizer
from nn_manual.trace.observed import observe_step
from nn_manual.trace.step import trace_step
from nn_manual.trainer.steps import Batch
from nn_manual.unroll.batch import Differs, merged
from nn_manual.unroll.constants import NamedSettings
from nn_manual.unroll.layer_functions import Function, with_functions
from nn_manual.unroll.statement import Statement
from nn_manual.unroll.statements import Statements
from nn_manual.unroll.step_inputs import Given, given_to
from nn_manual.unroll.syntax import Name, Parts
from nn_manual.unroll.versions import Versions


class Script(NamedTuple):
    """The statements of a step, what the step is given, and the settings and fixed arrays that the statements name."""

    lines: list[Statement]
    given: Given
    settings: NamedSettings
    fixed: dict[Name, Parts]
    #: The names of the optimizer's vectors.
    vectors: list[str]
    #: The shapes of all arrays that have names.
    shapes: dict[Name, Shape]
    functions: Sequence[Function] = ()

    @property
    def texts(self) -> list[Parts]:
        """The texts of functions, fixed arrays and step, then those of the assignments that they need."""
        texts = [parts for function in self.functions for _, parts in function.lines]
        texts += [*self.fixed.values(), *(line.parts for line in self.lines)]
        said = {part for parts in texts for part in parts}
        for name, text in reversed(list(itertools.chain(*self.given.before))):
            if name in said:
                said |= set(text.parts)
                texts.append(text.parts)
        return texts

    @property
    def names(self) -> set[Name]:
        """The names of all variables and settings in functions and step."""
        return {part for parts in self.texts for part in parts if isinstance(part, Name)}


def script_of(
    model: Sequential, loss: Loss, optimizer: Optimizer, batch: Batch, clipping: Clipping | None = None
) -> Iterator[Script]:
    """Scripts of a step. The first one most likely holds for batches of any size. Raises CannotTrace as `trace_step`
    does.

    Two sizes show which numbers depend on the size of the batch. If a formula takes a batch in pieces, both sizes must
    have a shorter last piece. So there are several tries.
    """
    trace_step(model, loss, optimizer, *batch, clipping)  # it raises CannotTrace
    size = len(batch[0])
    found: dict[int, Script] = {}
    for sizes in [(size, size - 1), (size, size - 2), (size - 1, size - 2), (size - 1, size - 3), (size, size - 3)]:
        if min(sizes) < 2:
            continue
        for each in sizes:
            if each not in found:
                found[each] = _script_of(model, loss, optimizer, Examples(*(a[:each] for a in batch)), clipping)
        with suppress(Differs):
            script = _merged(found[sizes[0]], found[sizes[1]], *sizes)
            functions, lines = with_functions(script.lines, script.settings.values, script.shapes)
            yield script._replace(functions=functions, lines=lines)


def _merged(own: Script, its: Script, size: int, other_size: int) -> Script:
    """One script for batches of any size, from the scripts for two sizes."""
    texts = merged([line.parts for line in own.lines], [line.parts for line in its.lines], size, other_size)
    lines = [line._replace(parts=parts) for line, parts in zip(own.lines, texts, strict=True)]
    if own.fixed.keys() != its.fixed.keys():
        raise Differs
    texts = merged(list(own.fixed.values()), list(its.fixed.values()), size, other_size)
    return own._replace(lines=lines, fixed=dict(zip(own.fixed, texts, strict=True)))


def _script_of(
    model: Sequential, loss: Loss, optimizer: Optimizer, batch: Batch, clipping: Clipping | None
) -> Script:
    observed = observe_step(model, loss, optimizer, *batch, clipping)
    layers = [layer for _, layer in descendants(model)]
    reserved = [name for layer in layers for name, value in vars(layer).items() if isinstance(value, float)]
    settings = NamedSettings(reserved)
    given = given_to(observed, model, optimizer, settings)
    versions = Versions(observed, given.arrays, given.gradients)
    statements = Statements(observed, versions, settings, given.names)
    fixed = {name: text.parts for text, name in statements.saying.fixed.items()}
    return Script(statements.lines, given, settings, fixed, list(optimizer.vectors), statements.showing.shapes)
