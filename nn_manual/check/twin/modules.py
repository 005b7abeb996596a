"""torch.nn's classes, made with the fields of our layers and losses, in their form: one array in and one out."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import torch
from torch.nn.utils import parametrizations

from nn_manual.check.twin.attention import CausalSelfAttention, SelfAttention, TransformerEncoderLayer
from nn_manual.check.twin.losses import CTCLoss, MultiLabelMarginLoss
from nn_manual.check.twin.recurrent import OutputAlone, OverLengths
from nn_manual.defaults import defines
from nn_manual.errors import raise_if_nobodys_fault, text_of
from nn_manual.layers.base import Layer
from nn_manual.layers.composite import buffer_shapes, counter_names

#: Classes of torch.nn that draw random numbers in training: two right ones would differ. A test runs each of them.
RANDOM = {
    *("Dropout", "Dropout1d", "Dropout2d", "Dropout3d", "AlphaDropout", "FeatureAlphaDropout"),
    "RReLU",
}
#: Those that draw, and can be given what they would draw.
FRACTIONAL = "FractionalMaxPool2d", "FractionalMaxPool3d"


class CannotStandIn(Exception):  # noqa: N818 - says what doesn't fit, not that something broke
    """torch.nn's class can't stand for a layer; the text says why."""


class _PaddedByItself:
    """torch.nn's convolution, which puts the zeros of "same" around the input as it puts other frames there. Its own
    way warns of a copy, if the kernel has an even size.
    """

    padding: Any
    padding_mode: str

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        if self.padding == "same" and self.padding_mode == "zeros":
            self.padding_mode = "constant"  # the word of torch.nn.functional.pad


class Bilinear(torch.nn.Bilinear):
    """torch.nn.Bilinear of one array with itself."""

    def forward(self, input: torch.Tensor) -> torch.Tensor:  # type: ignore[override]  # one array for two
        """The output."""
        return super().forward(input, input)


class PaddedEmbeddingBag(torch.nn.EmbeddingBag):
    """torch.nn.EmbeddingBag of bags that lie one behind the other."""

    def forward(self, input: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:  # type: ignore[override]  # lengths
        """The output."""
        counts = lengths.to(torch.int64)
        indices = input[torch.arange(input.shape[1]) < counts[:, None]]
        return super().forward(indices, counts.cumsum(0) - counts)


class Upsample(torch.nn.Upsample):
    """torch's, which takes several factors as a tuple alone."""

    def __init__(self, *, scale_factor: Any, **settings: Any) -> None:
        several = isinstance(scale_factor, torch.Tensor)  # see _with_tensors
        super().__init__(scale_factor=tuple(scale_factor.tolist()) if several else scale_factor, **settings)


class WithSamples(torch.nn.Module):
    """torch.nn's fractional pooling with given samples: it would draw others. In evaluation, where it draws, too, each
    is 1/2, as in ours.
    """

    kernel_size: Any
    output_size: Any
    output_ratio: Any

    def forward(self, input: torch.Tensor, samples: torch.Tensor | None = None) -> torch.Tensor:
        """The output."""
        num_dims = input.ndim - 2
        if samples is None:
            samples = input.new_full((*input.shape[:2], num_dims), 0.5)
        function = getattr(torch.nn.functional, f"fractional_max_pool{num_dims}d")
        output: torch.Tensor = function(
            input, self.kernel_size, self.output_size, self.output_ratio, _random_samples=samples
        )
        return output


class OfReference(torch.nn.Module):
    """The reference of a layer, as a module with the layer's parameters, of which torch can parametrize one."""

    def __init__(self, layer: Any) -> None:
        super().__init__()
        self.of = layer
        for name, shape in layer.parameter_shapes().items():
            self.register_parameter(name, torch.nn.Parameter(torch.empty(shape)))

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """The output."""
        parameters = {name: getattr(self, name) for name in self.of.parameter_shapes()}
        output: torch.Tensor = self.of.reference(input, **parameters)
        return output


def weight_norm(*, layer: Layer, name: str, dim: int | None) -> torch.nn.Module:
    """torch's weight normalization of torch's class for the layer, or of the layer's reference."""
    module: torch.nn.Module = parametrizations.weight_norm(_inside(layer), name, -1 if dim is None else dim)
    return module


def spectral_norm(*, layer: Layer, **settings: Any) -> torch.nn.Module:
    """torch's spectral normalization of torch's class for the layer, or of the layer's reference."""
    with torch.random.fork_rng(devices=[]):
        return parametrizations.spectral_norm(_inside(layer), **settings)


def _inside(layer: Layer) -> torch.nn.Module:
    """What a layer is compared with, with memory: on the meta device, these functions take half a second. Raises
    CannotStandIn where there is neither a reference nor torch's class.
    """
    if defines(layer, "reference"):
        with torch.device("cpu"):
            return OfReference(layer)
    name = layer.torch_class or type(layer).__name__
    try:
        return fitting_module(name, layer).to_empty(device="cpu")
    except CannotStandIn as misfit:
        raise CannotStandIn(f"{type(layer).__name__} has no reference; {misfit}") from misfit


