"""The torch twin of a model, its layers and its loss; and how torch is set while it computes.

Its parameters lie in one flat tensor. It computes on few threads where more would be slower, without oneDNN, and
with gradients.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import numpy as np
import numpy.typing as npt
import torch

from nn_manual.arrays import Array, carve
from nn_manual.check.twin.by_differences import ByDifferences
from nn_manual.check.twin.layers import Function, layer_function
from nn_manual.check.twin.modules import CannotStandIn, torch_module
from nn_manual.defaults import defines
from nn_manual.errors import NoReference
from nn_manual.layers.composite import buffer_names
from nn_manual.losses import Loss
from nn_manual.model import Sequential

TORCH_DTYPES = {"float32": torch.float32, "float64": torch.float64}

#: A forward of fewer multiplications than this is faster on one thread: a second one takes longer to start. On one
#: thread the step of the 64-64-10 net takes 0.85 times as long, that of the 784-128-10 net, at 6.5 million, 1.1 times.
FEW_PRODUCTS = 1 << 20


@contextmanager
def reference_settings() -> Iterator[None]:
    """The context in which torch computes a reference: with gradients, which the caller may have switched off, and
    without oneDNN, and so more exactly.

    On processors with AVX-512, oneDNN's gradient of a convolution's weight was 1.4e-4 of its largest element off, where
    50,000 terms cancel; torch's own is 3e-6 off, ours 1e-6. And a whole LSTM is one operation in oneDNN.
    """
    flags = torch.backends.mkldnn.set_flags(_enabled=False)  # type: ignore[no-untyped-call]  # torch has no annotations
    try:
        with torch.inference_mode(mode=False), torch.enable_grad():
            yield
    finally:
        torch.backends.mkldnn.set_flags(_enabled=flags[0])  # type: ignore[no-untyped-call]  # as above


class Twin:
    """torch's version of a model and its loss: one function for each layer that is made of no others, by its name.

    `param` is a numpy array over the memory of all parameters, laid out as the model's `param_arena`, in `dtype` or
    else the model's. `parameters` are torch's views of it, by torch's names; of a shared one, several.
    """

    @reference_settings()
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
                {key: self.buffers[f"{name}.{key}"] for key in buffer_names(layer)},
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
    """torch's version of a loss in `dtype`: its own `reference`, or torch.nn's of the same name. NoReference if there
    is neither.
    """
    if defines(loss, "reference"):
        return loss.reference
    try:
        module = torch_module(loss, type(loss).__name__).to(dtype)
    except CannotStandIn as misfit:
        words = f"{misfit}: the class must define reference(), its formula on torch tensors"
        raise NoReference(type(loss), words) from misfit

    def function(prediction: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        value: torch.Tensor = module.forward(prediction, target_as_torch_takes_it(prediction, target))
        return value

    return function


def target_as_torch_takes_it(prediction: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    """Behind a prediction of rows, class indices may have any shape in ours; torch takes them in row order."""
    return target.reshape(-1) if prediction.ndim == 2 and not target.is_floating_point() else target


def as_tensor(array: Array) -> torch.Tensor:
    """The array's memory as a tensor; a copy of it where torch can't share the memory."""
    if not array.flags.writeable or any(stride < 0 for stride in array.strides):
        array = array.copy()
    return torch.from_numpy(array)


@contextmanager
def threads_for(num_products: int) -> Iterator[None]:
    """The context in which torch uses one thread for few products, and for many the threads that it had."""
    num_threads = torch.get_num_threads()
    if num_products >= FEW_PRODUCTS or num_threads == 1:
        yield
        return
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(num_threads)
