"""The contract that every layer keeps: Layer, and the defaults of what few layers say."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from nn_manual.arrays import Array, Domain, Shape, size_of
from nn_manual.defaults import default, defines, take_from_behind
from nn_manual.plain_settings import after_settings, take_settings

#: The base that a layer gets if its class has one of these methods and doesn't name the base.
BASE_OF_METHOD: dict[str, type[Any]] = {}


def num_parameters(layer: LayerDefaults) -> int:
    """Number of scalars in all parameters of a layer together; one that layers share counts once."""
    return sum(map(size_of, layer.parameter_shapes().values()))


class _NumParameters:
    """`layer.num_parameters` is num_parameters(layer). It isn't a property: a layer may have a setting of this name, as
    torch.nn.PReLU has.
    """

    def __get__(self, layer: LayerDefaults | None, owner: type) -> int:
        if layer is None:  # a dataclass that asks for the default of its field
            raise AttributeError(f"{owner.__name__}.num_parameters is known of a layer, not of a class")
        return num_parameters(layer)


class LayerDefaults(ABC):
    """The part of a Layer that few layers override. Each default is right for a layer that doesn't say otherwise.

    The Sequential that a layer is in owns its memory: `param` and `grad` hold one named view for each of
    `parameter_shapes()`, `buffer` one for each buffer, and `noise` an array for each of a step's random numbers.

    A layer that does not take every real number, or overflows for large ones, states its `domain`: a logarithm's is
    "positive", an exponential's may be (-20, 20). The catalogue and the pytest plugin draw inputs inside it. It changes
    nothing else: in a training step every input counts. A domain of any other form raises ValueError. The domain of a
    layer that looks something up is a range: it takes int64 indices, and its `backward` returns None, because an index
    has no gradient. A composite that passes its input to such a layer has the same domain: `__post_init__` can set it.

    `torch_class` is the name of torch.nn's class that computes the same, "" for the layer's own name; None means that
    torch.nn doesn't have the layer.

    `kinks` = "any" says of an elementwise layer that where its `kink_distance` is 0, every slope between those left and
    right is right. Without it, the layer has torch's slope there, or that of its reference.
    """

    domain: Domain = "real"
    torch_class: ClassVar[str | None] = ""
    kinks: ClassVar[Literal["", "any"]] = ""

    param: SimpleNamespace
    grad: SimpleNamespace
    buffer: SimpleNamespace
    noise: SimpleNamespace

    num_parameters = _NumParameters()

    if TYPE_CHECKING:  # what the defaults ask of a Layer

        def parameter_shapes(self) -> dict[str, Shape]: ...  # noqa: D102 - Layer has its words
        def forward(self, input: Array) -> tuple[Array, Any]: ...  # noqa: D102 - as above
        def backward(self, saved: Any, grad_output: Array) -> Array: ...  # noqa: D102 - as above

    def __post_init__(self) -> None:
        """Take the settings: a subclass may raise ValueError for those out of range."""
        take_settings(self)

    def fill_uniformly(self, fan_in: int, generator: np.random.Generator) -> None:
        """All parameters uniform in ±1/sqrt(fan_in), as torch draws those of its linear maps."""
        bound = 1 / math.sqrt(fan_in)
        for parameter in vars(self.param).values():
            parameter[...] = generator.uniform(-bound, bound, parameter.shape)

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        if "__post_init__" in vars(cls):
            cls.__post_init__ = after_settings(cls.__post_init__)  # type: ignore[method-assign]  # the same, on plain values
        for method, base in BASE_OF_METHOD.items():
            # Not issubclass: ABCMeta would remember its answer.
            if hasattr(cls, method) and base not in cls.__mro__:
                general = next((own for own in cls.__bases__ if own in base.__mro__), None)
                in_place = tuple(base if own is general else own for own in cls.__bases__)
                cls.__bases__ = in_place if general is not None else (*cls.__bases__, base)
        take_from_behind(cls, ("reference", "infer_reference", "kink_distance", "torch_class", "kinks"))
        if cls.kinks not in ("", "any"):
            raise ValueError(f'{cls.__name__}.kinks is "any", or isn\'t there, and not {cls.kinks!r}')
        if cls.kinks and not defines(cls, "kink_distance"):
            raise ValueError(f'{cls.__name__}.kinks is "any": it needs kink_distance, which says where they are')
        match cls.domain:
            case "real" | "positive" | "nonzero" | range(step=1):
                return
            case tuple((int() | float() as low, int() | float() as high)) if low < high:
                return
        known = '"real", "positive", "nonzero", a range of step 1 or a pair (low, high) with low < high'
        raise ValueError(f"{cls.__name__}.domain is {known}, not {cls.domain!r}")

    @default
    def infer(self, input: Array) -> Array:
        """What evaluation and prediction run: forward's output, unless the layer behaves otherwise in training."""
        return self.forward(input)[0]

    @default
    def infer_reference(self, *arguments: Any, **named: Any) -> Any:
        """`infer` on torch tensors, with the arguments of `reference` but the random numbers. By default torch's class
        in evaluation; a composite's default is its reference.
        """
        raise NotImplementedError

    @default
    def backward_parameters(self, saved: Any, grad_output: Array) -> None:
        """Overwrite `self.grad` only: the first layer of a model needs no more when nobody asks for the gradient of its
        input. A layer whose `grad_input` costs much overrides this.
        """
        self.backward(saved, grad_output)

    @default  # noqa: B027 - most layers have none
    def update_buffers(self, saved: Any) -> None:
        """Move the buffers, and nothing else. A training step does this after backward; forward returned `saved`. By
        default there are none.
        """

    def reset_buffers(self) -> None:  # noqa: B027 - most layers have none
        """Fill `self.buffer`, which is zero, with its first values. Those of a composite's children are there already.
        """

    @default
    def kink_distance(self, input: Array) -> Array:
        """How far each element is from the nearest point where the derivative jumps; infinity where there is none. With
        it, a report on a wrong gradient says whether it is wrong at the kinks.
        """
        return np.full(input.shape, np.inf)

    def initialize(self, fill: Callable[[str], None]) -> None:  # noqa: B027 - most layers have no such weights
        """A model with an initializer calls this after `reset_parameters`. `fill(name)` the weights of linear maps and
        of tables, and set the biases of these maps to 0. Other parameters stay as they are.
        """

    def check_values(self, input: Array) -> None:
        """Raise ValueError for values that the layer can't take: if its domain is a range, for an index outside. The
        formulas themselves look at no value. A model whose domain is a range runs this before them.
        """
        if isinstance(self.domain, range):
            wrong = (input < self.domain.start) | (input >= self.domain.stop)
            if wrong.any():
                place = tuple(int(i) for i in np.argwhere(wrong)[0])
                outside = f"outside {self.domain.start} ... {self.domain.stop - 1}"
                raise ValueError(f"{type(self).__name__}: index {input[place]} at {place} is {outside}")

    def check_gradient(self, grad_output: Array, output_shape: Shape) -> None:
        """Raise ValueError, which states both shapes, for a gradient of another shape, which NumPy might broadcast."""
        if grad_output.shape != output_shape:
            raise ValueError(
                f"{type(self).__name__} takes a gradient of its output's shape {output_shape}, not {grad_output.shape}"
            )

    def children(self) -> dict[str, Layer]:
        """The layers in this one's fields, by torch's names: "name" of a field that holds a layer, and "name.0",
        "name.1", ... of one that holds several.
        """
        children: dict[str, Layer] = {}
        own: tuple[Any, ...] = fields(self) if is_dataclass(self) else ()
        for field in own:
            value = getattr(self, field.name)
            if isinstance(value, Layer):
                children[field.name] = value
            elif isinstance(value, list | tuple):
                named = {f"{field.name}.{i}": item for i, item in enumerate(value) if isinstance(item, Layer)}
                children.update(named)
        return children

    @default
    def longest_sum(self, input_shape: Shape) -> int | None:  # noqa: ARG002 - few layers know
        """The number of terms in the longest sum of forward or backward. It can only make the check stricter: if it is
        None or more than the longest dimension, the check takes the longest dimension.
        """
        return None

    def num_products(self, input_shape: Shape) -> int:
        """About how many multiplications forward takes: by default one for each parameter and example."""
        return size_of(input_shape[:-1]) * num_parameters(self)


