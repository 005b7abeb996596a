"""The torch twin of a model: torch's own layers with their parameters in one flat tensor, its loss, its optimizer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from nn_manual.arrays import carve
from nn_manual.layers.base import Layer
from nn_manual.losses import Loss
from nn_manual.model import Sequential
from nn_manual.optim import SGD
from nn_manual.schedulers import Scheduler

Function = Callable[..., torch.Tensor]

TORCH_DTYPES = {"float32": torch.float32, "float64": torch.float64}


class Twin:
    """torch's version of a model and its loss: one function per layer, in the order in which they run.

    `param` is a numpy array over the memory of all parameters, laid out as the model's `param_arena`, in `dtype` or
    else the model's. `parameters` are torch's views of it, by torch's names.
    """

    def __init__(self, model: Sequential, loss: Loss, dtype: npt.DTypeLike | None = None) -> None:
        self.param = np.zeros(model.num_parameters, dtype or model.dtype)
        self.loss_function = loss_function(loss)
        self.parameters = {
            name: torch.nn.Parameter(torch.from_numpy(view))
            for name, view in vars(carve(self.param, model.parameter_shapes())).items()
        }
        self.functions: list[Function] = [
            layer_function(layer, {key: self.parameters[f"{name}.{key}"] for key in layer.parameter_shapes()})
            for name, layer in model.named_layers()
        ]


def layer_function(layer: Layer, parameters: dict[str, torch.nn.Parameter]) -> Function:
    """torch's version of a layer, using `parameters`: torch.nn's class of the layer's name with the layer's fields as
    keyword arguments, or else the layer's own `reference(input, **parameters)`. TypeError if it has neither.
    """
    reference = getattr(layer, "reference", None)
    if reference is not None:
        return lambda input: reference(input, **parameters)
    module = _torch_module(layer)
    for name, parameter in parameters.items():
        setattr(module, name, parameter)
    return module.forward  # nobody hooks into these modules: what calling them would look for costs more than they do


def loss_function(loss: Loss) -> Function:
    """torch's version of a loss, found as a layer's is."""
    reference = getattr(loss, "reference", None)
    return _torch_module(loss).forward if reference is None else reference


def _torch_module(ours: Layer | Loss) -> torch.nn.Module:
    name = type(ours).__name__
    torch_class = getattr(torch.nn, name, None)
    if torch_class is None:
        raise TypeError(f"torch.nn has no {name}: the class must define reference(), its formula on torch tensors")
    # On the meta device nothing is allocated or drawn: the parameters are replaced by ours.
    with torch.device("meta"):
        module: torch.nn.Module = torch_class(**settings(ours))
    return module


def settings(ours: Any) -> dict[str, Any]:
    """The fields of a dataclass, a layer's, loss's or optimizer's, by name: torch's keyword arguments."""
    return {field.name: getattr(ours, field.name) for field in fields(ours)}


def sgd_twin(optimizer: SGD, parameters: list[torch.nn.Parameter]) -> torch.optim.SGD:
    """torch.optim.SGD with the same hyperparameters; fused, its fastest kernel."""
    return torch.optim.SGD(parameters, fused=True, **{k: v for k, v in settings(optimizer).items() if k != "model"})


class SchedulerTwin:
    """torch's schedule of the same name, one step an epoch."""

    def __init__(self, scheduler: Scheduler, initial_lr: float) -> None:
        # A parameter of its own: torch's schedulers only need an optimizer to hold the lr.
        self._optimizer = torch.optim.SGD([torch.zeros(1)], lr=initial_lr)
        torch_class = getattr(torch.optim.lr_scheduler, type(scheduler).__name__)
        self._scheduler = torch_class(self._optimizer, **settings(scheduler))
        self._epoch = 0

    def lr(self, epoch: int) -> float:
        """The learning rate during `epoch`, counted from 0; epochs are asked for in order."""
        while self._epoch < epoch:
            self._optimizer.step()  # no gradients, no effect; torch warns about a schedule that runs ahead
            self._scheduler.step()
            self._epoch += 1
        return float(self._optimizer.param_groups[0]["lr"])
