"""Which base a layer has: the one that it names, or the one that its methods ask for; and what mixins bring."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np
import pytest
from stateful import Wrapped

from nn_manual import SGD, Layer, Linear, MSELoss, Sequential, Tanh, Trainer, check_gradients
from nn_manual.arrays import Array, Shape
from nn_manual.errors import LayerError
from nn_manual.layers import Composite, LayerWithBuffers, LayerWithNoise

T = TypeVar("T")


@dataclass(eq=False)
class WithAll(Layer):
    """output     = input * mask, in evaluation input - mean; as a user wrote it before buffers and noise had bases
    grad_input = grad_output * mask
    """

    def buffer_shapes(self) -> dict[str, Shape]:
        return {"mean": (3,)}

    def noise_shapes(self, input_shape: Shape) -> dict[str, Shape]:
        return {"mask": input_shape}

    def draw_noise(self, generator: Any) -> None:
        self.noise.mask[...] = generator.random(self.noise.mask.shape) > 0.5

    def forward(self, input: Array) -> tuple[Array, Any]:
        return input * self.noise.mask, (input, self.noise.mask)

    def backward(self, saved: Any, grad_output: Array) -> Array:
        grad_input: Array = grad_output * saved[1]
        return grad_input

    def infer(self, input: Array) -> Array:
        output: Array = input - self.buffer.mean
        return output

    def update_buffers(self, saved: Any) -> None:
        self.buffer.mean[...] = saved[0].mean(axis=0)

    def reference(self, input: Any, mean: Any, mask: Any) -> Any:  # noqa: ARG002 - it gets them all
        return input * mask, {"mean": input.mean(0)}

    def infer_reference(self, input: Any, mean: Any) -> Any:
        return input - mean


@dataclass(eq=False)
class Around(Layer):
    """One layer, run as it is, as a user wrote it before composites had a base."""

    inner: Layer

    forward, backward, infer = Wrapped.forward, Wrapped.backward, Wrapped.infer
    update_buffers, reference = Wrapped.update_buffers, Wrapped.reference


@dataclass(eq=False)
class Narrowed(Around):
    """It says what its layer gets."""

    def input_shapes(self, input_shape: Shape) -> dict[str, Shape]:
        return {"inner": input_shape}


class Halved:
    """Random numbers from a class that is no layer."""

    noise: Any

    def noise_shapes(self, input_shape: Shape) -> dict[str, Shape]:
        return {"half": input_shape}

    def draw_noise(self, generator: Any) -> None:  # noqa: ARG002 - a layer's
        self.noise.half[...] = 0.5


@dataclass(eq=False)
class HalvedTanh(Halved, Tanh):
    """output = tanh(input) / 2"""

    def forward(self, input: Array) -> tuple[Array, Array]:
        output, saved = super().forward(input)
        return output * self.noise.half, saved

    def infer(self, input: Array) -> Array:
        return super().forward(input)[0]


def test_what_a_mixin_brings_counts() -> None:
    assert issubclass(HalvedTanh, LayerWithNoise)
    output, _ = Sequential(HalvedTanh(), dtype="float64").forward(np.full((2, 3), 0.3))
    np.testing.assert_array_equal(output, np.tanh(np.full((2, 3), 0.3)) * 0.5)


class Marked:
    """Nothing but another layout in memory than a layer's."""

    __slots__ = ()


@dataclass(eq=False)
class Kept(Layer, Marked, Generic[T]):
    """output = input; it counts the steps"""

    def buffer_shapes(self) -> dict[str, Shape]:
        return {"count": ()}

    def update_buffers(self, saved: Any) -> None:  # noqa: ARG002 - a layer's
        self.buffer.count += 1

    def forward(self, input: Array) -> tuple[Array, None]:
        return input.copy(), None

    def infer(self, input: Array) -> Array:
        return input

    def backward(self, saved: Any, grad_output: Array) -> Array:  # noqa: ARG002 - a layer's
        return grad_output.copy()


@dataclass(eq=False)
class Filled(Around):
    """It fills the buffers of the layer inside, and lists them itself."""

    def buffer_shapes(self) -> dict[str, Shape]:
        return {"inner.count": ()}

    def reset_buffers(self) -> None:
        super().reset_buffers()
        self.inner.buffer.count[...] = 3


def test_the_base_stands_where_layer_stood() -> None:
    assert Kept.__mro__[1] is LayerWithBuffers
    model = Sequential(Filled(Kept()), dtype="float64")
    assert dict(model.state_dict()) == {"0.inner.count": 3}
    _, saved = model.forward(np.ones((2, 3)))
    model.update_buffers(saved)
    assert model.state_dict()["0.inner.count"] == 4


def test_what_a_class_got_too_late_is_refused() -> None:
    class Late(Tanh):
        pass

    Late.noise_shapes = lambda *_: {}  # type: ignore[attr-defined]
    with pytest.raises(LayerError, match=r"^Late has noise_shapes: derive it from nn_manual\.layers\.LayerWithNoise$"):
        Sequential(Late())


@pytest.mark.parametrize(
    ("says", "words"),
    [
        ({}, r"^Unsaid is a LayerWithBuffers: it must define buffer_shapes\(\) or counter_names\(\)$"),
        ({"buffer_shapes": lambda _: {"m": (3,)}}, r"^Unsaid has buffers: it must define update_buffers\(saved\)$"),
        ({"buffer_shapes": lambda _: {}}, ""),
    ],
)
def test_buffers_are_named_and_moved(says: dict[str, Any], words: str) -> None:
    inherited = {name: getattr(Tanh, name) for name in ("forward", "backward", "derivative")}
    unsaid: Any = type("Unsaid", (LayerWithBuffers,), inherited | says)
    with pytest.raises(LayerError, match=words) if words else nullcontext():
        Sequential(unsaid())


@pytest.mark.parametrize("around", [Around, Narrowed])
def test_a_layer_that_names_no_base_gets_it(around: type[Around]) -> None:
    layer = WithAll()
    assert isinstance(layer, LayerWithBuffers)
    assert isinstance(layer, LayerWithNoise)
    assert isinstance(Narrowed(layer), Composite)
    model = Sequential(around(layer), around(Linear(3, 3)), dtype="float64", seed=1)
    generator = np.random.default_rng(0)
    input, target = generator.standard_normal((2, 8, 3))
    report = check_gradients(model, MSELoss(), input, target)
    assert report.passed, str(report)
    trainer = Trainer(model, MSELoss(), SGD(model, lr=0.1))
    trainer.train_step(input, target)
    assert "0.inner.mean" in model.state_dict()
    np.testing.assert_array_equal(layer.buffer.mean, input.mean(axis=0))
    assert set(np.unique(layer.noise.mask)) == {0, 1}
    np.testing.assert_array_equal(layer.infer(input), input - input.mean(axis=0))


def test_a_base_asks_for_what_is_missing() -> None:
    class Drawing(Tanh):
        def noise_shapes(self, input_shape: Shape) -> dict[str, Shape]:
            return {"mask": input_shape}

    with pytest.raises(TypeError, match=r"abstract class Drawing.*draw_noise"):
        Drawing()
