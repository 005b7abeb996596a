"""Fill the parameters of a model: what its initializer fills, and what the layers fill themselves."""

from __future__ import annotations

from collections.abc import Container, Mapping

import numpy as np

from nn_manual.errors import ConfigError
from nn_manual.layers.base import Layer
from nn_manual.layers.composite import descendants
from nn_manual.layers.containers import Residual
from nn_manual.model.initializers.base import Initializer, filled


def draw_parameters(
    model: Layer, shared: Container[str], initializer: Initializer | None, generator: np.random.Generator
) -> None:
    """Fill the parameters of all layers in a model that aren't made of layers. The initializer, if there is one, fills
    what the layer's `initialize` names, and the layer's default fills the rest. Parameters in `shared` stay as an
    earlier layer has filled them. Raises ConfigError for a weight that the initializer can't fill.
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
        layer.initialize(lambda key, name=name, layer=layer: weights.append(f"{name}.{_checked(key, layer)}"))  # type: ignore[misc]
    residuals = [name for name, layer in descendants(model) if isinstance(layer, Residual)]
    inside = ([weight for weight in weights if weight.startswith(f"{name}.")] for name in residuals)
    return {own[-1]: initializer.residual_scale(len(residuals)) for own in inside if own}


def _checked(name: object, layer: Layer) -> str:
    """What a layer's `initialize` has given to `fill`. Raises ConfigError where that is no name of a parameter."""
    names = layer.parameter_shapes()
    if isinstance(name, str) and name in names:
        return name
    known = " or ".join(names) or "of which there is none"
    given = repr(name) if isinstance(name, str) else f"one {type(name).__name__}"
    raise ConfigError(
        f"initializer: {type(layer).__name__}.initialize: fill takes the name of a parameter, {known}, "
        f"and got {given}"
    )


def _initialize(
    layer: Layer, prefix: str, initializer: Initializer, scales: Mapping[str, float], generator: np.random.Generator
) -> None:
    # The layer's defaults get a generator of their own, so that what the initializer draws doesn't depend on them.
    layer.reset_parameters(generator.spawn(1)[0])

    def fill(name: str) -> None:
        weight = vars(layer.param)[name]
        try:
            drawn = filled(initializer, weight.shape, generator)  # in float64, which is rounded once
        except ValueError as error:
            raise ConfigError(f"initializer: {prefix}{name}: {error}") from error
        weight[...] = scales.get(prefix + name, 1.0) * drawn

    layer.initialize(fill)
