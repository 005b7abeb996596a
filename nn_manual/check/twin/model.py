"""The torch twin of a model: torch's own layers with their parameters in one flat tensor, its loss, its optimizer."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import torch

from nn_manual.arrays import Array, carve
from nn_manual.check.twin.differences import ByDifferences
from nn_manual.check.twin.layers import Function, Misfit, layer_function, torch_module
from nn_manual.losses import Loss
from nn_manual.model import Sequential

TORCH_DTYPES = {"float32": torch.float32, "float64": torch.float64}


class Twin:
    """torch's version of a model and its loss: one function for each layer that is made of no others, by its name.

    `param` is a numpy array over the memory of all parameters, laid out as the model's `param_arena`, in `dtype` or
    else the model's. `parameters` are torch's views of it, by torch's names; of a shared one, several.
    """

    def __init__(self, model: Sequential, loss: Loss, dtype: npt.DTypeLike | None = None) -> None:
        self.param: Array = np.zeros(model.num_parameters, dtype or model.dtype)
        views = vars(carve(self.param, model.parameter_shapes()))
        # Each use of a shared parameter is a tensor of its own: so each has a gradient of its own.
        self.parameters = {
            name: torch.nn.Parameter(torch.from_numpy(views[model.ties.first_of.get(name, name)]))
            for name in model.uses()
        }
        torch_dtype = TORCH_DTYPES[self.param.dtype.name]
        self.loss_function = loss_function(loss, torch_dtype)
        #: torch's buffers, by torch's names.
        self.buffers = {
            name: torch.zeros(buffer.shape, dtype=torch.int64 if buffer.dtype == np.int64 else torch_dtype)
            for name, buffer in vars(model.buffer).items()
        }
        self.functions: dict[str, Function | ByDifferences] = {
            name: layer_function(
                layer,
                {key: self.parameters[f"{name}.{key}"] for key in layer.parameter_shapes()},
                {key: self.buffers[f"{name}.{key}"] for key in (*layer.buffer_shapes(), *layer.counter_names())},
                torch_dtype,
            )
            for name, layer in model.named_layers()
        }

    def set_buffers(self, buffers: Mapping[str, Array]) -> None:
        """Start from copies of the model's buffers, by their names."""
        for name, buffer in buffers.items():
            self.buffers[name].copy_(torch.from_numpy(buffer))

    def anchor(self, param: Array) -> None:
        """Start from a copy of the model's parameters."""
        torch.from_numpy(self.param).copy_(torch.from_numpy(param))  # by torch's threads


def loss_function(loss: Loss, dtype: torch.dtype) -> Function:
    """torch's version of a loss in `dtype`: its own `reference`, or torch.nn's of the same name. TypeError if there is
    neither.
    """
    reference: Function | None = getattr(loss, "reference", None)
    if reference is not None:
        return reference
    try:
        return torch_module(loss, type(loss).__name__).to(dtype).forward
    except Misfit as misfit:
        raise TypeError(f"{misfit}: the class must define reference(), its formula on torch tensors") from misfit
