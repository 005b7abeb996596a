"""Initialisers: seeded fills of the parameter views, with the distributions of torch.nn.init.

Without one, a model's parameters come from its layers' own `reset_parameters`, torch's defaults. With one, the weights
of linear maps and of tables come from it, and the biases of these maps are zero: each layer's `initialize` says which
they are. All other parameters, such as those of a normalization, still come from `reset_parameters`. `draw_parameters`
does this for a model. The weight that a Residual's branch ends in can be made smaller: only the model knows which one
that is, and how many there are.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Container, Mapping
from dataclasses import dataclass

import numpy as np

from nn_manual.arrays import Array, size_of
from nn_manual.layers.base import Layer
from nn_manual.layers.composite import descendants
from nn_manual.layers.containers import Residual

#: torch.nn.init.calculate_gain: keeps the variance of activations through the nonlinearity.
GAINS = {"linear": 1.0, "tanh": 5 / 3, "relu": math.sqrt(2)}


def _check_choice(name: str, value: str, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(choices)}, not {value!r}")


def _check_gain(gain: float) -> None:
    if not gain >= 0:
        raise ValueError(f"gain must be at least 0, not {gain}")


class Initializer(ABC):
    """A distribution for the weights of linear maps and of tables."""

    @abstractmethod
    def fill(self, weight: Array, generator: np.random.Generator) -> None:
        """Overwrite `weight` with draws from `generator`. An initializer that needs fan_in or fan_out raises ValueError
        for a weight that has none.
        """

    def residual_scale(self, num_residuals: int) -> float:  # noqa: ARG002 - most don't depend on it
        """What multiplies the last filled weight of each Residual of a model with so many of them."""
        return 1.0


def fans(weight: Array) -> tuple[int, int]:
    """How many inputs an output of the weight has, and how many outputs an input has, as torch.nn.init counts them:

        fan_in  = weight.shape[1] * receptive_field
        fan_out = weight.shape[0] * receptive_field

    where receptive_field is the product of all further dimensions, those of a convolution's kernel. Raises ValueError
    for a weight of fewer than two dimensions.
    """
    if weight.ndim < 2:
        raise ValueError(f"fan_in and fan_out need a weight of two or more dimensions, not one of shape {weight.shape}")
    num_outputs, num_inputs, *kernel = weight.shape
    receptive_field = size_of(tuple(kernel))
    return num_inputs * receptive_field, num_outputs * receptive_field


@dataclass(frozen=True)
class Zeros(Initializer):
    """weight = 0."""

    def fill(self, weight: Array, generator: np.random.Generator) -> None:  # noqa: ARG002 - nothing is random here
        """Overwrite with zeros."""
        weight[...] = 0


@dataclass(frozen=True)
class Constant(Initializer):
    """weight = value."""

    value: float

    def fill(self, weight: Array, generator: np.random.Generator) -> None:  # noqa: ARG002 - nothing is random here
        """Overwrite with `value`."""
        weight[...] = self.value


@dataclass(frozen=True)
class XavierUniform(Initializer):
    """Uniform in ±a with a = gain sqrt(6 / (fan_in + fan_out)) (Glorot and Bengio, 2010)."""

    gain: float = 1.0

    def __post_init__(self) -> None:
        _check_gain(self.gain)

    def fill(self, weight: Array, generator: np.random.Generator) -> None:
        """Overwrite with uniform draws."""
        bound = self.gain * math.sqrt(6 / sum(fans(weight)))
        weight[...] = generator.uniform(-bound, bound, weight.shape)


@dataclass(frozen=True)
class XavierNormal(Initializer):
    """Normal with standard deviation gain sqrt(2 / (fan_in + fan_out)) (Glorot and Bengio, 2010)."""

    gain: float = 1.0

    def __post_init__(self) -> None:
        _check_gain(self.gain)

    def fill(self, weight: Array, generator: np.random.Generator) -> None:
        """Overwrite with normal draws."""
        weight[...] = generator.normal(0, self.gain * math.sqrt(2 / sum(fans(weight))), weight.shape)


@dataclass(frozen=True)
class GPT2(Initializer):
    """Normal with standard deviation std; the last weight of each Residual with std / sqrt(number of Residuals).

    Each Residual adds its branch to what goes through. If n branches are independent, with variance v each, their sum
    has variance n v. Scaled by 1 / sqrt(n), they add up to v, however deep the model is (Radford et al., 2019, section
    2.3). A transformer has two Residuals a layer: n = 2 layers. In attention, the last weight is the output projection.
    """

    std: float = 0.02

    def __post_init__(self) -> None:
        if not 0 <= self.std < math.inf:
            raise ValueError(f"std must be at least 0 and finite, not {self.std}")

    def fill(self, weight: Array, generator: np.random.Generator) -> None:
        """Overwrite with normal draws."""
        weight[...] = generator.normal(0, self.std, weight.shape)

    def residual_scale(self, num_residuals: int) -> float:
        """1 / sqrt(num_residuals)."""
        return 1 / math.sqrt(num_residuals)


@dataclass(frozen=True)
class _Kaiming(Initializer):
    nonlinearity: str = "relu"
    mode: str = "fan_in"

    def __post_init__(self) -> None:
        _check_choice("nonlinearity", self.nonlinearity, tuple(GAINS))
        _check_choice("mode", self.mode, ("fan_in", "fan_out"))

    def _standard_deviation(self, weight: Array) -> float:
        fan_in, fan_out = fans(weight)
        return GAINS[self.nonlinearity] / math.sqrt(fan_in if self.mode == "fan_in" else fan_out)


class KaimingUniform(_Kaiming):
    """Uniform in ±sqrt(3) s with s = gain / sqrt(fan), so that the standard deviation is s (He et al., 2015).

    `nonlinearity` (linear, tanh or relu) sets the gain as torch.nn.init.calculate_gain does; `mode` is fan_in
    or fan_out.
    """

    def fill(self, weight: Array, generator: np.random.Generator) -> None:
        """Overwrite with uniform draws."""
        bound = math.sqrt(3) * self._standard_deviation(weight)
        weight[...] = generator.uniform(-bound, bound, weight.shape)


class KaimingNormal(_Kaiming):
    """Normal with standard deviation gain / sqrt(fan) (He et al., 2015).

    `nonlinearity` (linear, tanh or relu) sets the gain as torch.nn.init.calculate_gain does; `mode` is fan_in
    or fan_out.
    """

    def fill(self, weight: Array, generator: np.random.Generator) -> None:
        """Overwrite with normal draws."""
        weight[...] = generator.normal(0, self._standard_deviation(weight), weight.shape)


def draw_parameters(
    model: Layer, shared: Container[str], initializer: Initializer | None, generator: np.random.Generator
) -> None:
    """Fill the parameters of all layers in a model that aren't made of layers. The initializer, if there is one, fills
    what the layer's `initialize` names, and the layer's default fills the rest. Parameters in `shared` stay as an
    earlier layer has filled them.
    """
    layers = {name: layer for name, layer in descendants(model) if not layer.children()}
    scales = _residual_scales(model, layers, initializer) if initializer is not None else {}
    for name, layer in layers.items():
        filled = {
            key: vars(layer.param)[key].copy() for key in layer.parameter_shapes() if f"{name}.{key}" in shared
        }
        if initializer is None:
            layer.reset_parameters(generator)
        else:
            _initialize(layer, f"{name}.", initializer, scales, generator)
        for key, values in filled.items():
            vars(layer.param)[key][...] = values


def _residual_scales(model: Layer, layers: Mapping[str, Layer], initializer: Initializer) -> dict[str, float]:
    """The factor of the last weight in each Residual's branch, by the weight's name."""
    weights: list[str] = []
    for name, layer in layers.items():
        layer.initialize(lambda key, name=name: weights.append(f"{name}.{key}"))  # type: ignore[misc]
    residuals = [name for name, layer in descendants(model) if isinstance(layer, Residual)]
    inside = ([weight for weight in weights if weight.startswith(f"{name}.")] for name in residuals)
    return {own[-1]: initializer.residual_scale(len(residuals)) for own in inside if own}


def _initialize(
    layer: Layer, prefix: str, initializer: Initializer, scales: Mapping[str, float], generator: np.random.Generator
) -> None:
    # The layer's defaults get a generator of their own, so that what the initializer draws doesn't depend on them.
    layer.reset_parameters(generator.spawn(1)[0])

    def fill(name: str) -> None:
        weight = vars(layer.param)[name]
        drawn = np.empty(weight.shape)  # float64, which is rounded once
        initializer.fill(drawn, generator)
        weight[...] = scales.get(prefix + name, 1.0) * drawn

    layer.initialize(fill)
