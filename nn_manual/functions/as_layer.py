"""as_layer: a handwritten pair of functions as a layer, for a Sequential and for a config."""

from __future__ import annotations

import inspect
import math
import typing
from collections.abc import Callable, Mapping
from dataclasses import field, make_dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from nn_manual.arrays import Array, Shape
from nn_manual.errors import first_words_of, raise_if_nobodys_fault
from nn_manual.functions.signatures import calls_saved_last, gradients_called, names_of, parameters_of
from nn_manual.layers.base import Layer

#: From the fields of a layer to the shapes of its parameters, by name.
Shapes = Callable[..., Mapping[str, Shape]]


def as_layer(
    pair: tuple[Callable[..., Any], Callable[..., Any]],
    parameters: Shapes | None = None,
    *,
    reference: Callable[..., Any] | None = None,
    name: str | None = None,
) -> type[PairLayer]:
    """A Layer class that computes with `forward(input, *parameters)`, which returns `(output, saved)`, and with
    `backward(grad_output, saved)`, which returns the gradients of the input and of the parameters: a tuple in this
    order, or a dict by name.

        Affine = as_layer((affine_forward, affine_backward), lambda d_in, d_out: {"W": (d_in, d_out), "b": (d_out,)})
        Sequential(Affine(64, 32), ReLU(), Affine(32, 10))

    parameters: from sizes to the shapes of the parameters, by name. The sizes are the fields of the class, and its keys
    in a config: `- my_layers:Affine: {d_in: 64, d_out: 32}`. Without it there are none.
    reference: the definition on torch tensors, `reference(input, **parameters)`; without it, the layer is compared with
    differences of its own forward, which takes long. name: of the class; by default forward's, or PairLayer if it
    has none. What forward saved is backward's last argument if that is called cache or saved, or the first one dout or
    grad_output; else its first.

    A parameter with two axes or more begins uniform in ±1/sqrt(shape[0]), any other one as zero; a subclass may
    override `reset_parameters`. Raises TypeError for what is no pair of functions, and for parameters
    that are no function.
    """
    if not (isinstance(pair, tuple) and len(pair) == 2 and all(map(callable, pair))):
        raise TypeError(f"pair must be (forward, backward), not {pair!r}")
    if not (parameters is None or callable(parameters)):
        example = 'lambda d_in, d_out: {"W": (d_in, d_out)}'
        raise TypeError(f"parameters must be a function of the sizes, as {example}, not {parameters!r}")
    forward, backward = pair
    hints = _hints(parameters)
    fields = [
        (each.name, hints.get(each.name, int), _field(each)) for each in parameters_of(parameters or _no_parameters)
    ]
    own = {
        "forward_of_pair": staticmethod(forward),
        "backward_of_pair": staticmethod(backward),
        "shapes_of_pair": staticmethod(parameters or _no_parameters),
        "saves_last": calls_saved_last(backward),
        "__doc__": forward.__doc__,
    }
    if reference is not None:
        own["reference"] = _method(reference)
    own_name = getattr(forward, "__name__", "")  # a partial function has none, and a lambda's is no name of a class
    called = name or (own_name if own_name.isidentifier() else PairLayer.__name__)
    made: type[PairLayer] = make_dataclass(called, fields, bases=(PairLayer,), namespace=own, eq=False)
    made.__module__ = forward.__module__  # from Python 3.12 on, it would be that of the caller of make_dataclass
    return made


