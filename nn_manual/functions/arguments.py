"""The arguments of a function: tensors in lists, dicts and modules, each with a name."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any

import numpy as np
import torch
from torch.func import functional_call

from nn_manual.errors import raise_if_nobodys_fault


@dataclass(frozen=True)
class Arguments:
    """The arguments of a call as a flat list of `leaves`, each with a name. The items of a list, tuple or dict of
    tensors are leaves, and so are the parameters of a module. `positional` and `keywords` are the arguments with a
    Number in the place of each leaf. `parameters` has the number of the leaf for each parameter; `frozen` are the names
    of the parameters that require no gradient. `buffers` are those that a module and its reference both have.
    """

    names: tuple[str, ...]
    leaves: tuple[Any, ...]
    positional: tuple[Any, ...]
    keywords: Mapping[str, Any] = field(default_factory=dict)
    parameters: Mapping[str, int] = field(default_factory=dict)
    buffers: Mapping[str, torch.Tensor] = field(default_factory=dict)
    frozen: frozenset[str] = frozenset()

    @property
    def are_flat(self) -> bool:
        """Whether each argument is a leaf, and is passed by position."""
        return self.positional == tuple(map(Number, range(len(self.leaves))))

    def call(self, function: Callable[..., Any], leaves: Sequence[Any]) -> Any:
        """What the function returns for other leaves in the same places. A module's buffers stay as they are."""
        return self.call_and_buffers(function, leaves)[0]

    def call_and_buffers(self, function: Callable[..., Any], leaves: Sequence[Any]) -> tuple[Any, dict[str, Any]]:
        """What `call` returns, and the `buffers` after the call, by name."""
        return self.call_filled(function, leaves, *self.filled(leaves))

    def filled(self, leaves: Sequence[Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The positional and the keyword arguments with these leaves, in new lists and dicts."""
        positional = tuple(_filled(each, leaves) for each in self.positional)
        return positional, {name: _filled(each, leaves) for name, each in self.keywords.items()}

    def call_filled(
        self, function: Callable[..., Any], leaves: Sequence[Any], positional: tuple[Any, ...], keywords: dict[str, Any]
    ) -> tuple[Any, dict[str, Any]]:
        """What `call_and_buffers` returns, for arguments that the caller has filled."""
        if not isinstance(function, torch.nn.Module):
            return function(*positional, **keywords), {}
        state = {name: leaves[number] for name, number in self.parameters.items()}
        state |= self._buffers_of(function, leaves)
        returned = functional_call(function, state, positional, keywords)
        return returned, {name: state[name] for name in self.buffers}

    def _buffers_of(self, module: torch.nn.Module, leaves: Sequence[Any]) -> dict[str, torch.Tensor]:
        """Copies of the module's buffers on the device of the leaves. Floating ones are float64 if all floating leaves
        are. Otherwise their dtypes change as those of the parameters did, as by module.to(dtype).
        """
        dtypes = {own.dtype: leaves[self.parameters[name]].dtype for name, own in module.named_parameters()}
        tensors = [as_tensor(leaf) for leaf in leaves if isinstance(leaf, np.ndarray | torch.Tensor)]
        if all(tensor.dtype == torch.float64 for tensor in tensors if tensor.is_floating_point()):
            dtypes = {torch.float32: torch.float64, torch.bfloat16: torch.float64, torch.float16: torch.float64}
        buffers = {**dict(module.named_buffers()), **self.buffers}
        return {
            name: buffer.detach().to(tensors[0].device, dtypes.get(buffer.dtype, buffer.dtype), copy=True)
            for name, buffer in buffers.items()
        }


def arguments_of(function: Any, reference: Any, inputs: Sequence[Any] | Mapping[str, Any]) -> Arguments:
    """The arguments in `inputs`: a sequence is passed by position, a mapping by keyword. Their names are those in the
    signature of the reference, or else of the function. The parameters of a module are arguments, too.

    Raises TypeError for inputs that are neither a sequence nor a mapping, and for dataclasses of tensors. Raises
    ValueError for a module whose reference isn't a module with the same parameters.
    """
    if not isinstance(inputs, list | tuple | Mapping):
        raise TypeError(f"inputs must be a list of the arguments, or a dict of them, not {type(inputs).__name__}")
    names: list[str] = []
    leaves: list[Any] = []
    keywords = inputs if isinstance(inputs, Mapping) else {}
    positional = () if isinstance(inputs, Mapping) else tuple(inputs)
    called = _names_of_inputs(reference, len(positional)) or _names_of_inputs(function, len(positional))
    called += [f"input_{i}" for i in range(len(called), len(positional))]
    of_positional = [_numbered(each, name, names, leaves) for each, name in zip(positional, called, strict=True)]
    of_keywords = {name: _numbered(each, name, names, leaves) for name, each in keywords.items()}
    parameters: dict[str, int] = {}
    buffers: dict[str, torch.Tensor] = {}
    frozen: set[str] = set()
    if isinstance(function, torch.nn.Module):
        for name, parameter in _shared_parameters(function, reference).items():
            parameters[name] = len(leaves)
            names.append(name)
            leaves.append(parameter.detach())
            if not parameter.requires_grad:
                frozen.add(name)
        buffers = _shared_buffers(function, reference)
    flat = tuple(names), tuple(leaves), tuple(of_positional)
    return Arguments(*flat, of_keywords, parameters, buffers, frozenset(frozen))


def _shared_parameters(module: torch.nn.Module, reference: Any) -> dict[str, torch.nn.Parameter]:
    own = dict(module.named_parameters())
    if not isinstance(reference, torch.nn.Module):
        raise ValueError(f"{type(module).__name__} is a module: its reference must be one, with the same parameters")
    theirs = dict(reference.named_parameters())
    for name in sorted(own.keys() ^ theirs.keys()):
        lacking = type(reference).__name__ if name in own else type(module).__name__
        raise ValueError(f"{lacking} has no parameter {name}: the module and its reference need the same ones")
    for name, parameter in own.items():
        if parameter.shape != theirs[name].shape:
            shapes = f"{tuple(parameter.shape)}, the reference's {tuple(theirs[name].shape)}"
            raise ValueError(f"parameter {name} of {type(module).__name__} has shape {shapes}")
    return own


def _shared_buffers(module: torch.nn.Module, reference: torch.nn.Module) -> dict[str, torch.Tensor]:
    """The module's buffers that the reference has, too, in the same shape and dtype. Others are the module's own."""
    theirs = dict(reference.named_buffers())
    return {
        name: buffer
        for name, buffer in module.named_buffers()
        if name in theirs and (buffer.shape, buffer.dtype) == (theirs[name].shape, theirs[name].dtype)
    }


def _names_of_inputs(function: Any, count: int) -> list[str]:
    """The names of the first inputs in the signature of the function, or of an autograd.Function's forward, without
    its context, which stands there unless setup_context gets it. Empty for a built-in function without a signature.
    """
    called = attribute_of(function, "__self__", function)
    is_class = isinstance(called, type) and issubclass(called, torch.autograd.Function)
    has_context = is_class and called.setup_context is torch.autograd.Function.setup_context
    called = called.forward if is_class or isinstance(called, torch.nn.Module) else function
    try:
        parameters = inspect.signature(called).parameters.values()
    except Exception as error:  # anyone's attributes may raise anything
        raise_if_nobodys_fault(error)
        return []
    names = [p.name for p in parameters if p.kind <= p.POSITIONAL_OR_KEYWORD]
    return names[has_context:][:count]


@dataclass(frozen=True)
class Number:
    """What stands in the place of a leaf: its number."""

    number: int


def _numbered(thing: Any, name: str, names: list[str], leaves: list[Any]) -> Any:
    """The thing with a Number in the place of each leaf. The leaves are added to `leaves`, their names to `names`."""
    if _holds_arrays(thing):
        if isinstance(thing, Mapping):
            return {key: _numbered(each, f"{name}[{key!r}]", names, leaves) for key, each in thing.items()}
        inner = [_numbered(each, f"{name}[{i}]", names, leaves) for i, each in enumerate(thing)]
        return type(thing)(*inner) if hasattr(thing, "_fields") else type(thing)(inner)
    if is_dataclass(thing) and _holds_arrays([getattr(thing, field.name) for field in fields(thing)]):
        kind = type(thing).__name__
        made = f"{kind}({', '.join(field.name for field in fields(thing))})"
        raise TypeError(f"{name} is a dataclass, {kind}: pass its tensors alone, to a function that makes {made}")
    if isinstance(thing, torch.Tensor) and thing.is_inference():
        thing = thing.clone()  # autograd follows no tensor of torch.inference_mode
    names.append(name)
    leaves.append(_settings(thing))
    return Number(len(leaves) - 1)


def _settings(thing: Any) -> Any:
    """A copy of dicts and lists without arrays: what a function writes into them would be an input next time."""
    if type(thing) is dict:
        return {key: _settings(each) for key, each in thing.items()}
    return [_settings(each) for each in thing] if type(thing) is list else thing


def _holds_arrays(thing: Any) -> bool:
    if isinstance(thing, Mapping):
        thing = tuple(thing.values())
    if not isinstance(thing, list | tuple):
        return False
    return any(isinstance(each, np.ndarray | torch.Tensor) or _holds_arrays(each) for each in thing)


def _filled(thing: Any, leaves: Sequence[Any]) -> Any:
    if isinstance(thing, Number):
        return leaves[thing.number]
    if isinstance(thing, dict):
        return {key: _filled(each, leaves) for key, each in thing.items()}
    inner = [_filled(each, leaves) for each in thing]
    return type(thing)(*inner) if hasattr(thing, "_fields") else type(thing)(inner)


def attribute_of(thing: Any, name: str, default: Any) -> Any:
    """getattr for a thing whose own __getattr__ may raise anything."""
    try:
        return getattr(thing, name, default)
    except Exception as error:  # anyone's attributes may raise anything
        raise_if_nobodys_fault(error)
        return default


def as_tensor(array: Any) -> torch.Tensor:
    """The array or number as a tensor; memory that torch can use is shared, and so the layout is the same."""
    if isinstance(array, torch.Tensor):
        return array
    array = np.asarray(array)
    # torch has no strides below 0, and counts them in items, which those of a structured array's field may not fit.
    is_taken = array.flags.writeable and all(
        stride >= 0 and stride % max(1, array.itemsize) == 0 for stride in array.strides
    )
    return torch.from_numpy(array if is_taken else array.copy())
