"""What a layer is compared with: a reference of its own, torch's layer, or differences of its own forward.

Differences need no derivation and no torch, so they serve any layer. But they take some eight evaluations for each
element of the input and of the parameters. So a large layer should have a `reference`.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from dataclasses import fields
from enum import Enum
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import torch

from nn_manual.arrays import Array
from nn_manual.check.twin.adapted import ADAPTED, name_in_torch
from nn_manual.check.twin.differences import ByDifferences
from nn_manual.errors import raise_if_nobodys_fault, text_of, words_of
from nn_manual.layers.base import Layer

Function = Callable[..., torch.Tensor]

#: Classes of torch.nn that draw random numbers in training: two right ones would differ. A test runs each of them.
RANDOM = {
    *("Dropout", "Dropout1d", "Dropout2d", "Dropout3d", "AlphaDropout", "FeatureAlphaDropout"),
    *("RReLU", "FractionalMaxPool2d", "FractionalMaxPool3d"),
}


class Source(Enum):
    """Where the reference of a layer comes from; the values are for reports."""

    TORCH = "torch.nn's class"
    REFERENCE = "its own reference"
    FORWARD = "its own forward in float64, the gradients with central differences of it"


class Misfit(Exception):  # noqa: N818 - says what doesn't fit, not that something broke
    """torch.nn's class can't stand for a layer; the text says why."""


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


def counterpart_of(layer: Layer) -> Counterpart:
    """What a layer is compared with.

    Its own `reference`, if it has one; or else torch.nn's class of the name in its `torch_class`, by default the name
    of its own class; or else its own forward. torch's class is taken where it has the layer's fields as keyword
    arguments and parameters of the same names and shapes, and isn't random. Raises Misfit where a class that the layer
    names in `torch_class` isn't such a one.
    """
    if hasattr(layer, "reference"):
        return Counterpart(Source.REFERENCE, Source.REFERENCE.value)
    if layer.children():
        raise Misfit(
            "it is made of layers and has no reference: reference(self, input, *children) says how torch's versions of "
            "them are put together"
        )
    named = hasattr(layer, "torch_class")
    name = getattr(layer, "torch_class", type(layer).__name__)
    if name is not None and not isinstance(name, str):
        raise Misfit(f"its torch_class is {name!r}, it must be the name of a class of torch.nn, or None")
    if name is None or not (named or hasattr(torch.nn, name) or name in ADAPTED):
        return _own_forward(layer)
    try:
        module = _fitting_module(name, layer)
        return Counterpart(Source.TORCH, f"torch.nn.{name_in_torch(name)}", module)
    except Misfit as misfit:
        if named:
            raise Misfit(f"its torch_class doesn't fit: {misfit}") from misfit
        return _own_forward(layer, str(misfit))


def _own_forward(layer: Layer, misfit: str = "") -> Counterpart:
    if layer.buffer_shapes() or layer.counter_names():
        words = "it has buffers: its reference must return the output, and a dict of the buffers after the step"
        raise Misfit(f"{words}; {misfit}" if misfit else words)
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
    except Misfit as misfit:
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


def evaluation_function(layer: Any) -> Function:
    """torch's version of a layer in evaluation, with copies of its parameters and buffers: its `infer_reference`, or
    torch's class in eval(). Raises Misfit where there is neither.
    """
    tensors = {name: torch.from_numpy(a.copy()) for name, a in (vars(layer.param) | vars(layer.buffer)).items()}
    if hasattr(layer, "infer_reference"):
        return lambda input: layer.infer_reference(input, **tensors)
    name = getattr(layer, "torch_class", None) or type(layer).__name__
    try:
        module = torch_module(layer, name).eval()
    except Misfit as misfit:
        words = "it has an infer of its own, beside which nothing stands: define infer_reference(input, ...)"
        raise Misfit(f"{words}; {misfit}") from misfit
    parameters = {name: torch.nn.Parameter(tensors[name]) for name in vars(layer.param)}
    return _forward_with(module, {**tensors, **parameters})


def torch_module(ours: Any, name: str) -> torch.nn.Module:
    """torch.nn's class of this name, made with the fields of a layer or loss. Raises Misfit."""
    torch_class = ADAPTED.get(name) or getattr(torch.nn, name, None)
    if not (isinstance(torch_class, type) and issubclass(torch_class, torch.nn.Module)):
        raise Misfit(f"torch.nn has no class {name}")
    try:
        # On the meta device nothing is allocated or drawn: the parameters are replaced by ours.
        with torch.device("meta"):
            module = torch_class(**_with_tensors(settings(ours)))
        if any(True for _ in module.buffers()):  # nobody replaces these, and on the meta device they have no values
            with torch.random.fork_rng(devices=[]):
                module = torch_class(**_with_tensors(settings(ours)))
    except BaseException as error:  # TypeError for other keyword arguments; torch raises anything for bad values
        raise_if_nobodys_fault(error)
        raise Misfit(f"torch.nn.{name} can't be made with the fields of {ours!r}: {text_of(error)}") from error
    return module


