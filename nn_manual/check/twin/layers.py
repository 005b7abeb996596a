"""What a layer is compared with: a reference of its own, torch's layer, or differences of its own forward.

Differences need no derivation and no torch, so they serve any layer. But they take some eight evaluations for each
element of the input and of the parameters. So a large layer should have a `reference`.
"""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable, Mapping
from enum import Enum
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import torch

from nn_manual.arrays import Array
from nn_manual.check.twin.by_differences import ByDifferences
from nn_manual.check.twin.modules import (
    ADAPTED,
    CannotStandIn,
    OfReference,
    fitting_module,
    name_in_torch,
    torch_module,
)
from nn_manual.defaults import defines, is_of_package
from nn_manual.errors import raise_if_nobodys_fault, words_of
from nn_manual.layers.base import Layer, num_parameters
from nn_manual.layers.composite import has_buffers
from nn_manual.layers.parametrized import Parametrized
from nn_manual.model.memory import bind

Function = Callable[..., torch.Tensor]

class Source(Enum):
    """Where the reference of a layer comes from; the values are for reports."""

    TORCH = "torch.nn's class"
    REFERENCE = "its own reference"
    FORWARD = "its own forward in float64, the gradients with central differences of it"


class Counterpart(NamedTuple):
    """What a layer is compared with: where it comes from, how a report calls it, and torch's module, if it is that.

    `misfit` says why torch's class of that name isn't taken, or is empty.
    """

    source: Source
    name: str
    module: torch.nn.Module | None = None
    misfit: str = ""

    @property
    def advice(self) -> str:
        """What to do where torch's class of the layer's name doesn't run as the layer does."""
        return "; torch_class = None in the class stops this comparison" if self.module is not None else ""

    @property
    def sentence(self) -> str:
        """What the layer is compared with, and why it isn't torch's class of its name."""
        return f"{self.name}; {self.misfit}" if self.misfit else self.name


def is_own(layer: Layer) -> bool:
    """Whether a layer, or what it computes a parameter of, is a user's own."""
    return not is_of_package(type(layer.layer if isinstance(layer, Parametrized) else layer))


def counterpart_of(layer: Layer) -> Counterpart:
    """What a layer is compared with.

    Its own `reference`, if it has one; or else torch.nn's class of the name in its `torch_class`, by default the name
    of its own class; or else its own forward. torch's class is taken where it has the layer's fields as keyword
    arguments and parameters of the same names and shapes, and isn't random. Raises CannotStandIn where the layer's
    `torch_class` names a class that doesn't fit.
    """
    if defines(layer, "reference"):
        return Counterpart(Source.REFERENCE, Source.REFERENCE.value)
    if layer.children():
        raise CannotStandIn(
            "it is made of layers and has no reference: reference(self, input, *children) says how torch's versions of "
            "them are put together"
        )
    named = layer.torch_class != ""
    name = layer.torch_class if named else type(layer).__name__
    if name is not None and not isinstance(name, str):
        raise CannotStandIn(f"its torch_class is {name!r}, it must be the name of a class of torch.nn, or None")
    if name is None or not (named or hasattr(torch.nn, name) or name in ADAPTED):
        return _own_forward(layer)
    try:
        module = fitting_module(name, layer)
        return Counterpart(Source.TORCH, f"torch.nn.{name_in_torch(name)}{_of_own(module)}", module)
    except CannotStandIn as misfit:
        if named:
            raise CannotStandIn(f"its torch_class doesn't fit: {misfit}") from misfit
        return _own_forward(layer, str(misfit))


def _of_own(module: torch.nn.Module) -> str:
    """What torch's function is used on, where that isn't torch's."""
    inside = (type(inner.of).__name__ for inner in module.modules() if isinstance(inner, OfReference))
    return "".join(f" of {name}'s own reference" for name in inside)


def _own_forward(layer: Layer, misfit: str = "") -> Counterpart:
    if has_buffers(layer):
        if isinstance(layer, Parametrized):
            raise CannotStandIn(f"it has buffers, so that differences can't stand for it, and {misfit}")
        words = "it has buffers: its reference must return the output, and a dict of the buffers after the step"
        raise CannotStandIn(f"{words}; {misfit}" if misfit else words)
    return Counterpart(Source.FORWARD, Source.FORWARD.value, misfit=misfit)


