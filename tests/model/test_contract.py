"""A layer that says of itself what can't be is refused, by its class and the method; from Python and in a config."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from nn_manual import (
    SGD,
    BatchNorm1d,
    Dropout,
    Layer,
    Linear,
    MaxPool2d,
    MSELoss,
    Residual,
    Sequential,
    Tanh,
    Trainer,
    check_gradients,
)
from nn_manual.arrays import Array, Shape
from nn_manual.data import Examples
from nn_manual.errors import LayerError
from nn_manual.layers import Composite, LayerWithBuffers, LayerWithNoise


class Saying:
    """`says` has the results of methods."""

    says: dict[str, Any]

    def __getattribute__(self, name: str) -> Any:
        said = object.__getattribute__(self, "__dict__").get("says", {})
        return (lambda *_: said[name]) if name in said else object.__getattribute__(self, name)


@dataclass(eq=False)
class Own(Saying, LayerWithBuffers, LayerWithNoise):
    """output = input, and whatever `says` has as methods' results."""

    says: dict[str, Any]

    def buffer_shapes(self) -> dict[str, Shape]:
        return {}

    def update_buffers(self, saved: Any) -> None:
        """There is nothing to move."""

    def noise_shapes(self, input_shape: Any) -> Any:  # noqa: ARG002 - as every layer's
        return {}

    def draw_noise(self, generator: Any) -> None:
        """There is nothing to fill."""

    def forward(self, input: Array) -> tuple[Array, None]:
        return input.copy(), None

    def infer(self, input: Array) -> Array:
        return input

    def backward(self, saved: None, grad_output: Array) -> Array:  # noqa: ARG002 - as every layer's
        return grad_output.copy()

    def reference(self, input: Any) -> Any:
        return input.clone()


@dataclass(eq=False)
class Around(Saying, Composite):
    """One layer, run as it is."""

    says: dict[str, Any]
    inner: Layer

    def forward(self, input: Array) -> tuple[Array, Any]:
        return self.inner.forward(input)

    def infer(self, input: Array) -> Array:
        return self.inner.infer(input)

    def backward(self, saved: Any, grad_output: Array) -> Array:
        return self.inner.backward(saved, grad_output)

    def update_buffers(self, saved: Any) -> None:
        self.inner.update_buffers(saved)

    def reference(self, input: Any, inner: Any) -> Any:
        return inner(input)


@dataclass(eq=False)
class AroundWithBuffers(Around, LayerWithBuffers):
    """The same, with buffers of its own."""

    def buffer_shapes(self) -> dict[str, Shape]:
        return {}


INPUT = np.random.default_rng(0).standard_normal((5, 4))
SHAPES = "a dict of tuples such as {'weight': (3,)}"


@pytest.mark.parametrize("method", ["parameter_shapes", "buffer_shapes"])
@pytest.mark.parametrize("shapes", [{"w": 3}, {"w": (-1,)}, {"w": (1.5,)}, {1: (3,)}, [("w", (3,))], None])
def test_shapes_that_are_none(method: str, shapes: Any) -> None:
    with pytest.raises(TypeError) as caught:
        Sequential(Tanh(), Around({}, Own({method: shapes})))
    assert isinstance(caught.value, LayerError)
    assert str(caught.value) == f"Own.{method} must return {SHAPES}, not {shapes!r}"


@pytest.mark.parametrize("names", ["count", None, [1]])
def test_counter_names_that_are_none(names: Any) -> None:
    with pytest.raises(LayerError, match=r"^Own\.counter_names must return a tuple of names such as \('num_steps',\),"):
        Sequential(Own({"counter_names": names}))


@pytest.mark.parametrize("inner", [Linear(4, 4), BatchNorm1d(4)])
@pytest.mark.parametrize(
    ("owner", "says", "kind"),
    [
        (Around, {"parameter_shapes": {"scale": (1,)}}, "parameters"),
        (AroundWithBuffers, {"buffer_shapes": {"scale": (4,)}}, "buffers"),
        (AroundWithBuffers, {"counter_names": ("count",)}, "buffers"),
    ],
)
def test_a_composite_has_nothing_of_its_own(
    inner: Layer, owner: type[Around], says: dict[str, Any], kind: str
) -> None:
    words = rf"^{owner.__name__} is made of layers and has {kind} of its own: give them a layer of"
    with pytest.raises(LayerError, match=words):
        Sequential(Tanh(), Around({}, owner(says, inner)))


