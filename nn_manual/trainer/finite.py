"""Numbers that are not finite: watched for, and named by tensor, layer and first index."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from typing import Any

import numpy as np

from nn_manual.arrays import Array, carve, first_not_finite
from nn_manual.errors import NotFiniteError, raise_if_nobodys_fault
from nn_manual.layers import Layer
from nn_manual.layers.composite import descendants
from nn_manual.losses import Loss
from nn_manual.model import Sequential
from nn_manual.optim import Optimizer


class FiniteWatch:
    """Raises NotFiniteError for the first number of a training that isn't finite. Where the processes divide the
    optimizer's vectors, all of them must call its methods.
    """

    def __init__(
        self, model: Sequential, optimizer: Optimizer, whole_vectors: Callable[[], AbstractContextManager[None]]
    ) -> None:
        self._model, self._optimizer, self._whole_vectors = model, optimizer, whole_vectors
        #: Whether an operation has made such a number since the last `check`.
        self.suspects = False

    @contextmanager
    def watching(self) -> Iterator[None]:
        """The context in which a number that isn't finite is found in the step that makes it, even if no result shows
        it. Outside of this context, it is found once a loss or the end of an epoch shows it.

        The processor notes an operation on finite numbers whose result isn't finite, and numpy asks for that after each
        operation.
        """

        def suspect(kind: str, flag: int) -> None:  # noqa: ARG001 - the signature is numpy's
            self.suspects = True

        with np.errstate(over="call", invalid="call", divide="call", call=suspect):
            yield

    def check(self, num_steps: int) -> None:
        """Raise NotFiniteError where the last of `num_steps` steps has left behind a number that isn't finite: in the
        gradients, in what the optimizer keeps, in parameters or buffers.
        """
        self.suspects = False
        wrong = self._left_behind()
        if wrong is not None:
            raise NotFiniteError(f"{wrong} at step {num_steps}")

    def check_loss(self, loss: Loss, value: float, input: Array, target: Array, num_steps: int) -> None:
        """Raise NotFiniteError for a loss that isn't finite and should be, before its step changes anything. Where the
        step before has left behind such a number, the error names that one.
        """
        if loss.has_value(loss.denominator(target)):
            before = self._left_behind()
            found = f"{before} since step {num_steps - 1}, found" if before else None
            raise NotFiniteError(found or not_finite_output(self._model, input) or f"the loss is {value}")

    def _left_behind(self) -> str | None:
        with self._whole_vectors():
            return not_finite_in_step(self._model, self._optimizer)


class _Found(Exception):  # noqa: N818 - says what happened; nobody else sees it
    pass


def not_finite_output(model: Sequential, input: Array) -> str | None:
    """The first output of a layer that isn't finite, in a forward of a copy of the model on `input`; None where all
    are finite, and where a layer raises. Composites count only where the layers in them have finite outputs.
    """
    try:
        model = copy.deepcopy(model)
        for name, layer in descendants(model):
            vars(layer)["forward"] = partial(_watched, name, layer, layer.forward)
        model.forward(input)
    except _Found as found:
        return str(found)
    except BaseException as error:  # a user's own code may raise anything
        raise_if_nobodys_fault(error)
        return None
    return None


def _watched(name: str, layer: Layer, forward: Callable[[Array], tuple[Array, Any]], input: Array) -> tuple[Array, Any]:
    output, saved = forward(input)
    if wrong := first_not_finite(output):
        raise _Found(f"{name}.output of {name} ({type(layer).__name__}) holds {wrong}")
    return output, saved


def not_finite_in_step(model: Sequential, optimizer: Optimizer) -> str | None:
    """The first number that isn't finite of what a step has left behind; None where all are finite. The gradients come
    first, the last layer's before the others', then what the optimizer keeps, the parameters and the buffers.
    """
    vectors = model.grad_arena, *optimizer.vectors.values(), model.param_arena, *vars(model.buffer).values()
    if all(np.isfinite(vector).all() for vector in vectors):  # nearly always; to look by name takes longer
        return None
    layers = dict(model.named_layers())
    for parameter, name, array in _left_behind(model, optimizer):
        if wrong := first_not_finite(array):
            layer = _owner(model, parameter)
            return f"{name} of {layer} ({type(layers[layer]).__name__}) holds {wrong}"
    return None


def _left_behind(model: Sequential, optimizer: Optimizer) -> Iterator[tuple[str, str, Array]]:
    """Each parameter or buffer, by its name, with the name of what the step has made of it, and the numbers."""
    for name, grad in reversed(vars(model.grad).items()):
        layer = _owner(model, name)
        yield name, f"{layer}.grad_{name.removeprefix(f'{layer}.')}", grad
    for kind, vector in optimizer.vectors.items():
        views = vars(carve(vector, model.parameter_shapes()))
        yield from ((name, f"{name}.{kind}", view) for name, view in views.items())
    yield from ((name, f"updated {name}", parameter) for name, parameter in vars(model.param).items())
    yield from ((name, name, buffer) for name, buffer in vars(model.buffer).items())


def _owner(model: Sequential, name: str) -> str:
    """The layer of a parameter or a buffer, whose own name may have points in it, as out_proj.weight has."""
    return next(layer for layer, _ in model.named_layers() if name.startswith(f"{layer}."))