def layer_function(
    layer: Layer,
    parameters: Mapping[str, torch.nn.Parameter],
    buffers: Mapping[str, torch.Tensor],
    dtype: torch.dtype,
) -> Function | ByDifferences:
    """torch's version of a layer in training, using `parameters` and moving `buffers`, in `dtype`."""
    try:
        counterpart = counterpart_of(layer)
        if counterpart.source is Source.FORWARD:
            return ByDifferences(_forward_in_float64(layer), parameters.values(), dtype)
    except CannotStandIn as misfit:
        return _raising(misfit)
    if counterpart.module is None:
        return _own_reference(layer, parameters, buffers)
    counterpart.module.to(dtype)  # its buffers, where the layer has none
    return _forward_with(counterpart.module, {**parameters, **buffers})


def _forward_with(module: torch.nn.Module, tensors: Mapping[str, torch.Tensor]) -> Function:
    """The forward of a module whose parameters and buffers are these tensors, by its names for them."""
    for name, tensor in tensors.items():
        owner, _, own_name = name.rpartition(".")
        setattr(module.get_submodule(owner), own_name, tensor)
    return module.forward  # a call of the module looks for hooks, which takes longer than forward; there are none


def evaluation_function(layer: Layer) -> Function:
    """torch's version of a layer in evaluation, with copies of its parameters and buffers: its `infer_reference`, or
    torch's class in eval(). Raises CannotStandIn where there is neither.
    """
    tensors = {name: torch.from_numpy(a.copy()) for name, a in (vars(layer.param) | vars(layer.buffer)).items()}
    if defines(layer, "infer_reference"):
        return functools.partial(layer.infer_reference, **tensors)
    name = layer.torch_class or type(layer).__name__
    try:
        module = torch_module(layer, name).eval()
    except CannotStandIn as misfit:
        words = "it has its own infer, and torch has nothing to compare it with: define infer_reference(input, ...)"
        raise CannotStandIn(f"{words}; {misfit}") from misfit
    parameters = {name: torch.nn.Parameter(tensors[name]) for name in vars(layer.param)}
    return _forward_with(module, {**tensors, **parameters})


def _raising(misfit: CannotStandIn) -> Function:
    def function(input: torch.Tensor) -> torch.Tensor:  # noqa: ARG001 - as all of torch's versions
        raise misfit

    return function


def _own_reference(layer: Any, parameters: Mapping[str, torch.Tensor], buffers: Mapping[str, torch.Tensor]) -> Function:
    """The layer's `reference`, which gets its parameters, buffers and noise by their names. Where it has buffers, it
    returns the output and the buffers after the step, by their names.
    """

    def function(input: torch.Tensor, **noise: torch.Tensor) -> torch.Tensor:
        output: torch.Tensor
        if not buffers:
            output = layer.reference(input, **parameters, **noise)
            return output
        # It gets copies: what it may do with them is to compute from them.
        copies = {name: buffer.clone() for name, buffer in buffers.items()}
        match layer.reference(input, **parameters, **copies, **noise):
            case (torch.Tensor() as output, dict(moved)) if moved.keys() == buffers.keys():
                for name, value in moved.items():
                    buffers[name].copy_(torch.as_tensor(value).detach())
                return output
        names = ", ".join(buffers)
        raise CannotStandIn(f"it must return the output, and a dict of all buffers after the step: {names}")

    return function


def _forward_in_float64(layer: Layer) -> Callable[..., Array]:
    """The layer's forward as a function of its parameters, its input, and its noise by names, all float64. Raises
    CannotStandIn for a layer that can't be copied.
    """
    try:
        double = copy.deepcopy(layer)
    except BaseException as error:  # a layer may hold anything
        raise_if_nobodys_fault(error)
        raise CannotStandIn(f"it can't be copied, which the check needs: {words_of(error)}") from error
    param = np.empty(num_parameters(layer))
    bind(double, param, np.empty_like(param))

    def forward(*operands: Array, **noise: Array) -> Array:
        *parameters, input = operands
        if noise:
            double.noise = SimpleNamespace(**noise)
        for view, parameter in zip(vars(double.param).values(), parameters, strict=True):
            view[...] = parameter
        return np.array(double.forward(input)[0])  # a copy: it may be a view of what is overwritten next

    return forward