class PairLayer(Layer):
    """A layer that computes with a pair of functions. Its subclasses are made by `as_layer`."""

    forward_of_pair: ClassVar[Callable[..., Any]]
    backward_of_pair: ClassVar[Callable[..., Any]]
    shapes_of_pair: ClassVar[Shapes]
    saves_last: ClassVar[bool]

    if TYPE_CHECKING:

        def __init__(self, *sizes: Any, **named_sizes: Any) -> None: ...

    def parameter_shapes(self) -> dict[str, Shape]:
        """What the function of the sizes says."""
        sizes = {each.name: getattr(self, each.name) for each in parameters_of(self.shapes_of_pair)}
        return {name: tuple(shape) for name, shape in self.shapes_of_pair(**sizes).items()}

    def reset_parameters(self, generator: np.random.Generator) -> None:
        """Uniform in ±1/sqrt(shape[0]); vectors and numbers zero."""
        for name, shape in self.parameter_shapes().items():
            bound = 1 / math.sqrt(max(shape[0], 1)) if len(shape) > 1 else 0.0
            getattr(self.param, name)[...] = generator.uniform(-bound, bound, shape)

    def output_shape(self, input_shape: Shape) -> Shape:
        """The shape that forward returns for zeros. Raises ValueError where it raises an error."""
        zeros = (np.zeros(shape, np.float32) for shape in self.parameter_shapes().values())
        try:
            with np.errstate(all="ignore"):
                returned = self.forward_of_pair(np.zeros(input_shape, np.float32), *zeros)
        except Exception as error:  # anyone's function may raise anything
            raise_if_nobodys_fault(error)
            label, words = type(self).__name__, first_words_of(error)
            raise ValueError(f"{label}: an input of shape {input_shape} doesn't fit: forward raised {words}") from error
        return self._halves(returned)[0].shape

    def forward(self, input: Array) -> tuple[Array, Any]:
        """The output in the model's dtype, and what the pair saved."""
        output, saved = self._halves(self.forward_of_pair(input, *self._values()))
        return output.astype(input.dtype, copy=False), saved

    def backward(self, saved: Any, grad_output: Array) -> Array:
        """What the pair returned for the input; what it returned for the parameters goes into `self.grad`."""
        arguments = (grad_output, saved) if self.saves_last else (saved, grad_output)
        returned = self.backward_of_pair(*arguments)
        names = self.parameter_shapes()
        if isinstance(returned, Mapping):
            called = [[*names_of(self.forward_of_pair)[:1], "input"], *([name, name] for name in names)]
            of_input, *grads = gradients_called(returned, called)
        else:
            of_input, *grads = returned if isinstance(returned, tuple | list) else [returned]
            if len(grads) != len(names):
                words = ", ".join(["the input", *names])
                raise ValueError(
                    f"{type(self).__name__}: backward returned {1 + len(grads)} gradients, not those of {words}"
                )
        for name, grad in zip(names, grads, strict=True):
            own = getattr(self.grad, name)
            own[...] = self._numbers(f"backward's gradient of {name}", grad, own.shape)
        return self._numbers("backward's gradient of the input", of_input).astype(grad_output.dtype, copy=False)

    def _halves(self, returned: Any) -> tuple[Array, Any]:
        if not (isinstance(returned, tuple) and len(returned) == 2):
            raise ValueError(f"{type(self).__name__}: forward must return (output, saved), one output")
        return self._numbers("forward's output", returned[0]), returned[1]

    def _numbers(self, what: str, returned: Any, shape: Shape | None = None) -> Array:
        """What was returned, as an array. Raises ValueError for what holds no numbers, and for another shape."""
        array = np.asarray(returned)
        if array.dtype.kind not in "fiub":
            raise ValueError(f"{type(self).__name__}: {what} is {type(returned).__name__}, not an array of numbers")
        if shape not in (None, array.shape):
            raise ValueError(f"{type(self).__name__}: {what} has shape {array.shape}, not {shape}")
        return array

    def _values(self) -> list[Array]:
        return [getattr(self.param, name) for name in self.parameter_shapes()]


def _method(reference: Callable[..., Any]) -> Callable[..., Any]:
    def method(_: Layer, input: Any, **parameters: Any) -> Any:
        return reference(input, **parameters)

    return method


def _field(parameter: inspect.Parameter) -> Any:
    return field() if parameter.default is parameter.empty else field(default=parameter.default)


def _no_parameters() -> dict[str, Shape]:
    return {}


def _hints(parameters: Shapes | None) -> dict[str, Any]:
    try:
        return typing.get_type_hints(parameters) if parameters is not None else {}
    except NameError:  # a name that its module doesn't have at run time
        return {}