def _with_tensors(settings: dict[str, Any]) -> dict[str, Any]:
    """The same, lists of floats as tensors: torch.nn takes weights so, and a config has them as a list."""
    return {name: _as_tensor(value) if _are_weights(value) else value for name, value in settings.items()}


def _are_weights(value: object) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(item, float) for item in value)


def _as_tensor(weights: list[float]) -> torch.Tensor:
    return torch.tensor(weights, dtype=torch.float64)  # the module is moved to its own dtype later


def settings(ours: Any) -> dict[str, Any]:
    """The fields of a dataclass, a layer's, loss's or optimizer's, by name: torch's keyword arguments."""
    return {field.name: getattr(ours, field.name) for field in fields(ours)}


def _fitting_module(name: str, layer: Layer) -> torch.nn.Module:
    """torch.nn's class of this name for a layer. Raises Misfit where it has other parameters or is random."""
    if name in RANDOM:
        raise Misfit(f"torch.nn.{name} draws random numbers")
    module = torch_module(layer, name)
    ours, theirs = layer.parameter_shapes(), {key: tuple(p.shape) for key, p in module.named_parameters()}
    if ours != theirs:
        raise Misfit(f"the parameters of torch.nn.{name} are {_listed(theirs)}, the layer's {_listed(ours)}")
    buffers = layer.buffer_shapes() | dict.fromkeys(layer.counter_names(), ())
    theirs = {key: tuple(buffer.shape) for key, buffer in module.named_buffers()}
    if buffers and buffers != theirs:  # a layer without any isn't compared after the step
        raise Misfit(f"the buffers of torch.nn.{name} are {_listed(theirs)}, the layer's {_listed(buffers)}")
    return module


def _listed(shapes: Mapping[str, tuple[int, ...]]) -> str:
    return ", ".join(f"{name} {shape}" for name, shape in shapes.items()) or "none"


def _raising(misfit: Misfit) -> Function:
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
        raise Misfit(f"it must return the output, and a dict of all buffers after the step: {names}")

    return function


def _forward_in_float64(layer: Layer) -> Callable[..., Array]:
    """The layer's forward as a function of its parameters, its input, and its noise by names, all float64. Raises
    Misfit for a layer that can't be copied.
    """
    try:
        double = copy.deepcopy(layer)
    except BaseException as error:  # a layer may hold anything
        raise_if_nobodys_fault(error)
        raise Misfit(f"it can't be copied, which the check needs: {words_of(error)}") from error
    param = np.empty(layer.num_parameters)
    double.bind(param, np.empty_like(param))

    def forward(*operands: Array, **noise: Array) -> Array:
        *parameters, input = operands
        if noise:
            double.noise = SimpleNamespace(**noise)
        for view, parameter in zip(vars(double.param).values(), parameters, strict=True):
            view[...] = parameter
        return np.array(double.forward(input)[0])  # a copy: it may be a view of what is overwritten next

    return forward
