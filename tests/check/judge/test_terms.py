"""Right formulas that lose digits to their terms, ours or torch's, pass; those beside them that are wrong don't."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch
from every_component import into_domain
from slow_cases import crossed

from nn_manual import (
    BatchNorm2d,
    CausalSelfAttention,
    Identity,
    Layer,
    Linear,
    MultiMarginLoss,
    Sequential,
    SpectralNorm,
    Tanhshrink,
    check_gradients,
)
from nn_manual.arrays import DTYPES, Array, Domain
from nn_manual.check.catalogue.input_kinds import draw
from nn_manual.check.catalogue.targets import draw_target
from nn_manual.check.catalogue.upstream import UpstreamLoss
from nn_manual.check.judge import terms
from nn_manual.check.judge.moved import effects_of
from nn_manual.check.judge.moved_arrays import moved_array
from nn_manual.check.judge.report import GradientReport
from nn_manual.check.judge.rounding import NUM_PERTURBATIONS
from nn_manual.check.step.plan import Plan
from nn_manual.check.step.proof import prove
from nn_manual.check.step.recording import Recording, run_step
from nn_manual.check.twin.model import Twin
from nn_manual.check.whole_step.gradients import checked_in_part
from nn_manual.layers import Composite
from nn_manual.losses import Loss
from nn_manual.registry import components, examples


@dataclass(eq=False)
class OfItsOutput(Layer):
    """ELU, whose backward is made of the saved output: where that is nearly -alpha, their sum has few digits."""

    alpha: float = 1.0
    factor: float = 1.0

    def forward(self, input: Array) -> tuple[Array, Array]:
        output = np.where(input > 0, input, self.alpha * np.expm1(np.minimum(input, 0)))
        return output, output

    def backward(self, saved: Array, grad_output: Array) -> Array:
        grad_input: Array = grad_output * np.where(saved > 0, 1, saved + self.alpha * self.factor)
        return grad_input.astype(grad_output.dtype)

    def reference(self, input: Any) -> Any:
        return torch.nn.functional.elu(input, self.alpha)


ROOT = (2 / np.pi) ** 0.5


@dataclass(eq=False)
class OfItsTanh(Layer):
    """GELU by tanh: where that is nearly -1, 1 + tanh has few digits, in torch's arithmetic as in ours."""

    factor: float = 1.0

    def forward(self, input: Array) -> tuple[Array, tuple[Array, Array]]:
        tanh = np.tanh(ROOT * (input + self.factor * 0.044715 * input * input * input))
        return 0.5 * input * (1 + tanh), (input, tanh)

    def backward(self, saved: tuple[Array, Array], grad_output: Array) -> Array:
        input, tanh = saved
        inner = ROOT * (1 + 3 * self.factor * 0.044715 * input * input)
        grad_input: Array = grad_output * (0.5 * (1 + tanh) + 0.5 * input * (1 - tanh * tanh) * inner)
        return grad_input

    def reference(self, input: Any) -> Any:
        return torch.nn.functional.gelu(input, approximate="tanh")


@dataclass(eq=False)
class Direction(Layer):
    """input / |input|, by rows: where one number is nearly all of a row, its gradient is what is left of two terms."""

    domain: Domain = "nonzero"
    factor: float = 1.0

    def forward(self, input: Array) -> tuple[Array, tuple[Array, Array]]:
        norm = np.sqrt((input * input).sum(axis=-1, keepdims=True))
        return input / norm, (input, norm)

    def backward(self, saved: tuple[Array, Array], grad_output: Array) -> Array:
        input, norm = saved
        along = (grad_output * input).sum(axis=-1, keepdims=True)
        grad_input: Array = grad_output / norm - self.factor * input * along / norm**3
        return grad_input

    def reference(self, input: Any) -> Any:
        return input / input.norm(dim=-1, keepdim=True)


@dataclass(eq=False)
class OfItsChild(Composite):
    """A sigmoid behind a layer of its own, which gets what is left of 1 - sigmoid."""

    child: Layer
    factor: float = 1.0

    def forward(self, input: Array) -> tuple[Array, tuple[Any, Array]]:
        output, saved = self.child.forward(input)
        sigmoid = 0.5 * (1 + np.tanh(0.5 * output))
        return sigmoid, (saved, sigmoid)

    def backward(self, saved: tuple[Any, Array], grad_output: Array) -> Array:
        of_child, sigmoid = saved
        return self.child.backward(of_child, grad_output * sigmoid * (1 - self.factor * sigmoid))

    def reference(self, input: Any, child: Any) -> Any:
        return torch.sigmoid(child(input))


