"""Forward and backward of one class: in NumPy, compiled, and in torch.

Each is given an input, or a prediction and a target, and an upstream gradient, and computes the output, or the loss,
and all gradients. A layer's input is a parameter in the compiled form: so the gradient of the input is wanted. That
form adds up output times upstream gradient, too, which is the loss of a step; it needn't write the output to memory.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import nn_manual  # noqa: F401 - before numpy: it makes numpy's threads leave room for torch's

# isort: split
import numpy as np
import torch

from benchmarks.layers.sizes import Size
from benchmarks.torch_nets import torch_loss, torch_net
from nn_manual import SGD, Sequential
from nn_manual.arrays import Array, Shape
from nn_manual.check.catalogue.upstream import UpstreamLoss
from nn_manual.check.twin.losses import lists_of_classes
from nn_manual.compile.blas import Choice
from nn_manual.compile.compile_step import compile_slice
from nn_manual.compile.plans import noise_of, takes_noise
from nn_manual.layers import Layer
from nn_manual.losses import Loss, MultiLabelMarginLoss
from nn_manual.registry import components

#: Makes some steps, and returns the gradient of the input in the last one; that of the weight if the input is indices.
Steps = Callable[[int], Array]
#: The compiled steps of one call get their targets in one piece of at most so many bytes, which the caches hold, as
#: they hold the one target that the others get again and again.
MOST_BYTES, MOST_STEPS = 1 << 18, 64


class Contestant(NamedTuple):
    """Makes steps, how many of them a call should make, and how many bytes it holds between calls for its steps alone.
    """

    run: Steps
    num_steps: int = MOST_STEPS
    held: int = 0


@dataclass(eq=False)
class Given(Layer):
    """Passes on its parameter, whatever its input: so the gradient of what it passes on is one of a parameter."""

    shape: Shape

    def parameter_shapes(self) -> dict[str, Shape]:
        """values, in the output's shape."""
        return {"values": self.shape}

    def output_shape(self, input_shape: Shape) -> Shape:  # noqa: ARG002 - whatever it is
        """That of the values."""
        return self.shape

    def reset_parameters(self, generator: np.random.Generator) -> None:
        """Normally distributed numbers."""
        self.param.values[...] = generator.standard_normal(self.shape)

    def forward(self, input: Array) -> tuple[Array, None]:  # noqa: ARG002 - as above
        """The values."""
        return self.param.values, None

    def backward(self, saved: None, grad_output: Array) -> Any:  # noqa: ARG002 - nothing is saved
        """Write grad_values."""
        self.grad.values[...] = grad_output


