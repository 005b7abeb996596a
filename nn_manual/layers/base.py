"""The contract that every layer keeps."""

from __future__ import annotations

from abc import ABC, abstractmethod
from types import SimpleNamespace
from typing import Any, ClassVar, Literal, TypeAlias

import numpy as np

from nn_manual.arrays import Array, Shape, carve, size_of

#: The inputs that a layer takes: all real numbers, those above 0, all but 0, or those between two bounds, the bounds
#: themselves left out. A bound may be infinite.
Domain: TypeAlias = Literal["real", "positive", "nonzero"] | tuple[float, float]


class Layer(ABC):
    """A differentiable function of one array, its parameters, and its gradients derived by hand.

    A concrete layer is a dataclass whose fields are the keyword arguments of the torch.nn class of the same
    name; they are the keys in YAML, too. Its docstring states the formulas, its `forward` and `backward` are
    those formulas. A layer keeps no activations: what `backward` needs travels in `saved`, so the same layer
    can run twice before either is taken back.

    A layer whose derivative jumps somewhere says how far its input is from there, elementwise, in a method
    `kink_distance(input)`: a report on a wrong gradient then says whether it is wrong at the kinks.

    A layer that does not take every real number, or overflows for large ones, states its `domain`: a logarithm's is
    "positive", an exponential's may be (-20, 20). The catalogue and the pytest plugin draw inputs inside it. It changes
    nothing else: in a training step every input counts. A domain of any other form raises ValueError.

    A layer that torch.nn has under another name says that name in `torch_class`; None says that torch.nn has none.
    Where torch.nn's class of that name isn't what the layer computes, its own `reference(input, **parameters)`, its
    definition on torch tensors, takes that class's place in the check.

    `param` and `grad` hold one named view for each of `parameter_shapes()`. The memory belongs to the
    Sequential that the layer is in; `bind` makes the views.
    """

    domain: Domain = "real"
    torch_class: ClassVar[str | None]

    param: SimpleNamespace
    grad: SimpleNamespace

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        match cls.domain:
            case "real" | "positive" | "nonzero":
                return
            case tuple((int() | float() as low, int() | float() as high)) if low < high:
                return
        known = '"real", "positive", "nonzero" or a pair (low, high) with low < high'
        raise ValueError(f"{cls.__name__}.domain is {known}, not {cls.domain!r}")

    @abstractmethod
    def forward(self, input: Array) -> tuple[Array, Any]:
        """`output, saved`: the layer's output, and exactly what `backward` needs. Must not write to `input`."""

    @abstractmethod
    def backward(self, saved: Any, grad_output: Array) -> Array:
        """Overwrite `self.grad` with the parameters' gradients and return `grad_input`, shaped as the input.

        `grad_output` is the gradient of the loss with respect to the output; it must not be written to.
        """

    def backward_parameters(self, saved: Any, grad_output: Array) -> None:
        """Overwrite `self.grad` only: what the first layer of a model needs when nobody asks for its input's
        gradient. A layer whose `grad_input` costs much overrides this to save it.
        """
        self.backward(saved, grad_output)

    def parameter_shapes(self) -> dict[str, Shape]:
        """Name and shape of each parameter, in torch's order."""
        return {}

    def reset_parameters(self, generator: np.random.Generator) -> None:  # noqa: B027 - most layers have none to fill
        """Fill `self.param` from torch's default distribution for this layer."""

    def output_shape(self, input_shape: Shape) -> Shape:
        """The shape that `forward` makes of `input_shape`. Raises ValueError, stating both sizes, where the
        input doesn't fit.
        """
        return input_shape

    def check_gradient(self, grad_output: Array, output_shape: Shape) -> None:
        """Raise ValueError, stating both shapes, for a gradient that is not shaped as the output: one of a shape
        that broadcasts would be multiplied out and summed without an error.
        """
        if grad_output.shape != output_shape:
            raise ValueError(
                f"{type(self).__name__} takes a gradient of its output's shape {output_shape}, not {grad_output.shape}"
            )

    @classmethod
    def examples(cls) -> list[tuple[Layer, Shape]]:
        """Small layers of this class, each with an input shape, on which the catalogue checks the class. A square shape
        is among them: there a transpose shows in the values alone.
        """
        return [(cls(), (4, 3)), (cls(), (3, 3))]

    @property
    def num_parameters(self) -> int:
        """Number of scalars in all parameters together. Raises TypeError for shapes that are none, as (3) for (3,)."""
        shapes = self.parameter_shapes()
        try:
            return sum(size_of(shape) for shape in shapes.values())
        except (TypeError, AttributeError) as error:
            raise TypeError(
                f"{type(self).__name__}.parameter_shapes must return a dict of tuples such as {{'weight': (3,)}}, "
                f"not {shapes!r}"
            ) from error

    def bind(self, param: Array, grad: Array) -> None:
        """Carve `self.param` and `self.grad` out of two flat vectors of `num_parameters` elements."""
        self.param = carve(param, self.parameter_shapes())
        self.grad = carve(grad, self.parameter_shapes())