#: Factors at which the formulas are wrong, in float32 by more than its tolerance.
WRONG = {"float32": 1.001, "float64": 1 + 1e-6}

#: The layer with a factor, which is 1 where it is right; the kind of input; wrong factors; seeds of batches.
LAYERS: dict[str, tuple[Callable[[float], Layer], str, dict[str, float], tuple[int, ...]]] = {
    "ELU of its output": (lambda factor: OfItsOutput(factor=factor), "spread", WRONG, (2,)),
    "ELU of its output, alpha 0.7": (lambda factor: OfItsOutput(0.7, factor), "spread", WRONG, (2,)),
    "GELU by tanh": (lambda factor: OfItsTanh(factor), "spread", WRONG, (0, 1)),
    "sigmoid of its child": (lambda factor: OfItsChild(Identity(), factor), "spread", WRONG, (0, 1)),
    "x / norm(x)": (lambda factor: Direction(factor=factor), "scattered", {"float32": 0, "float64": 0}, (26, 37)),
}


def reports(name: str, dtype: str, *, right: bool) -> list[GradientReport]:
    """Of batches with upstream gradients of two kinds."""
    make, kind, wrong, seeds = LAYERS[name]
    found = []
    for seed in seeds:
        generator = np.random.default_rng(seed)
        layer = make(1 if right else wrong[dtype])
        input = draw(kind, (41 if kind == "spread" else 8, 3), dtype, generator, layer.domain)
        grad_output = draw("random" if kind == "spread" else "scattered", input.shape, dtype, generator)
        model = Sequential(layer, dtype=dtype)
        found.append(checked_in_part(model, UpstreamLoss(), input, grad_output, with_conduct=False))
    return found


@pytest.mark.parametrize(("name", "dtype"), crossed(list(LAYERS), list(DTYPES)))
def test_digits_that_are_lost_to_terms_are_no_mistake(name: str, dtype: str) -> None:
    for report in reports(name, dtype, right=True):
        assert report.agrees, str(report)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", LAYERS)
def test_beside_them_a_wrong_formula_is_wrong(name: str, dtype: str) -> None:
    for report in reports(name, dtype, right=False):
        assert not report.agrees


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("factor", [1.0, 1e3])
def test_what_torch_loses_in_float64_is_no_mistake(dtype: str, factor: float) -> None:
    """torch's gradient of x - tanh(x) is 1 - (1 - tanh(x)**2): 0 where tanh(x)**2 is below float64's eps. A factor
    shows where it isn't.
    """

    class OfSquare(Tanhshrink):
        def backward(self, saved: Any, grad_output: Array) -> Array:
            grad_input: Array = super().backward(saved, grad_output) * grad_output.dtype.type(factor)
            return grad_input

    OfSquare.__name__ = "Tanhshrink"
    model = Sequential(OfSquare(), dtype=dtype)
    for scale in (1e-9, 1e-6):
        input = scale * np.random.default_rng(0).uniform(1, 2, (4, 3)).astype(dtype)
        report = checked_in_part(model, UpstreamLoss(), input, np.ones((4, 3), dtype), with_conduct=False)
        assert report.agrees == (factor == 1 or scale == 1e-9), str(report)


@pytest.mark.parametrize("dtype", DTYPES)
def test_in_a_small_part_no_more_is_excused_than_a_few_roundings_of_its_terms(dtype: str) -> None:
    """At -10 the gradient is 5e-5, its terms are 1. The tensor's own tolerance would let both mistakes pass."""

    class Wrong(OfItsOutput):
        def backward(self, saved: Array, grad_output: Array) -> Array:
            wrong_by = 0.3 if grad_output.dtype == np.float32 else 1e-9
            factor = np.where(saved < -1 + 1e-4, 1 + wrong_by, 1)
            return (super().backward(saved, grad_output) * factor).astype(grad_output.dtype)

    input = np.array([[-10, -10.5], [1, 2], [-1, -2]], dtype)
    grad_output = np.array([[1, -1.5], [0.5, 2], [-1, 0.7]], dtype)
    right = check_gradients(Sequential(OfItsOutput(), dtype=dtype), UpstreamLoss(), input, grad_output)
    assert right.agrees, str(right)
    wrong = check_gradients(Sequential(Wrong(), dtype=dtype), UpstreamLoss(), input, grad_output)
    assert [failure.name for failure in wrong.failures] == ["0.grad_input[0, :]"]