class Case:
    """One class in one size, with what all contestants get."""

    def __init__(self, name: str, size: Size, values: str) -> None:
        owners: dict[str, type[Any]] = components(Layer) | components(Loss)
        self._owner, self._settings = owners[name], size.settings
        self.component = self._made()
        self.is_loss = isinstance(self.component, Loss)
        self.generator = np.random.default_rng(0)
        self.input = _input(self.generator, size, values)
        layers = [] if isinstance(self.component, Loss) else [self.component]
        self.model = Sequential(*layers)
        self.target = (
            _target(self.generator, self.input, values)
            if self.is_loss
            else self.generator.standard_normal(self.model.output_shape(self.input.shape), np.float32)
        )

    def _made(self) -> Layer | Loss:
        """A new one: a layer belongs to one model."""
        made: Layer | Loss = self._owner(**self._settings)
        return made

    def contestants(self) -> dict[str, Callable[[], Contestant]]:
        """What makes each."""
        return {"torch": self.torch, "numpy": self.numpy, "compiled": self.compiled}

    def numpy(self) -> Contestant:
        """The formulas themselves."""
        component, input, target, model = self.component, self.input, self.target, self.model
        if isinstance(component, Loss):

            def step() -> Array:
                _, saved = component.forward(input, target)
                return component.backward(saved)
        else:

            def step() -> Array:
                model.num_steps += 1  # or a layer with random numbers would keep those that it drew
                _, saved = model.forward(input)
                grad_input = model.backward(saved, target)
                return model.grad_arena if grad_input is None else grad_input

        return Contestant(lambda num_steps: _last(step, num_steps), held=model.grad_arena.nbytes)

    def compiled(self) -> Contestant:
        """As machine code, many steps in a call."""
        component, input, target = self._made(), self.input, self.target
        loss = component if isinstance(component, Loss) else UpstreamLoss()
        layers = [] if isinstance(component, Loss) else [component]
        takes_numbers = input.dtype == np.float32
        model = Sequential(*([Given(input.shape)] if takes_numbers else []), *layers)
        model.param_arena[:] = np.concatenate([input.ravel() if takes_numbers else [], self.model.param_arena])
        given = np.zeros((1, 1), np.float32) if takes_numbers else input
        choice = Choice("numpy", 1)
        plan = compile_slice(model, loss, SGD(model), given, target, lambda _: None, choice=choice, loop_threads=1)
        num_steps = max(1, min(MOST_STEPS, MOST_BYTES // max(target.nbytes, given.nbytes)))
        givens, targets = (np.repeat(array[np.newaxis], num_steps, axis=0) for array in (given, target))

        def run(num_steps: int) -> Array:
            drawn = [noise_of(model, given.shape, step) for step in range(num_steps)] if takes_noise(plan) else []
            noise = {name: np.stack([each[name] for each in drawn]) for name in (drawn[0] if drawn else ())}
            plan.run(givens[:num_steps], targets[:num_steps], noise)
            return model.grad_arena[: input.size].reshape(input.shape) if takes_numbers else model.grad_arena

        return Contestant(run, num_steps, held=plan.program.num_bytes + model.grad_arena.nbytes)

    def torch(self) -> Contestant:
        """torch's class of the same settings and parameters, as a user of torch calls it."""
        input, target = torch.from_numpy(self.input), torch.from_numpy(self.target)
        if input.is_floating_point():
            input.requires_grad_()
        component = self.component
        module = torch_loss(component) if isinstance(component, Loss) else torch_net(self.model)
        if isinstance(component, MultiLabelMarginLoss):  # torch's own class, of its own targets
            module, target = torch.nn.MultiLabelMarginLoss(reduction=component.reduction), lists_of_classes(target)
        leaves = [input, *module.parameters()] if input.is_floating_point() else [*module.parameters()]

        def step() -> Array:
            if self.is_loss:
                module(input, target).backward()
            else:
                torch.autograd.backward(module(input), target)
            grad: Array = leaves[0].grad.numpy()  # type: ignore[union-attr]  # it has one
            for leaf in leaves:
                leaf.grad = None
            return grad

        return Contestant(lambda num_steps: _last(step, num_steps))


def _last(step: Callable[[], Array], num_steps: int) -> Array:
    for _ in range(num_steps - 1):
        step()
    return step()


def _input(generator: np.random.Generator, size: Size, values: str) -> Array:
    if values == "indices":
        return generator.integers(0, size.settings["num_embeddings"], size.shape)
    numbers = generator.standard_normal(size.shape, np.float32)
    return generator.uniform(0.05, 0.95, size.shape).astype(np.float32) if values == "probabilities" else numbers


def _target(generator: np.random.Generator, prediction: Array, values: str) -> Array:
    shape = prediction.shape
    match values:
        case "classes":
            return np.asarray(generator.integers(0, shape[1], shape[0]))
        case "two labels":
            labels = np.zeros(shape, np.float32)
            labels[:, [0, -1]] = 1
            return labels
        case "labels":
            return generator.integers(0, 2, shape).astype(np.float32)
        case "signs":
            return (2 * generator.integers(0, 2, shape) - 1).astype(np.float32)
        case "probabilities":
            return generator.uniform(0.05, 0.95, shape).astype(np.float32)
    return np.abs(generator.standard_normal(shape, np.float32))
