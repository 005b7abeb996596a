"""Arrays whose values can't be looked at: a formula that runs on them branches on no value.

On an `opaque` array, a formula that branches (`if x > 0`, `max(x, 0)`, `x[x > 0]`) or leaves numpy (`float(x)`) raises
Looked. What it may ask is shapes, dtypes and settings. An array that is not opaque stays so where it is indexed with an
opaque one; so whoever runs a formula makes everything opaque that the formula gets, parameters and gradients too.
"""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, NoReturn

import numpy as np

from nn_manual.arrays import Array, Shape
from nn_manual.check.catalogue.input_kinds import draw
from nn_manual.check.catalogue.inputs import with_lengths
from nn_manual.check.catalogue.targets import draw_target
from nn_manual.defaults import defines
from nn_manual.layers import Layer
from nn_manual.layers.with_lengths import LENGTHS
from nn_manual.losses import Loss
from nn_manual.model import Sequential


class Looked(AssertionError):  # noqa: N818 - says what happened
    """Somebody looked at a value."""


def _refusing(what: str) -> Callable[..., NoReturn]:
    def refuse(*_: object, **__: object) -> NoReturn:
        raise Looked(f"{what} looks at a value: what depends on values is np.where, np.maximum or the like")

    return refuse


#: numpy's functions whose result is a number of Python's, or has a shape that depends on values.
LOOKING = {
    *(np.nonzero, np.flatnonzero, np.argwhere, np.unique, np.extract, np.compress),
    *(np.count_nonzero, np.array_equal, np.array_equiv, np.allclose),
}


class Opaque(np.ndarray[Any, np.dtype[Any]]):
    """An array that computes as any other and shows no value. What is computed of it is opaque, single numbers too."""

    __bool__ = _refusing("a condition")
    __int__ = _refusing("int()")
    __float__ = _refusing("float()")
    __complex__ = _refusing("complex()")
    __index__ = _refusing("an index or a size")
    item = _refusing("item()")
    tolist = _refusing("tolist()")
    nonzero = _refusing("nonzero()")

    def __array_wrap__(self, array: Any, context: Any = None, return_scalar: bool = False) -> Any:
        return opaque(array)

    def __array_function__(self, function: Any, types: Any, arguments: Any, keywords: Any) -> Any:
        if function in LOOKING or (function is np.where and len(arguments) == 1):
            _refusing(f"np.{function.__name__}")()
        return _all_opaque(super().__array_function__(function, types, arguments, keywords))

    def argmax(self, *arguments: Any, **keywords: Any) -> Any:
        """As an array's, but opaque: numpy makes a plain number of a single one."""
        return opaque(super().argmax(*arguments, **keywords))

    def argmin(self, *arguments: Any, **keywords: Any) -> Any:
        """As `argmax`."""
        return opaque(super().argmin(*arguments, **keywords))

    def __getitem__(self, key: Any) -> Any:
        for index in key if isinstance(key, tuple) else (key,):
            if isinstance(index, np.ndarray) and index.dtype == bool:
                _refusing("a mask")()
        return opaque(super().__getitem__(key))


def opaque(array: Any) -> Any:
    """The same numbers in the same memory, opaque."""
    return np.asarray(array).view(Opaque)


def _all_opaque(result: Any) -> Any:
    """What a function of numpy returned: its arrays and numbers opaque, sizes and shapes as they are."""
    if isinstance(result, list | tuple):
        return type(result)(map(_all_opaque, result))
    return opaque(result) if isinstance(result, np.ndarray | np.generic) else result


def run_layer(layer: Layer, input_shape: Shape, dtype: str, *, looking: bool) -> list[Array]:
    """A layer's output and its gradients on random numbers, all of them opaque unless it may be `looking`."""
    generator = np.random.default_rng(0)
    input = draw("random", input_shape, dtype, generator, layer.domain)
    grad_output = draw("random", layer.output_shape(input_shape), dtype, generator)
    model = Sequential(layer, dtype=dtype)
    param, grad = model.param_arena, model.grad_arena
    if not looking:
        param, grad, grad_output = map(opaque, (param, grad, grad_output))
        input = opaque(input) if input.dtype.kind == "f" else input  # indices are looked up, and nothing else
        model.bind(param, grad)
    drawn = draw("random", input_shape, dtype, generator, layer.domain)
    model.forward(with_lengths(model, drawn, generator))  # which binds the noise
    for name, array in vars(getattr(layer, "noise", SimpleNamespace())).items():
        # lengths are compared with the input's shape, and a layer may refuse them
        setattr(layer.noise, name, array if looking or name == LENGTHS else opaque(array))
    output, saved = layer.forward(input)
    layer.backward_parameters(saved, grad_output)
    grad_input = layer.backward(saved, grad_output)
    return [array for array in (output, grad_input, grad) if array is not None]


def run_loss(loss: Loss, shape: Shape, dtype: str, *, looking: bool) -> list[Array]:
    """A loss and its gradients on random numbers, all of them opaque unless it may be `looking`."""
    generator = np.random.default_rng(0)
    prediction = draw("random", shape, dtype, generator, loss.domain)
    target = draw_target(loss, "random", shape, dtype, generator)
    if not looking:
        prediction, target = opaque(prediction), opaque(target)
    value, saved = loss.forward(prediction, target)
    of_target = [loss.backward_target(saved)] if defines(loss, "backward_target") else []
    return [value, loss.backward(saved), *of_target]