@pytest.mark.parametrize("seed", [15, 50])
def test_the_terms_of_a_parameter_are_products_of_the_input(seed: int) -> None:
    """The weight of one number, divided by its norm, has the gradient 0: ours is, torch's is a difference of numbers a
    hundred times as large as grad_output.
    """
    generator = np.random.default_rng(seed)
    input, target = 100 * generator.standard_normal((5, 1)), generator.integers(0, 3, 5)
    net = Sequential(SpectralNorm(Linear(1, 1)), Linear(1, 3), seed=seed, dtype="float64")
    assert check_gradients(net, MultiMarginLoss(), input, target).agrees


def test_no_layer_excuses_more_than_what_it_got_and_made() -> None:
    """It adds a million and takes it away again, which loses six digits of numbers that have no such term."""

    class Detour(Layer):
        def forward(self, input: Array) -> tuple[Array, Array]:
            return input * input, input

        def backward(self, saved: Array, grad_output: Array) -> Array:
            grad_input: Array = grad_output * ((2 * saved + 1e6) - 1e6)
            return grad_input

        def reference(self, input: Any) -> Any:
            return input * input

    generator = np.random.default_rng(0)
    input, grad_output = generator.standard_normal((2, 4, 3))
    report = check_gradients(Sequential(Detour(), dtype="float64"), UpstreamLoss(), input, grad_output)
    assert [failure.name for failure in report.failures] == ["0.grad_input"]


class WrongAttention(CausalSelfAttention):
    torch_class = "CausalSelfAttention"

    def backward(self, saved: Any, grad_output: Array) -> Array:
        return super().backward(saved, grad_output) * (1 + 1e-10)


class WrongBatchNorm(BatchNorm2d):
    torch_class = "BatchNorm2d"

    def backward(self, saved: Any, grad_output: Array) -> Array:
        return super().backward(saved, grad_output) * (1 + 1e-10)


@pytest.mark.parametrize("layer", [WrongAttention(4, 2), WrongBatchNorm(2)])
def test_no_layer_is_excused_more_than_that_by_what_torch_computes_inside(layer: Layer) -> None:
    """Where one score is above the others by far, probabilities are exactly 0 and 1, and nothing is rounded on the way
    back through them. Where two numbers that are nearly equal are normalized, little is left of the gradient.
    """
    generator = np.random.default_rng(1)
    model = Sequential(layer, seed=1, dtype="float64")
    if isinstance(layer, BatchNorm2d):
        input = generator.standard_normal((1, 2, 1, 1)) + 0.1 * generator.standard_normal((1, 2, 1, 2))
    else:
        input = draw("scattered", (2, 3, 4), "float64", generator)
    grad_output = draw("random", input.shape, "float64", generator)
    report = checked_in_part(model, UpstreamLoss(), input, grad_output, with_conduct=False)
    assert [failure.name for failure in report.failures] == ["0.grad_input"]


def test_the_layers_beside_it_are_judged_as_ever() -> None:
    generator = np.random.default_rng(0)
    model = Sequential(Linear(3, 3), OfItsOutput(), Linear(3, 2), seed=0, dtype="float64")
    model.layers[0].param.bias[...] = -16
    report = check_gradients(model, UpstreamLoss(), *(generator.standard_normal((8, size)) for size in (3, 2)))
    assert report.agrees, str(report)
    assert "1.grad_input" in report.rounding


def test_what_follows_in_proportion_counts_and_a_jump_does_not() -> None:
    def run(size: float, seed: int) -> dict[str, Array]:
        del seed
        return {"output": np.array([1 - 3 * size, 1 + (size > 0), 1, np.nan])}

    np.testing.assert_array_equal(effects_of(run, run(0, 0))["output"], [3, 0, 0, 0])


def test_the_largest_effect_of_all_seeds_counts() -> None:
    def run(size: float, seed: int) -> dict[str, Array]:
        return {"output": np.array([size * seed, -size / (seed + 1)])}

    np.testing.assert_array_equal(effects_of(run, {"output": np.zeros(2)})["output"], [NUM_PERTURBATIONS - 1, 1])


