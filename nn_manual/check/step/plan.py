"""The plan of a check: every tensor that a step must prove, by name, before the step runs."""

from __future__ import annotations

from itertools import chain

import numpy as np

from nn_manual.arrays import Shape, size_of
from nn_manual.check import tolerances
from nn_manual.check.comparison import CannotCompare, Quantity
from nn_manual.check.twin.layers import Counterpart, Misfit, Source, counterpart_of
from nn_manual.layers.base import Layer
from nn_manual.losses import Loss
from nn_manual.model import Sequential
from nn_manual.optim import Optimizer

#: The package's name, with which the modules of its own layers begin.
PACKAGE = __name__.partition(".")[0]


class Plan:
    """The quantities of one checked step, in the order in which a mistake would spread.

    That order is: the outputs of the layers, first to last; the loss; grad_prediction; from the last layer to the first
    its parameters' gradients and its grad_input; the clipped gradient; the optimizer's state vectors; the updated
    parameters. The first that fails was computed from values that passed, so its layer is the wrong one.

    `input_grad` says whether the gradients of the model's own input, and of the target where the loss has one, are
    asked for. If not, the gradient travels back to the first layer that has parameters and stops there. `clip` says
    whether the step clips the gradient, `optimizer` what moves the parameters, if anything does.
    """

    def __init__(
        self,
        model: Sequential,
        loss: Loss,
        input_shape: Shape,
        *,
        input_grad: bool,
        clip: bool = False,
        optimizer: Optimizer | None = None,
    ) -> None:
        self.names, self.layers = _unzip(model)
        self.dtype = model.dtype
        #: About how many multiplications forward takes: each parameter's, once for each example.
        self.num_products = size_of(input_shape[:-1]) * model.num_parameters
        self.input_grad, self.target_grad = input_grad, input_grad and hasattr(loss, "backward_target")
        with_parameters = [i for i, layer in enumerate(self.layers) if layer.num_parameters]
        #: The first layer whose backward runs.
        self.first = 0 if input_grad else min(with_parameters, default=len(self.layers))
        #: The first layer whose grad_input is computed.
        self.first_grad_input = 0 if input_grad else self.first + 1
        #: The names of each layer's parameters in the model.
        self.parameters = [
            [f"{name}.{parameter}" for parameter in layer.parameter_shapes()]
            for name, layer in zip(self.names, self.layers, strict=True)
        ]
        self.labels = [label_of(name, layer) for name, layer in zip(self.names, self.layers, strict=True)]
        #: What each layer is compared with.
        self.counterparts = list(map(_counterpart_of, self.layers, self.labels))
        self._tolerances = self._tolerance_of_each_layer(model, input_shape)
        widest = max(self._tolerances, default=tolerances.sum_of_products(model.dtype, 1))
        self.forward = [self._output_of(i) for i in range(len(self.layers))]
        self.forward.append(Quantity("loss", "loss", widest))
        loss_grads = ["grad_prediction", *(["grad_target"] if self.target_grad else [])]
        self.backward = [Quantity(f"loss.{name}", "loss", widest) for name in loss_grads]
        self.backward += chain.from_iterable(self._backward_of(i) for i in reversed(range(len(self.layers))))
        self.update = [
            Quantity(name, "optimizer", tolerances.UPDATE[model.dtype.name]) for name in _updated(model, optimizer)
        ]
        of_clipping = Quantity(
            "clipped gradient", "clip_grad_norm", tolerances.sum_of_products(model.dtype, model.num_parameters)
        )
        self.clipping = [of_clipping] if clip else []
        self.quantities = [*self.forward, *self.backward, *self.clipping, *self.update]
        self.tolerances = np.array([quantity.tolerance for quantity in self.quantities])
        self.tensors = tuple(quantity.name for quantity in self.quantities)

    def _backward_of(self, i: int) -> list[Quantity]:
        names = self.gradient_names(i)
        if i < self.first_grad_input:
            names = names[:-1]
        if self.counterparts[i].source is not Source.FORWARD:
            return [Quantity(name, self.labels[i], self._tolerances[i]) for name in names]
        return [Quantity(name, self.labels[i], self.differences_tolerance(i), "differences give") for name in names]

    def _output_of(self, i: int) -> Quantity:
        name, label, tolerance = f"{self.names[i]}.output", self.labels[i], self._tolerances[i]
        if self.counterparts[i].source is not Source.FORWARD:
            return Quantity(name, label, tolerance)
        if self.dtype != np.float64:
            tolerance = max(tolerance, tolerances.OWN_FORWARD)
        return Quantity(name, label, tolerance, "in float64 it is")

    def gradient_names(self, i: int) -> list[str]:
        """The names of a layer's gradients: of its parameters, then of its input."""
        return [f"{self.names[i]}.grad_{name}" for name in (*self.layers[i].parameter_shapes(), "input")]

    def differences_tolerance(self, i: int) -> float:
        """How far a layer's gradients may be from central differences."""
        return max(self._tolerances[i], tolerances.CENTRAL_DIFFERENCES)

    def reported_sources(self) -> tuple[str, ...]:
        """A sentence that says what a layer is compared with, for each layer but those of the package that are compared
        with torch's class of the same name.
        """
        return tuple(
            f"{label} is compared with {counterpart.sentence}"
            for label, counterpart, layer in zip(self.labels, self.counterparts, self.layers, strict=True)
            if not (counterpart.source is Source.TORCH and type(layer).__module__.startswith(f"{PACKAGE}."))
        )

    def _tolerance_of_each_layer(self, model: Sequential, input_shape: Shape) -> list[float]:
        """By the longest dimension of input, output and parameters: no sum in the layer is longer. Leading dimensions
        count together, because a sum may run over all of them.
        """
        result = []
        for layer in self.layers:
            output_shape = layer.output_shape(input_shape)
            batch = size_of(input_shape[:-1])
            longest = max(1, batch, *input_shape, *output_shape, *chain(*layer.parameter_shapes().values()))
            result.append(tolerances.sum_of_products(model.dtype, longest))
            input_shape = output_shape
        return result


def _updated(model: Sequential, optimizer: Optimizer | None) -> list[str]:
    """The names of the tensors that an optimizer changes: "0.weight.momentum_buffer", then "updated 0.weight"."""
    if optimizer is None:
        return []
    parameters = model.parameter_shapes()
    return [
        *(f"{parameter}.{name}" for name in optimizer.vectors for parameter in parameters),
        *(f"updated {parameter}" for parameter in parameters),
    ]


def _counterpart_of(layer: Layer, label: str) -> Counterpart:
    try:
        return counterpart_of(layer)
    except Misfit as misfit:
        raise CannotCompare(f"{label}: {misfit}") from misfit


def label_of(name: str, layer: Layer) -> str:
    """How a layer is called in a report."""
    return f"{name} ({type(layer).__name__})"


def _unzip(model: Sequential) -> tuple[list[str], list[Layer]]:
    named = list(model.named_layers())
    return [name for name, _ in named], [layer for _, layer in named]