def test_a_composite_moves_the_buffers_inside() -> None:
    @dataclass(eq=False)
    class Still(Around):
        update_buffers = Layer.update_buffers

    Sequential(Still({}, Linear(4, 4)))
    words = r"^Still is made of layers with buffers: it must define update_buffers\(saved\), which calls theirs$"
    with pytest.raises(LayerError, match=words):
        Sequential(Tanh(), Around({}, Still({}, Sequential(Linear(4, 4), BatchNorm1d(4)))))


@pytest.mark.parametrize(
    ("layer", "message"),
    [
        (Own({"noise_shapes": [(5, 4)]}), f"Own.noise_shapes must return {SHAPES}, not [(5, 4)]"),
        (Own({"noise_shapes": None}), f"Own.noise_shapes must return {SHAPES}, not None"),
        (Own({"noise_shapes": {"lengths": (5,)}}), "Own.noise_shapes: no noise can be called lengths: these are data"),
        (Around({"input_shapes": None}, Dropout()), f"Around.input_shapes must return {SHAPES}, not None"),
        (
            Around({"input_shapes": {"iner": (5, 4)}}, Dropout()),
            "Around.input_shapes must return a shape for each of inner, not {'iner': (5, 4)}",
        ),
        (Own({"num_products": "x"}), "Own.num_products must return an integer of at least 0, not 'x'"),
        (Own({"longest_sum": "x"}), "Own.longest_sum must return an integer of at least 0, or None, not 'x'"),
        (Own({"longest_sum": -5}), "Own.longest_sum must return an integer of at least 0, or None, not -5"),
    ],
)
def test_what_a_checked_step_asks(layer: Layer, message: str) -> None:
    model = Sequential(Linear(4, 4), layer, dtype="float64")
    with pytest.raises(LayerError) as caught:
        check_gradients(model, MSELoss(), INPUT, INPUT)
    assert str(caught.value) == message
    trainer = Trainer(model, MSELoss(), SGD(model, lr=0.1))
    with pytest.raises(LayerError) as caught:
        trainer.train_step(INPUT, INPUT)
    assert str(caught.value) == message


@pytest.mark.parametrize("output", [None, 1.5, (INPUT, None)])
def test_an_infer_that_returns_no_array(output: Any) -> None:
    model = Sequential(Linear(4, 4), Own({"infer": output}), Linear(4, 4), dtype="float64")
    with pytest.raises(LayerError, match=r"^Own\.infer must return the output, an array, not "):
        model(INPUT)


@dataclass(eq=False)
class Chain(Layer):
    """Two layers, one after the other, the second of another width; nothing says of which."""

    first: Layer
    second: Layer

    def forward(self, input: Array) -> tuple[Array, Any]:
        value, first_saved = self.first.forward(input)
        output, second_saved = self.second.forward(value)
        return output, (first_saved, second_saved)

    def infer(self, input: Array) -> Array:
        return self.second.infer(self.first.infer(input))

    def backward(self, saved: Any, grad_output: Array) -> Array:
        first_saved, second_saved = saved
        return self.first.backward(first_saved, self.second.backward(second_saved, grad_output))

    def reference(self, input: Any, first: Any, second: Any) -> Any:
        return second(first(input))


def test_input_shapes_are_needed_for_noise_and_for_nothing_else() -> None:
    model = Sequential(Chain(Linear(4, 8), Linear(8, 4)), dtype="float64")
    trainer = Trainer(model, MSELoss(), SGD(model, lr=0.1))
    trainer.train_step(INPUT, INPUT)
    assert trainer.evaluate(Examples(INPUT, INPUT)).loss == pytest.approx(np.square(model(INPUT) - INPUT).mean())
    model = Sequential(Chain(Linear(4, 8), Sequential(Linear(8, 4), Dropout())), dtype="float64")
    words = r"^Chain has no input_shapes\(input_shape\), so second counts as getting its input's shape \(5, 4\), which "
    with pytest.raises(LayerError, match=words):
        model.forward(INPUT)


@dataclass(eq=False)
class Noisy(Own):
    """Random, and run in evaluation as in training."""

    infer = Layer.infer