def test_arrays_whose_arithmetic_is_moved() -> None:
    generator = np.random.default_rng(0)
    values = np.arange(1.0, 1001.0)
    moved = moved_array(values, 0.25, generator)
    for found, right in ((moved, values), (np.exp(0 * moved), np.ones(1000)), (np.add(moved * 0, 2), np.full(1000, 2))):
        steps = np.abs(np.asarray(found) / right - 1)
        assert 0.125 <= steps.min() < 0.14
        assert 0.36 < steps.max() <= 0.375
    assert moved.size == 1000
    out = np.zeros(1000)
    np.exp(moved * 0, out=out)
    assert 0.125 <= np.abs(out - 1).min() < np.abs(out - 1).max() <= 0.375
    total = np.sum(moved * 0 + 1)
    assert total.shape == ()  # a number of NumPy's own would not be moved any more
    assert total != 1000
    assert np.dot(moved[:2], moved[:2]) * 0 + 1 != 1
    np.testing.assert_array_equal(np.asarray(np.maximum(moved, 0)), np.asarray(moved))
    assert np.array_equal(moved > 0, np.ones(1000, bool))
    assert np.where(moved > 0, moved, 0).max() == moved.max()
    assert not np.asarray(moved * 0).any()
    whole, rest = np.divmod(moved * 0 + 7.0, 2.0)
    assert whole.shape == rest.shape == (1000,)


@pytest.mark.parametrize(
    "run",
    [
        lambda one: np.dot(one, np.eye(8)),
        lambda one: np.einsum("ij,jk->ik", np.eye(8), one),
        lambda one: np.linalg.inv(one * np.eye(8)),
        lambda one: np.fft.fft(one[0])[:1],
        lambda one: np.fft.rfft(one[0])[:1] * (1 + 0j),
    ],
)
def test_products_and_transforms_are_moved(run: Any) -> None:
    """What they return goes on being moved; complex numbers move in any direction."""
    found = run(moved_array(np.ones((8, 8)), 2.0**-20, np.random.default_rng(0)))
    assert type(found).__name__ == "Moved"
    right = run(np.ones((8, 8)))
    steps = np.abs(np.asarray(found) - right)[right != 0]
    assert steps.min() > 0
    assert steps.max() < 8 * 4 * 2.0**-20
    if np.iscomplexobj(right):
        assert np.abs(np.asarray(found).imag).min() > 0


def test_what_only_moves_numbers_about_rounds_nothing() -> None:
    moved = moved_array(np.arange(1.0, 7.0), 0.25, np.random.default_rng(0))
    for found in (np.where(moved > 0, moved, 0), np.concatenate([moved[:3], moved[3:]]), np.flip(np.flip(moved))):
        assert type(found).__name__ == "Moved"
        np.testing.assert_array_equal(np.asarray(found), np.asarray(moved))


def test_no_terms_are_measured_of_what_no_terms_would_excuse(monkeypatch: pytest.MonkeyPatch) -> None:
    measured: list[str] = []

    def counted(run: Any, truth: Any) -> dict[str, Array]:
        measured.extend(truth)
        return effects_of(run, truth)

    monkeypatch.setattr(terms, "effects_of", counted)
    input, grad_output = np.array([[-37.0, -36.0, 1.0]]), np.array([[1.0, 1.0, 1e-20]])
    for factor, expected in ((1.0, True), (1.01, False)):
        measured.clear()
        model = Sequential(OfItsOutput(factor=factor), dtype="float64")
        assert check_gradients(model, UpstreamLoss(), input, grad_output).agrees == expected
        assert bool(measured) == expected


@pytest.mark.parametrize("loss", examples(components(Loss)))
def test_the_terms_of_each_loss_can_be_measured(loss: Loss) -> None:
    """torch's own kernels keep values that aren't rounded, as which classes a target has: moved, they are refused."""
    generator = np.random.default_rng(0)
    model = Sequential(Linear(3, 5), *into_domain(loss), seed=0, dtype="float64")
    input = generator.standard_normal((4, 3))
    target = draw_target(loss, "random", (4, 5), "float64", generator)
    with Recording(model, loss) as recorded:
        run_step(model, loss, input, target, input_grad=False)
    twin = Twin(model, loss, np.float64)
    step = prove(twin, recorded, Plan(model, recorded, input_grad=False))
    truth = terms._torchs_values(twin, step)
    moved = terms._torchs_values(twin, step, 2.0**-40, 0)
    assert not np.array_equal(moved["loss.grad_prediction"], truth["loss.grad_prediction"])
