"""Initializers that draw each weight from one distribution."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import ClassVar

import numpy as np

from nn_manual.arrays import Array
from nn_manual.model.initializers.base import Initializer, check_not_negative, fans

#: torch.nn.init.calculate_gain: keeps the variance of activations through the nonlinearity.
GAINS = {"linear": 1.0, "tanh": 5 / 3, "relu": math.sqrt(2)}


def _check_choice(name: str, value: str, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(choices)}, not {value!r}")


def _check_number(name: str, number: float) -> None:
    if not math.isfinite(number):
        raise ValueError(f"{name} must be finite, not {number}")


def _check_gain(gain: float) -> None:
    if not gain >= 0:
        raise ValueError(f"gain must be at least 0, not {gain}")


def _check_bounds(a: float, b: float) -> None:
    _check_number("a", a)
    if not a <= b < math.inf:
        raise ValueError(f"b must be at least a = {a} and finite, not {b}")


@dataclass(frozen=True)
class Uniform(Initializer):
    """Uniform from a to b."""

    a: float = 0.0
    b: float = 1.0

    def __post_init__(self) -> None:
        _check_bounds(self.a, self.b)

    def fill(self, weight: Array, generator: np.random.Generator) -> None:
        """Overwrite with uniform draws."""
        weight[...] = generator.uniform(self.a, self.b, weight.shape)


@dataclass(frozen=True)
class Normal(Initializer):
    """Normal with this mean and standard deviation."""

    mean: float = 0.0
    std: float = 1.0

    def __post_init__(self) -> None:
        _check_number("mean", self.mean)
        check_not_negative("std", self.std)

    def fill(self, weight: Array, generator: np.random.Generator) -> None:
        """Overwrite with normal draws."""
        weight[...] = generator.normal(self.mean, self.std, weight.shape)


@dataclass(frozen=True)
class TruncNormal(Initializer):
    """Normal with this mean and standard deviation, of which only values from a to b are taken.

    Values are drawn until each is inside. Where less than LIKELY of the normal distribution is inside, they are drawn
    uniformly from a to b instead, and each value x is taken with probability p(x) / p(mode). There p is the normal
    density, and mode, where it is largest, is the mean, or the bound that is next to it.
    """

    mean: float = 0.0
    std: float = 1.0
    a: float = -2.0
    b: float = 2.0

    #: Then a normal draw is taken once in three times.
    LIKELY: ClassVar[float] = 0.3

    def __post_init__(self) -> None:
        _check_number("mean", self.mean)
        if not 0 < self.std < math.inf:
            raise ValueError(f"std must be above 0 and finite, not {self.std}")
        _check_bounds(self.a, self.b)

    def fill(self, weight: Array, generator: np.random.Generator) -> None:
        """Overwrite with draws, each inside of the bounds."""
        below, up_to = (NormalDist(self.mean, self.std).cdf(bound) for bound in (self.a, self.b))
        draw = self._of_normal if up_to - below > self.LIKELY else self._of_uniform
        drawn, missing = np.empty(weight.size), np.arange(weight.size)
        while missing.size:
            values, is_taken = draw(missing.size, generator)
            drawn[missing[is_taken]] = values[is_taken]
            missing = missing[~is_taken]
        weight[...] = drawn.reshape(weight.shape)

    def _of_normal(self, count: int, generator: np.random.Generator) -> tuple[Array, Array]:
        values = generator.normal(self.mean, self.std, count)
        return values, (self.a <= values) & (values <= self.b)

    def _of_uniform(self, count: int, generator: np.random.Generator) -> tuple[Array, Array]:
        values = generator.uniform(self.a, self.b, count)
        mode = min(max(self.mean, self.a), self.b)
        ratio = np.exp(0.5 * (((mode - self.mean) / self.std) ** 2 - ((values - self.mean) / self.std) ** 2))
        return values, generator.uniform(size=count) < ratio


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
        check_not_negative("std", self.std)

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