#: Classes, or functions that make a module, for layers of ours.
ADAPTED: dict[str, Callable[..., torch.nn.Module]] = {
    "Bilinear": Bilinear,
    "CTCLoss": CTCLoss,
    "CausalSelfAttention": CausalSelfAttention,
    "MultiLabelMarginLoss": MultiLabelMarginLoss,
    "MultiheadAttention": SelfAttention,
    "PaddedCausalSelfAttention": CausalSelfAttention,
    "PaddedMultiheadAttention": SelfAttention,
    "PaddedEmbeddingBag": PaddedEmbeddingBag,
    "TransformerEncoderLayer": TransformerEncoderLayer,
    "Upsample": Upsample,
    "SpectralNorm": spectral_norm,
    "WeightNorm": weight_norm,
    **{name: type(name, (WithSamples, getattr(torch.nn, name)), {}) for name in FRACTIONAL},
    **{name: type(name, (_PaddedByItself, getattr(torch.nn, name)), {}) for name in ("Conv1d", "Conv2d", "Conv3d")},
    **{name: type(name, (OutputAlone, getattr(torch.nn, name)), {}) for name in ("RNN", "LSTM", "GRU")},
    **{f"Padded{name}": type(name, (OverLengths, getattr(torch.nn, name)), {}) for name in ("RNN", "LSTM", "GRU")},
}


def name_in_torch(name: str) -> str:
    """What torch.nn calls the class that stands for ours of this name."""
    made_by = ADAPTED.get(name)
    if inspect.isfunction(made_by):
        return f"utils.parametrizations.{made_by.__name__}"
    bases = made_by.__mro__ if isinstance(made_by, type) else ()
    return next((base.__name__ for base in bases if base.__module__.startswith("torch.")), name)


def torch_module(ours: Any, name: str) -> torch.nn.Module:
    """torch.nn's class of this name, made with the fields of a layer or loss. Raises CannotStandIn."""
    torch_class = ADAPTED.get(name) or getattr(torch.nn, name, None)
    is_class = isinstance(torch_class, type) and issubclass(torch_class, torch.nn.Module)
    if torch_class is None or not (is_class or name in ADAPTED):
        raise CannotStandIn(f"torch.nn has no class {name}")
    arguments = _with_tensors(settings(ours))
    try:
        # On the meta device nothing is allocated or drawn: the parameters are replaced by ours.
        with torch.device("meta"):
            module = torch_class(**arguments)
        if any(True for _ in module.buffers()):  # nobody replaces these, and on the meta device they have no values
            with torch.random.fork_rng(devices=[]):
                module = torch_class(**arguments)
    except CannotStandIn:  # of what is inside
        raise
    except BaseException as error:  # TypeError for other keyword arguments; torch raises anything for bad values
        raise_if_nobodys_fault(error)
        raise CannotStandIn(f"torch.nn.{name} can't be made with the fields of {ours!r}: {text_of(error)}") from error
    return module


def _with_tensors(settings: dict[str, Any]) -> dict[str, Any]:
    """The same, lists of floats as tensors: torch.nn takes weights so, and a config has them as a list."""
    return {name: _as_tensor(value) if _are_weights(value) else value for name, value in settings.items()}


def _are_weights(value: object) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(item, float) for item in value)


def _as_tensor(weights: list[float]) -> torch.Tensor:
    return torch.tensor(weights, dtype=torch.float64)  # the module is moved to its own dtype later


def settings(ours: Any) -> dict[str, Any]:
    """The fields of a dataclass, a layer's, loss's or optimizer's, by name: torch's keyword arguments. A class without
    an `__init__` has none. Raises CannotStandIn for another class that is no dataclass.
    """
    if is_dataclass(ours):
        return {field.name: getattr(ours, field.name) for field in fields(ours)}
    if type(ours).__init__ is object.__init__:
        return {}
    raise CannotStandIn(
        f"{type(ours).__name__} is no dataclass, so nobody knows its settings: write @dataclass(eq=False) above it"
    )


def fitting_module(name: str, layer: Layer) -> torch.nn.Module:
    """torch.nn's class of this name for a layer. Raises CannotStandIn where it has other parameters or is random."""
    if name in RANDOM:
        raise CannotStandIn(f"torch.nn.{name} draws random numbers")
    module = torch_module(layer, name)
    ours, theirs = layer.parameter_shapes(), {key: tuple(p.shape) for key, p in module.named_parameters()}
    if ours != theirs:
        raise CannotStandIn(f"the parameters of torch.nn.{name} are {_listed(theirs)}, the layer's {_listed(ours)}")
    buffers = buffer_shapes(layer) | dict.fromkeys(counter_names(layer), ())
    theirs = {key: tuple(buffer.shape) for key, buffer in module.named_buffers()}
    if buffers and buffers != theirs:  # a layer without any isn't compared after the step
        raise CannotStandIn(f"the buffers of torch.nn.{name} are {_listed(theirs)}, the layer's {_listed(buffers)}")
    return module


def _listed(shapes: Mapping[str, tuple[int, ...]]) -> str:
    return ", ".join(f"{name} {shape}" for name, shape in shapes.items()) or "none"
