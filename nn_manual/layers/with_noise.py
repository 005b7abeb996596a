"""Layers that take random numbers in training."""

from __future__ import annotations

from abc import abstractmethod
from types import SimpleNamespace

from nn_manual.arrays import Shape
from nn_manual.defaults import defines
from nn_manual.layers.base import BASE_OF_METHOD, Layer
from nn_manual.streams import RowGenerator


class LayerWithNoise(Layer):
    """A layer that takes random numbers in training.

    `self.noise` holds an array for each of `noise_shapes(input_shape)`, which `draw_noise` fills before forward.
    Forward itself draws nothing: if it runs again, it computes the same. Such a layer must define `infer`. Its
    `reference` gets the arrays by their names.
    """

    #: A plan without random numbers binds none, and a checked step looks at them all the same.
    noise = SimpleNamespace()

    @property
    def draws(self) -> bool:
        """Whether there are random numbers at all: a layer's settings may ask for none."""
        return True

    @abstractmethod
    def noise_shapes(self, input_shape: Shape) -> dict[str, Shape]:
        """Name and shape of each array of random numbers that forward takes for an input of this shape, without those
        of the children.
        """
        return {}

    @abstractmethod
    def draw_noise(self, generator: RowGenerator) -> None:
        """Fill the arrays of `self.noise`."""


def draws(layer: Layer) -> bool:
    """Whether a layer itself takes random numbers in training."""
    return isinstance(layer, LayerWithNoise) and layer.draws


def evaluates_otherwise(layer: Layer) -> bool:
    """Whether a layer's own `infer` computes something else than its forward. Without random numbers they are the same.
    """
    return defines(type(layer), "infer") and (draws(layer) or not isinstance(layer, LayerWithNoise))


BASE_OF_METHOD["noise_shapes"] = LayerWithNoise
