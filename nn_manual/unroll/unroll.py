"""A config's training step as a script."""

from __future__ import annotations

from typing import Any

import numpy as np

from nn_manual.arrays import Array
from nn_manual.config import RunConfig
from nn_manual.data import batches
from nn_manual.losses import Loss
from nn_manual.model import Sequential
from nn_manual.optim import Optimizer
from nn_manual.running.loading import load
from nn_manual.trace.observed import Observed, observe_step
from nn_manual.trace.operation import View
from nn_manual.unroll.constants import Coefficients, Settings
from nn_manual.unroll.page import body
from nn_manual.unroll.statements import Statements
from nn_manual.unroll.text import Name, of
from nn_manual.unroll.versions import Version, Versions
from nn_manual.unroll.views import array_at


def unroll(config: RunConfig) -> str:
    split, model = load(config)
    optimizer = config.optimizer(model)
    input, target = next(batches(split.train, config.batch_size, config.seed, epoch=0))
    observed = observe_step(model, config.loss, optimizer, input, target, config.clip_grad_norm)
    step = Step(observed, model, optimizer)
    kind = "indices" if target.dtype.kind == "i" else "probabilities"
    return "\n".join(body(step.statements.lines, model, config.loss, optimizer, kind))


class Step:
    def __init__(self, observed: Observed, model: Sequential, optimizer: Optimizer) -> None:
        self.settings = Settings()
        given, parts, named = self._given(observed, model, optimizer)
        versions = Versions(observed, given, parts)
        self.statements = Statements.__new__(Statements)
        self.statements._bound = {}
        for text, version, view in named:
            version.handles.append((text, view))
            for name in text.names:
                self.statements._bound[name] = version
        bound = self.statements._bound
        self.statements.__init__(observed, versions, self.settings, bound)

    def _given(self, observed: Observed, model: Sequential, optimizer: Optimizer) -> Any:
        given, parts, named = {}, {}, []
        coefficients = [Coefficients(part.member, self.settings, {}) for part in optimizer.parts]
        for number, storage in enumerate(observed.trace.storages):
            name, form = storage.name, observed.forms[number]
            if not name:
                continue
            if name == "grad":
                parts[number] = [(Name(f"grad_{n.local}", n.layer), v) for n, v in carved(form, model)]
                continue
            version = Version(form, -1)
            given[number] = [version]
            index, _, rest = name.partition(".")
            if name == "param":
                named += [(of(Name("param")), version, form)]
                named += [(of(n), version, v) for n, v in carved(form, model)]
            elif index.isdigit() and rest in coefficients[int(index)].texts if index.isdigit() and int(index) < len(coefficients) else False:
                named += [(coefficients[int(index)].texts[rest], version, form)]
            else:
                named += [(of(Name(name)), version, form)]
        return given, parts, named


def carved(form: View, model: Sequential) -> list[tuple[Name, View]]:
    found, start = [], form.offset
    for name, shape in model.parameter_shapes().items():
        array = np.empty(shape, form.dtype)
        layer, _, local = name.rpartition(".")
        found.append((Name(local, layer), View(form.storage, start, shape, array.strides, form.dtype)))
        start += array.nbytes
    return found
