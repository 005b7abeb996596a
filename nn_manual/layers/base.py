"""The contract that every layer keeps."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from types import SimpleNamespace
from typing import Any, ClassVar, Literal, TypeAlias

import numpy as np

from nn_manual.arrays import Array, Shape, carve, size_of
from nn_manual.streams import RowGenerator

#: The inputs that a layer takes: all real numbers, those above 0, all but 0, or those between two bounds, without the
#: bounds themselves, which may be infinite; or the integers of a range whose step is 1.
Domain: TypeAlias = Literal["real", "positive", "nonzero"] | tuple[float, float] | range


class Layer(ABC):
    """A differentiable function of one array, its parameters, and its gradients derived by hand.

    A concrete layer is a dataclass. Its fields are the keyword arguments of the torch.nn class of the same name; they
    are the keys in YAML, too. Its docstring states the formulas, and `forward` and `backward` are these formulas. A
    layer keeps no activations: `saved` has what `backward` needs. So the same layer can run forward twice before it
    runs backward.

    A layer whose derivative jumps has a method `kink_distance(input)`: how far each element is from the nearest jump. A
    report on a wrong gradient then says whether it is wrong at the kinks.

    A layer that does not take every real number, or overflows for large ones, states its `domain`: a logarithm's is
    "positive", an exponential's may be (-20, 20). The catalogue and the pytest plugin draw inputs inside it. It changes
    nothing else: in a training step every input counts. A domain of any other form raises ValueError. The domain of a
    layer that looks something up is a range: it takes int64 indices, and its `backward` returns None, because an index
    has no gradient. A composite that passes its input to such a layer has the same domain: `__post_init__` can set it.

    If torch.nn has the layer under another name, `torch_class` is that name; None means that torch.nn doesn't have the
    layer. If torch.nn's class of that name computes something else, the layer defines `reference(input, **parameters)`,
    its formula on torch tensors: the check takes it in place of the class.

    `param` and `grad` hold one named view for each of `parameter_shapes()`. The memory belongs to the
    Sequential that the layer is in; `bind` makes the views.

    `buffer` holds what the layer keeps from step to step beside its parameters, such as a running mean: an array for
    each of `buffer_shapes()`, an int64 count for each of `counter_names()`. `forward` and `backward` must not write to
    them. They move in `update_buffers(saved)`, once in each training step, after backward and before the optimizer.
    Evaluation and prediction run `infer`.

    `noise` holds the random numbers of a step: an array for each of `noise_shapes(input_shape)`, which `draw_noise`
    fills before forward. Forward itself draws nothing: if it runs again, it computes the same. A layer with noise must
    define `infer`.

    A composite is a layer that is made of other layers. It has them in fields of type Layer and list[Layer]. Its
    `forward` and `backward` run theirs, each once. It has no parameters and no buffers but theirs. Its
    `reference(input, *children)` puts torch's versions of them together: each child is a function there, in the order
    of `children()`; noise of its own follows as keyword arguments. If evaluation puts them together in another way,
    `infer_reference(input, *children)` does so.
    """

    domain: Domain = "real"
    torch_class: ClassVar[str | None]

    param: SimpleNamespace
    grad: SimpleNamespace
    buffer: SimpleNamespace
    noise: SimpleNamespace

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        match cls.domain:
            case "real" | "positive" | "nonzero" | range(step=1):
                return
            case tuple((int() | float() as low, int() | float() as high)) if low < high:
                return
        known = '"real", "positive", "nonzero", a range of step 1 or a pair (low, high) with low < high'
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
        """Overwrite `self.grad` only: the first layer of a model needs no more when nobody asks for the gradient of its
        input. A layer whose `grad_input` costs much overrides this.
        """
        self.backward(saved, grad_output)

    def infer(self, input: Array) -> Array:
        """What evaluation and prediction run: forward's output, unless the layer behaves otherwise in training."""
        return self.forward(input)[0]

    def noise_shapes(self, input_shape: Shape) -> dict[str, Shape]:  # noqa: ARG002 - most layers have none
        """Name and shape of each array of random numbers that forward takes for an input of this shape, without those
        of the children.
        """
        return {}

    def draw_noise(self, generator: RowGenerator) -> None:  # noqa: B027 - most layers have none
        """Fill the arrays of `self.noise`. A layer that has `noise_shapes` must define this; no other needs it."""

    def input_shapes(self, input_shape: Shape) -> dict[str, Shape]:
        """The shape of each child's input, by the child's name: by default the shape of the layer's own input. Only a
        composite in which a child, or a child of a child, has noise needs another one.
        """
        return dict.fromkeys(self.children(), input_shape)

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

    def update_buffers(self, saved: Any) -> None:  # noqa: ARG002 - most layers have none
        """Move the buffers, and nothing else. A training step does this after backward; forward returned `saved`."""
        if self.buffer_shapes() or self.counter_names():
            name = type(self).__name__
            raise TypeError(f"{name} has buffers, its own or its layers': it must define update_buffers(saved)")

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

    def descendants(self) -> Iterator[tuple[str, Layer]]:
        """Each child, followed by its own descendants: "0", "0.weight_norm", "1", ..."""
        for name, child in self.children().items():
            yield name, child
            for inner_name, inner in child.descendants():
                yield f"{name}.{inner_name}", inner

    def parameter_shapes(self) -> dict[str, Shape]:
        """Name and shape of each parameter, in torch's order; for a composite, "child.parameter" of each child."""
        return {
            f"{name}.{parameter}": shape
            for name, child in self.children().items()
            for parameter, shape in child.parameter_shapes().items()
        }

    def buffer_shapes(self) -> dict[str, Shape]:
        """Name and shape of each buffer of the model's dtype, in torch's order; for a composite, the children's."""
        return {
            f"{name}.{buffer}": shape
            for name, child in self.children().items()
            for buffer, shape in child.buffer_shapes().items()
        }

    def counter_names(self) -> tuple[str, ...]:
        """The names of the buffers that are counts, each an int64 scalar; for a composite, the children's."""
        return tuple(f"{name}.{own}" for name, child in self.children().items() for own in child.counter_names())

    def reset_buffers(self) -> None:
        """Fill `self.buffer`, which is zero, with its first values; for a composite, the children's."""
        for child in self.children().values():
            child.reset_buffers()

    def reset_parameters(self, generator: np.random.Generator) -> None:
        """Fill `self.param` from torch's default distribution for this layer; for a composite, the children's."""
        for child in self.children().values():
            child.reset_parameters(generator)

    def initialize(self, fill: Callable[[str], None]) -> None:  # noqa: B027 - most layers have no such weights
        """A model with an initializer calls this after `reset_parameters`. `fill(name)` the weights of linear maps and
        of tables, and set the biases of these maps to 0. Other parameters stay as they are.
        """

    def output_shape(self, input_shape: Shape) -> Shape:
        """The shape of forward's output. Raises ValueError, which states both sizes, if the input doesn't fit."""
        return input_shape

    def check_gradient(self, grad_output: Array, output_shape: Shape) -> None:
        """Raise ValueError, which states both shapes, for a gradient of another shape, which NumPy might broadcast."""
        if grad_output.shape != output_shape:
            raise ValueError(
                f"{type(self).__name__} takes a gradient of its output's shape {output_shape}, not {grad_output.shape}"
            )

    @classmethod
    def examples(cls) -> list[tuple[Layer, Shape]]:
        """Small layers of this class, each with an input shape: the catalogue checks them. One shape is square: there
        only the values show a transpose.
        """
        return [(cls(), (4, 3)), (cls(), (3, 3))]

    def longest_sum(self, input_shape: Shape) -> int | None:  # noqa: ARG002 - few layers know
        """The number of terms in the longest sum of forward or backward. It can only make the check stricter: if it is
        None or more than the longest dimension, the check takes the longest dimension.
        """
        return None

    def num_products(self, input_shape: Shape) -> int:
        """About how many multiplications forward takes: by default one for each parameter and example."""
        return size_of(input_shape[:-1]) * self.num_parameters

    @property
    def num_parameters(self) -> int:
        """Number of scalars in all parameters together."""
        if children := self.children():
            return sum(child.num_parameters for child in children.values())
        return sum(size_of(shape) for shape in self.parameter_shapes().values())

    def bind(self, param: Array, grad: Array) -> None:
        """Carve `self.param` and `self.grad` out of two flat vectors of `num_parameters` elements."""
        shapes = self.parameter_shapes()
        self.take_views(vars(carve(param, shapes)), vars(carve(grad, shapes)))

    def bind_buffers(self, buffer: Array, counters: Array) -> None:
        """Carve `self.buffer` out of a flat vector of the model's dtype and one of int64, and the children's."""
        counts = dict.fromkeys(self.counter_names(), ())
        self.take_buffers(vars(carve(buffer, self.buffer_shapes())) | vars(carve(counters, counts)))

    def take_buffers(self, views: Mapping[str, Array]) -> None:
        """Take a view for each buffer, and give the children theirs."""
        self.buffer = SimpleNamespace(**views)
        for name, child in self.children().items():
            own = (*child.buffer_shapes(), *child.counter_names())
            child.take_buffers({buffer: views[f"{name}.{buffer}"] for buffer in own})

    def take_views(self, param: Mapping[str, Array], grad: Mapping[str, Array]) -> None:
        """Take one view for each of `parameter_shapes()`, and give the children theirs."""
        self.param, self.grad = SimpleNamespace(**param), SimpleNamespace(**grad)
        for name, child in self.children().items():
            names = {parameter: f"{name}.{parameter}" for parameter in child.parameter_shapes()}
            child.take_views(
                {parameter: param[inside] for parameter, inside in names.items()},
                {parameter: grad[inside] for parameter, inside in names.items()},
            )
