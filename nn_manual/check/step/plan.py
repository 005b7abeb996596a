"""The plan of a check: every tensor that a step must prove, by name, before the step runs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import chain

import numpy as np

from nn_manual.arrays import Shape, size_of
from nn_manual.check import tolerances
from nn_manual.check.comparison import Quantity
from nn_manual.check.twin.layers import Source, source_of
from nn_manual.layers.base import Layer
from nn_manual.losses import Loss
from nn_manual.model import Sequential
from nn_manual.optim import Optimizer


class Plan:
    """The quantities of one checked step, in the order in which a mistake would spread.

    outputs of the layers, first to last; the loss; grad_prediction; then from the last layer to the first its
    parameters' gradients and its grad_input; the clipped gradient; the optimizer's state vectors and
    the updated parameters. The first that fails was
    computed from values that passed, so its layer is the wrong one.

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
        self.sources = [
            source_of(layer, shape) for layer, shape in zip(self.layers, self._input_shapes(input_shape), strict=True)
        ]
        numerical = [i for i, source in enumerate(self.sources) if source.is_numerical]
        #: The last layer with central differences. Their errors travel back with the gradient.
        self._last_numerical = max(numerical, default=-1)
        self._tolerances = self._tolerance_of_each_layer(model, input_shape)
        widest = max(self._tolerances, default=tolerances.sum_of_products(model.dtype, 1))
        self.forward = [self._quantity(i, "output") for i in range(len(self.layers))]
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
        names = [json.dumps(quantity.name).replace("%", "%%") for quantity in self.quantities]
        #: The ledger of a step but for its numbers. Filling them in takes half of json's time, which a small net feels.
        self.ledger = f"{{{', '.join(f'{name}: [%.3g, %.3g]' for name in names)}}}"

    def _backward_of(self, i: int) -> list[Quantity]:
        names = [f"grad_{name}" for name in self.layers[i].parameter_shapes()]
        if i >= self.first_grad_input:
            names.append("grad_input")
        at_least = tolerances.CENTRAL_DIFFERENCES if i <= self._last_numerical else 0.0
        return [self._quantity(i, name, at_least) for name in names]

    def _quantity(self, i: int, what: str, at_least: float = 0.0) -> Quantity:
        return Quantity(f"{self.names[i]}.{what}", self.labels[i], max(self._tolerances[i], at_least))

    def told_sources(self) -> tuple[str, ...]:
        """A sentence for each layer that is not compared with torch's own."""
        labelled = zip(self.labels, self.sources, strict=True)
        return tuple(
            f"{label} is compared with {source.value}" for label, source in labelled if source is not Source.TORCH
        )

    def _input_shapes(self, input_shape: Shape) -> Iterator[Shape]:
        for layer in self.layers:
            yield input_shape
            input_shape = layer.output_shape(input_shape)

    def _tolerance_of_each_layer(self, model: Sequential, input_shape: Shape) -> list[float]:
        """By the longest dimension in sight, of input, output and parameters: no sum in the layer is longer, but for
        those over several leading dimensions, which count together.
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


def label_of(name: str, layer: Layer) -> str:
    """How a layer is called in a report."""
    return f"{name} ({type(layer).__name__})"


def _unzip(model: Sequential) -> tuple[list[str], list[Layer]]:
    named = list(model.named_layers())
    return [name for name, _ in named], [layer for _, layer in named]
