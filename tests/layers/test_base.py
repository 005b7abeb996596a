"""What a layer that somebody else writes gets from its base class."""

from __future__ import annotations

import math
import pydoc
import re
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np
import pytest

from nn_manual import SGD, Layer, Linear, MSELoss, Sequential, Tanh, Trainer, check_gradients
from nn_manual.arrays import Array, Shape
from nn_manual.defaults import defines
from nn_manual.errors import LayerError
from nn_manual.layers import Composite, LayerWithBuffers, LayerWithNoise
from nn_manual.losses import Loss

T = TypeVar("T")


@dataclass(eq=False)
class Scale(Layer):
    def parameter_shapes(self) -> dict[str, Shape]:
        return {"factor": (), "offset": (2,)}

    def forward(self, input: Array) -> tuple[Array, Array]:
        return input * self.param.factor + self.param.offset, input

    def backward(self, saved: Array, grad_output: Array) -> Array:
        self.grad.factor[...] = (grad_output * saved).sum()
        self.grad.offset[...] = grad_output.sum(axis=0)
        grad_input: Array = grad_output * self.param.factor
        return grad_input


def test_two_formulas_make_a_layer() -> None:
    layer = Scale()
    model = Sequential(layer, dtype="float64")
    assert layer.num_parameters == 3
    assert model.param_arena.tolist() == [0, 0, 0]  # nothing says how to fill them
    model.param_arena[...] = [2, 10, 20]
    output, saved = model.forward(np.array([[1.0, 2.0]]))
    assert output.tolist() == [[12, 24]]
    model.backward_parameters(saved, np.array([[3.0, -1.0]]))
    assert model.grad_arena.tolist() == [3 - 2, 3, -1]
    assert layer.output_shape((4, 2)) == (4, 2)
    assert model.backward(saved, np.array([[3.0, -1.0]])).tolist() == [[6, -2]]


def test_both_formulas_are_needed() -> None:
    class Forward(Layer):
        def forward(self, input: Array) -> tuple[Array, None]:
            return input, None

    with pytest.raises(TypeError, match="backward"):
        Forward()  # type: ignore[abstract]  # the mistake


@pytest.mark.parametrize("domain", ["real", "positive", "nonzero", (-20, 20), (0, math.inf), range(5)])
def test_a_domain(domain: Any) -> None:
    assert Layer.domain == "real"
    assert type("Log", (Scale,), {"domain": domain}).domain == domain  # type: ignore[attr-defined]  # made at run time


@pytest.mark.parametrize(
    "domain", ["negative", range(0, 9, 2), (1, 1), (2, 1), (0, 1, 2), [0, 1], ("a", "b"), (math.nan, 1), None]
)
def test_no_domain(domain: Any) -> None:
    with pytest.raises(ValueError, match=r"^Log\.domain is \"real\", .* or a pair \(low, high\) .*, not ") as caught:
        type("Log", (Scale,), {"domain": domain})
    assert str(caught.value).endswith(f"not {domain!r}")




def test_help_shows_six_names_and_the_reference_first() -> None:
    shown = pydoc.plain(pydoc.render_doc(Layer)).split("Methods inherited from")[0]
    methods = [line for line in shown.splitlines() if re.match(r" \|  \w+\(.*\) -> ", line)]
    assert [line.split("(")[0].removeprefix(" |  ") for line in methods] == [
        *("backward", "forward", "output_shape", "parameter_shapes", "reference", "reset_parameters", "examples"),
    ]


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

    def forward(self, input: Array) -> tuple[Array, Any]:
        return self.inner.forward(input)

    def backward(self, saved: Any, grad_output: Array) -> Array:
        return self.inner.backward(saved, grad_output)

    def infer(self, input: Array) -> Array:
        return self.inner.infer(input)

    def update_buffers(self, saved: Any) -> None:
        self.inner.update_buffers(saved)

    def reference(self, input: Any, inner: Any) -> Any:
        return inner(input)


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


class Math:
    """What a class behind the layer's base says."""

    def reference(self, input: Any) -> Any:
        return input / (1 + input.abs())

    def infer_reference(self, input: Any) -> Any:
        return input / (1 + input.abs())

    def kink_distance(self, input: Array) -> Array:
        distance: Array = np.abs(input - 1)
        return distance


@dataclass(eq=False)
class Squash(Layer, Math):
    """output = input / (1 + 2 |input|), which is not its reference"""

    def forward(self, input: Array) -> tuple[Array, Array]:
        return input / (1 + 2 * np.abs(input)), input

    def backward(self, saved: Array, grad_output: Array) -> Array:
        grad_input: Array = grad_output / np.square(1 + 2 * np.abs(saved))
        return grad_input


class Named:
    torch_class: ClassVar[str | None] = "Tanh"


@dataclass(eq=False)
class Sine(Layer, Named):
    """output = sin(input), which is not torch.nn.Tanh"""

    def forward(self, input: Array) -> tuple[Array, Array]:
        return np.sin(input), input

    def backward(self, saved: Array, grad_output: Array) -> Array:
        grad_input: Array = grad_output * np.cos(saved)
        return grad_input


class Halving:
    def backward_target(self, saved: Any) -> Array:
        return np.full_like(saved, 0.25)

    def reference(self, prediction: Any, target: Any) -> Any:
        return (prediction - target).sum() / 2


@dataclass(eq=False)
class HalfSum(Loss, Halving):
    """loss = sum(prediction - target) / 2; its grad_target is wrong"""

    reduction: str = "sum"

    def forward(self, prediction: Array, target: Array) -> tuple[Any, Array]:
        return (prediction - target).sum() / 2, prediction

    def backward(self, saved: Array) -> Array:
        return np.full_like(saved, 0.5)


def test_what_stands_behind_the_base_counts() -> None:
    input, target = np.random.default_rng(0).standard_normal((2, 8, 3))
    for layer in (Squash(), Sine()):
        report = check_gradients(Sequential(layer, dtype="float64"), MSELoss(), input, target)
        assert report.failures[0].name == "0.output"
    assert defines(Squash(), "infer_reference")
    np.testing.assert_array_equal(Squash().kink_distance(np.array([3.0, 1])), [2, 0])
    report = check_gradients(Sequential(Tanh(), dtype="float64"), HalfSum(), input, target)
    assert [failure.name for failure in report.failures] == ["loss.grad_target"]


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