class Layer(LayerDefaults):
    """A differentiable function of one array, its parameters, and its gradients derived by hand.

    A concrete layer is a dataclass. Its fields are the keyword arguments of the torch.nn class of the same name; they
    are the keys in YAML, too. Its docstring states the formulas, and `forward` and `backward` are these formulas. A
    layer keeps no activations: `saved` has what `backward` needs. So the same layer can run forward twice before it
    runs backward.

    A layer with parameters has `parameter_shapes` and `reset_parameters`, one with settings `examples`, one that
    changes the shape `output_shape`. `self.param` and `self.grad` have an array for each parameter.

    A layer that keeps arrays from step to step is a LayerWithBuffers, one that takes random numbers a LayerWithNoise,
    and one that is made of layers a Composite. What else a layer may say is in LayerDefaults.
    """

    def parameter_shapes(self) -> dict[str, Shape]:
        """Name and shape of each parameter, in torch's order; for a composite, "child.parameter" of each child."""
        return {
            f"{name}.{parameter}": shape
            for name, child in self.children().items()
            for parameter, shape in child.parameter_shapes().items()
        }

    def reset_parameters(self, generator: np.random.Generator) -> None:
        """Fill `self.param` from torch's default distribution for this layer; for a composite, the children's."""
        for child in self.children().values():
            child.reset_parameters(generator)

    @default
    def output_shape(self, input_shape: Shape) -> Shape:
        """The shape of forward's output. Raises ValueError, which states both sizes, if the input doesn't fit."""
        return input_shape

    @abstractmethod
    def forward(self, input: Array) -> tuple[Array, Any]:
        """`output, saved`: the layer's output, and exactly what `backward` needs. Must not write to `input`."""

    @abstractmethod
    def backward(self, saved: Any, grad_output: Array) -> Array:
        """Overwrite `self.grad` with the parameters' gradients and return `grad_input`, shaped as the input.

        `grad_output` is the gradient of the loss with respect to the output; it must not be written to.
        """

    @classmethod
    def examples(cls) -> list[tuple[Layer, Shape]]:
        """Small layers of this class, each with an input shape: the catalogue checks them. One shape is square: there
        only the values show a transpose.
        """
        return [(cls(), (4, 3)), (cls(), (3, 3))]

    @default
    def reference(self, *arguments: Any, **named: Any) -> Any:
        """`reference(input, **parameters)`: the layer's formula on torch tensors, for a layer that torch.nn doesn't
        have, or has as another function. By default, the reference is torch.nn's class of the layer's name.
        """
        raise NotImplementedError
