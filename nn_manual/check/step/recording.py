"""What the layers of a model receive and return while a step runs, seen from outside the Sequential.

The check must notice a Sequential that skips a layer, reverses two or drops a gradient. So it doesn't ask the
Sequential: it watches the layers' own methods.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from types import SimpleNamespace
from typing import Any

from nn_manual.arrays import Array, Padded
from nn_manual.check.step.calls import LayerCalls, LossCalls
from nn_manual.check.step.tree import chain_of, walk
from nn_manual.layers.with_lengths import LENGTHS
from nn_manual.losses import Loss
from nn_manual.model import Sequential
from nn_manual.step.train_step import differentiate


class Recording:
    """Watches a model's layers and a loss while the `with` block runs, by standing in for their methods on the
    instances. `copy_grads` says that the step changes the parameters' gradients after backward.

    `chain` is the model as a chain of layers; `layers` has the calls of each of them and of what they are made of, a
    composite's after those of its children.
    """

    def __init__(self, model: Sequential, loss: Loss, *, copy_grads: bool = False) -> None:
        self.model = model
        #: The gradients of the parameters: of shared ones, the sums.
        self.grads = vars(model.grad)
        grads = self.grads | model.ties.use_grads
        params = model.uses()
        self.chain = chain_of(model)
        #: What the step moves after layers and loss have returned.
        moving = [model.param_arena, model.grad_arena, *vars(model.buffer).values()]
        begun = count()
        inside = [children for item in walk(self.chain) for children in item.children.values() if children]
        first, last = ({children[end].name for children in inside} for end in (0, -1))
        self.layers = [
            LayerCalls(
                item,
                begun,
                {parameter: params[f"{item.name}.{parameter}"] for parameter in item.own_parameters},
                {parameter: grads[f"{item.name}.{parameter}"] for parameter in item.own_parameters},
                moving,
                copy_grads=copy_grads,
                takes_input=item.name in first or item is self.chain[0],
                gives_output=item.name in last,
            )
            for item in walk(self.chain)
        ]
        #: The calls of the model's first layer, which gets the model's input.
        self.first = next(calls for calls in self.layers if calls.item is self.chain[0])
        self.loss = LossCalls(loss, moving)
        #: The model's buffers, and what they were when the step began.
        self.buffers: dict[str, Array] = dict(vars(model.buffer))
        self.buffers_before: dict[str, Array] = {}
        self._watched: list[tuple[dict[str, Any], dict[str, Callable[..., Any]]]] = [
            (vars(calls.layer), _methods(calls, "forward", "backward", "backward_parameters", "update_buffers"))
            for calls in self.layers
        ]
        self._watched.append((vars(loss), _methods(self.loss, "check_target", "forward", "backward")))
        #: What stood on the instances before: methods that somebody else put there.
        self._own: list[dict[str, Any]] = []

    @property
    def input(self) -> Array | Padded | None:
        """The input of the model, with the lengths that a layer has heeded; None before it has run."""
        return None if self.first.input is None else self.with_lengths(self.first.input)

    @property
    def lengths(self) -> Array | None:
        """The lengths of the sequences, which a layer has heeded; None if no layer has."""
        return next((calls.noise[LENGTHS] for calls in self.layers if LENGTHS in calls.noise), None)

    def with_lengths(self, array: Array) -> Array | Padded:
        """An array in the place of the input, with the lengths that a layer has heeded."""
        return array if self.lengths is None else Padded(array, self.lengths)

    @contextmanager
    def noise_of_step(self) -> Iterator[None]:
        """The context in which the layers have the noise and the lengths of the recorded step: a later step, which
        isn't checked, and evaluation have given them others.
        """
        own = [(calls, calls.layer.noise) for calls in self.layers if calls.noise]
        for calls, _ in own:
            calls.layer.noise = SimpleNamespace(**calls.noise)
        try:
            yield
        finally:
            for calls, noise in own:
                calls.layer.noise = noise

    def __enter__(self) -> Recording:
        for calls in self.layers:
            calls.clear()
        self.loss.clear()
        self.buffers_before = {name: buffer.copy() for name, buffer in self.buffers.items()}
        self._own = []
        for attributes, methods in self._watched:
            own = () if attributes.keys().isdisjoint(methods) else attributes.keys() & methods.keys()
            self._own.append({name: attributes[name] for name in own})
            attributes.update(methods)
        return self

    def __exit__(self, *exception: object) -> None:
        for (attributes, methods), own in zip(self._watched, self._own, strict=True):
            for name in methods:
                del attributes[name]
            attributes.update(own)


def _methods(calls: object, *names: str) -> dict[str, Callable[..., Any]]:
    return {name: getattr(calls, name) for name in names}


def run_step(model: Sequential, loss: Loss, input: Array | Padded, target: Array, *, input_grad: bool) -> None:
    """Forward, loss, backward and the buffers, as a training step moves them; with the gradient of the input if it is
    asked for. Raises what the model and the loss raise for values that they don't take.
    """
    model.check_values(input)
    backward = model.backward if input_grad else model.backward_parameters
    look = functools.partial(_check_target, loss, target)
    _, saved = differentiate(model, loss, input, target, backward=backward, predicted=look)
    model.update_buffers(saved)


def _check_target(loss: Loss, target: Array, prediction: Array) -> None:
    loss.check_target(prediction, target)