@dataclass(eq=False)
class Passing(Around):
    """Doesn't say how it evaluates."""

    infer = Layer.infer


@pytest.mark.parametrize(
    ("layer", "message"),
    [
        (
            Noisy({}),
            "Noisy has noise_shapes: it must define infer(input), or evaluation would take the random numbers of the "
            "last training step",
        ),
        (
            Passing({}, Dropout()),
            "Passing is made of layers of which inner (Dropout) evaluates otherwise than it trains: it must define "
            "infer(input), which runs theirs",
        ),
        (
            Around({}, Passing({}, Sequential(Linear(4, 4), BatchNorm1d(4)))),
            "Passing is made of layers of which inner.1 (BatchNorm1d) evaluates otherwise than it trains: it "
            "must define infer(input), which runs theirs",
        ),
    ],
)
def test_what_evaluation_cannot_run(layer: Layer, message: str) -> None:
    with pytest.raises(LayerError) as caught:
        Sequential(Linear(4, 4), layer)
    assert str(caught.value) == message


def test_an_infer_is_needed_for_nothing_else() -> None:
    model = Sequential(Passing({}, Sequential(Linear(4, 4), Residual(Tanh()))), dtype="float64")
    assert np.array_equal(model(INPUT), model.forward(INPUT)[0])


@dataclass(eq=False)
class Named(Tanh):
    """Fields whose types are known, and one whose type is not."""

    size: int | None = None
    factor: float = 1.0
    sizes: tuple[int, ...] = ()


class Strange(Tanh):
    """Its annotation is no name that Python finds."""

    size: Nowhere = 1.5  # type: ignore[name-defined]  # noqa: F821 - as it says


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Linear(2.0, 3), r"Linear: in_features must be an integer, not 2\.0"),  # type: ignore[arg-type]
        (lambda: MaxPool2d((3, np.float64(2))), r"MaxPool2d: kernel_size must be .*, not \(3, .*2\.0.*\)"),  # type: ignore[arg-type]
        (lambda: Residual(Linear(2, np.float32(2))), r"Linear: out_features must be an integer, not .*2\.0.*"),  # type: ignore[arg-type]
        (lambda: Named(1.0), r"Named: size must be an integer or None, not 1\.0"),  # type: ignore[arg-type]
        (lambda: Named(sizes=(1, 2.0)), r"Named: sizes must be a list of integers, not \(1, 2\.0\)"),  # type: ignore[arg-type]
    ],
)
def test_a_float_where_an_integer_is_meant(make: Any, message: str) -> None:
    with pytest.raises(TypeError, match=f"^{message}$"):
        Sequential(make())


def test_integers_and_unknown_types_are_taken() -> None:
    Sequential(Named(), Named(None, 2), Named(np.int64(3), 2.5, (1, 2)))  # type: ignore[arg-type]
    Sequential(Strange())


@pytest.mark.parametrize("name", ["param", "grad", "buffer", "noise"])
def test_a_field_has_no_name_that_the_model_sets(name: str) -> None:
    def forward(_: Layer, input: Array) -> tuple[Array, None]:
        return input, None

    def backward(_: Layer, saved: None, grad_output: Array) -> Array:  # noqa: ARG001 - the contract's signature
        return grad_output

    methods = {"forward": forward, "backward": backward, "__annotations__": {name: "float"}, name: 0.5}
    own: Any = dataclass(eq=False)(type("Own", (Layer,), methods))
    with pytest.raises(LayerError, match=rf"^Own: a field can't be called {name}: the model sets param, grad, buffer,"):
        Sequential(own())


@pytest.mark.parametrize("name", ["input", "output", "", "__call__"])
def test_a_parameter_has_no_name_that_means_something_else(name: str) -> None:
    """The gradient of one that is called input would have the name of another tensor."""

    class Scale(Layer):
        def parameter_shapes(self) -> dict[str, Shape]:
            return {name: (3,)}

        def forward(self, input: Array) -> tuple[Array, Array]:
            return input, input

        def backward(self, saved: Array, grad_output: Array) -> Array:  # noqa: ARG002 - the contract's signature
            return grad_output

    with pytest.raises(LayerError, match=rf"^Scale: a parameter can't be called '{name}'"):
        Sequential(Scale())
