"""What the script's step is given: parts of flat vectors, states, random numbers, coefficients."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nn_manual.arrays import Shape
from nn_manual.layers.composite import counter_names, descendants
from nn_manual.model import Sequential
from nn_manual.optim import Optimizer
from nn_manual.trace.observed import Observed
from nn_manual.trace.trace import View
from nn_manual.unroll.coefficients import Coefficients
from nn_manual.unroll.constants import NamedSettings
from nn_manual.unroll.syntax import Expression, Name, of
from nn_manual.unroll.versions import Version

#: The end of the names of storages that hold the gradient of one use of a shared parameter.
OF_USE = ".grad of this use"


class Given(NamedTuple):
    """What a step is given. `arrays` are the arrays, by their storages. `gradients` are the gradients in a storage,
    each an array of its own. `names` are the expressions of the arrays' views. `arguments` are the step's arguments,
    with the forms of their arrays. `parts` are the parts of flat vectors that have names. `before` has, for each group
    of parameters, the assignments at the beginning of its update, without those of earlier groups.
    """

    arrays: dict[int, list[Version]]
    gradients: dict[int, list[tuple[Name, View]]]
    names: list[tuple[Expression, Version, View]]
    arguments: dict[Name, View]
    parts: list[tuple[Name, Name, View]]
    before: list[list[tuple[Name, Expression]]]


def given_to(observed: Observed, model: Sequential, optimizer: Optimizer, settings: NamedSettings) -> Given:
    """What a traced step is given."""
    given = Given({}, {}, [], {}, [], [])
    coefficients = [Coefficients(part.member, settings) for part in optimizer.parts]
    said: dict[Name, Expression] = {}
    for own in coefficients:
        given.before.append([(name, text) for name, text in own.before if said.get(name) != text])
        said.update(own.before)
    shapes, buffers = dict(model.parameter_shapes()), vars(model.buffer)
    counts = set(counter_names(model))
    layers = {"", *(layer for layer, _ in descendants(model))}
    for number, storage in enumerate(observed.trace.storages):
        name, form = storage.name, observed.forms[number]
        if not name:
            continue
        if name == "grad":
            shared = set(model.ties.names)
            given.gradients[number] = [
                (Name(f"grad_{own.local}", "shared" if f"{own.layer}.{own.local}" in shared else own.layer), view)
                for own, view in carved(form, shapes, layers)
            ]
        elif form.shape != (0,) and not name.endswith(OF_USE):
            version = Version(form, -1)
            given.arrays[number] = [version]
            text = _coefficient(name, coefficients)
            given.names.append((text or of(_argument(name)), version, form))
            if text is None:
                given.arguments[_argument(name)] = form
            inner: dict[str, dict[str, Shape]] = {
                "param": shapes,
                "buffer": {own: buffer.shape for own, buffer in buffers.items() if own not in counts},
                "counters": {own: () for own in buffers if own in counts},
            }
            for part, view in carved(form, inner.get(name, {}), layers):
                given.names.append((of(part), version, view))
                given.parts.append((part, Name(name), view))
    for use, view in observed.use_grads.items():
        name_of_use = name_of(use, layers)
        given.gradients[view.storage] = [(Name(f"grad_{name_of_use.local}", name_of_use.layer), view)]
    return given


def carved(form: View, shapes: dict[str, Shape], layers: set[str]) -> list[tuple[Name, View]]:
    """The parts of a flat vector, with their names. `layers` are the names of the model's layers."""
    found, start = [], form.offset
    for name, shape in shapes.items():
        array = np.empty(shape, form.dtype)
        found.append((name_of(name, layers), View(form.storage, start, shape, array.strides, form.dtype)))
        start += array.nbytes
    return found


def name_of(name: str, layers: set[str]) -> Name:
    """The Name of a parameter or a buffer: "1.0" is the layer of "1.0.out_proj.weight", and "1.layer" that of
    "1.layer.weight" where this layer is made of layers.
    """
    pieces = name.split(".")
    count = max(count for count in range(len(pieces)) if ".".join(pieces[:count]) in layers)
    return Name("_".join(pieces[count:]), ".".join(pieces[:count]))


def _argument(name: str) -> Name:
    layer, is_noise, local = name.partition(".noise.")
    return Name(local, layer) if is_noise else Name(name.replace(".", "_"))


def _coefficient(name: str, coefficients: list[Coefficients]) -> Expression | None:
    """The expression of a coefficient of the update, None if there is none."""
    index, _, field = name.partition(".")
    if not index.isdigit() or int(index) >= len(coefficients) or ".noise." in name:
        return None
    return coefficients[int(index)].texts.get(field)
