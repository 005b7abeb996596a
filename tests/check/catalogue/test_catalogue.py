"""What the catalogue and the pytest plugin catch: layers that are wrong in few places, and no layer that is right."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from composites import StochasticDepth
from slow_cases import crossed

from nn_manual.arrays import DTYPES, Array, Domain, Shape
from nn_manual.check.catalogue.cases import CaseResult, layer_cases, scheduler_cases
from nn_manual.check.catalogue.catalogue import CatalogueReport, Entry, catalogue, entry, row
from nn_manual.check.catalogue.input_kinds import KINDS
from nn_manual.check.catalogue.inputs import move_constants
from nn_manual.layers import BatchNorm1d, Layer, Linear, Tanh
from nn_manual.model import Sequential
from nn_manual.optim import StepLR

Formula = Callable[[Array], Array]


def elementwise(name: str, forward: Formula, derivative: Formula, domain: Domain = "real", **members: Any) -> Layer:
    """An elementwise layer of its two formulas; torch.nn's of that name is its reference unless it has its own."""
    methods = {
        "forward": lambda _, input: (forward(input), input),
        "backward": lambda _, saved, grad_output: grad_output * derivative(saved),
        "domain": domain,
        **members,
    }
    layer_class: Any = dataclass(eq=False)(type(name, (Layer,), methods))
    layer: Layer = layer_class()
    return layer


def checked(layer: Layer, input_shape: Shape = (4, 3), dtype: str = "float64", upstream: str = "random") -> Entry:
    """One case of the pytest plugin."""
    return entry("layer", dtype, layer_cases(layer, input_shape, dtype, seed=0, upstreams=[upstream]))


def wrong_tensor(found: Entry) -> str:
    """The name of the first tensor that was found wrong."""
    assert found.failure is not None
    return found.failure.failures[0].name


@pytest.mark.slow
def test_the_packages_components_pass() -> None:
    """It alone runs every component of the package through every kind of input, in both dtypes."""
    report = catalogue()
    assert report.passed, str(report)
    assert len(report.entries) >= 44
    rows = [(entry.component, entry.dtype) for entry in report.entries]
    assert len(rows) == len(set(rows))
    assert {("ReLU() of 4x3", "float32"), ("ReLU() of 3x3", "float32")} <= set(rows)


def test_a_long_name_goes_on_in_the_next_line() -> None:
    long = "ReduceLROnPlateau(factor=0.5, patience=0, eps=0.05)"
    entries = [Entry(name, "float64", 1, 200, 0.0, None, "") for name in (long, "StepLR(7)")]
    assert str(CatalogueReport(tuple(entries))).splitlines()[:4] == [
        "                              dtype    cases  tensors     worst",
        "ReduceLROnPlateau(factor=0.5,",
        "  patience=0, eps=0.05)       float64      1      200      0.00%  ok",
        "StepLR(7)                     float64      1      200      0.00%  ok",
    ]


def test_a_wrong_schedule() -> None:
    right = entry("right", "", scheduler_cases(StepLR(7)))
    assert (right.failure, right.num_tensors) == (None, 228)  # 114 epochs, the optimizer and a group

    wrong = type("StepLR", (StepLR,), {"lr": lambda self, initial_lr, count: initial_lr * self.gamma ** (count // 8)})
    found = entry("wrong", "", scheduler_cases(wrong(7)))
    assert found.failure is not None
    assert found.last_case == "after 7 epochs"
    assert str(found.failure.problem).startswith("scheduler: lr is 0.1, torch's is 0.01")


def softplus(input: Array) -> Array:
    return np.logaddexp(input, 0)


def sigmoid(input: Array) -> Array:
    return 1 / (1 + np.exp(-input))


SOFTPLUS = elementwise(
    "Softplus",
    lambda x: np.where(x > 20, x, softplus(x)),
    lambda x: np.where(x > 20, 1, sigmoid(x)).astype(x.dtype),
)
RELU6 = elementwise("ReLU6", lambda x: np.clip(x, 0, 6), lambda x: (x > 0) & (x < 6))
RIGHT = {"Softplus": SOFTPLUS, "ReLU6": RELU6}
RIGHT |= {
    "Hardshrink": elementwise("Hardshrink", lambda x: x * (np.abs(x) > 0.5), lambda x: np.abs(x) > 0.5),
    "LogSigmoid": elementwise("LogSigmoid", lambda x: -softplus(-x), lambda x: sigmoid(-x)),
}


@pytest.mark.filterwarnings("ignore:overflow")  # of the exp in sigmoid; its limit is right
@pytest.mark.parametrize("name", RIGHT)
@pytest.mark.parametrize(("upstream", "dtype"), crossed(list(KINDS), list(DTYPES)))
def test_right_layers_with_branches_pass(name: str, dtype: str, upstream: str) -> None:
    found = checked(RIGHT[name], dtype=dtype, upstream=upstream)
    assert found.failure is None or (upstream == "zero" and found.failure.agrees), str(found.failure)


def threshold(at: float, below: Formula) -> Layer:
    """input where it is above `at`, else 0; `below` marks where the gradient is held back."""
    return elementwise(
        "Cut",
        lambda x: x * (x > at),
        lambda x: ~below(x),
        reference=lambda _, input: input * (input > at),
    )


WRONG = {
    "no threshold": elementwise("Softplus", softplus, sigmoid),
    "6 passes": elementwise("ReLU6", lambda x: np.clip(x, 0, 6), lambda x: (x > 0) & (x <= 6)),
    "wrong beyond 3": elementwise("Tanh", np.tanh, lambda x: (1 - np.tanh(x) ** 2) * np.where(np.abs(x) > 3, 1.001, 1)),
    "passes at its kink, which is no round number": threshold(0.123456789, lambda x: x < 0.123456789),
}


@pytest.mark.filterwarnings("ignore:overflow")
@pytest.mark.parametrize(("upstream", "name"), crossed(["random", "negative", "tied", "tiny"], list(WRONG)))
def test_wrong_in_few_places(name: str, upstream: str) -> None:
    layer = threshold(0.123456789, lambda x: x <= 0.123456789)
    assert checked(layer, upstream=upstream).failure is None
    found = checked(WRONG[name], upstream=upstream)
    assert wrong_tensor(found) in ("0.output", "0.grad_input")


@pytest.mark.parametrize("dtype", DTYPES)
def test_right_with_a_batch_of_1_only(dtype: str) -> None:
    @dataclass(eq=False)
    class Shift(Layer):
        """output = input + bias"""

        def parameter_shapes(self) -> dict[str, Shape]:
            return {"bias": (3,)}

        def forward(self, input: Array) -> tuple[Array, None]:
            return input + self.param.bias, None

        def backward(self, _: None, grad_output: Array) -> Array:
            self.grad.bias[...] = grad_output[0]
            return grad_output.copy()

        def reference(self, input: Any, bias: Any) -> Any:
            return input + bias

    found = checked(Shift(), (1, 3), dtype)
    assert wrong_tensor(found) == "0.grad_bias"
    assert found.last_case == "spread input, random upstream gradient"


@dataclass(eq=False)
class Affine(Layer):
    """output = input * weight + bias, whose weight starts at 1 and whose bias at 0."""

    lacks: str = ""

    def parameter_shapes(self) -> dict[str, Shape]:
        return {"weight": (3,), "bias": (3,)}

    def reset_parameters(self, generator: np.random.Generator) -> None:  # noqa: ARG002 - nothing is drawn
        self.param.weight[...], self.param.bias[...] = 1, 0

    def forward(self, input: Array) -> tuple[Array, Array]:
        output = input * (1 if self.lacks == "the weight in output" else self.param.weight)
        return output + (0 if self.lacks == "the bias in output" else self.param.bias), input

    def backward(self, saved: Array, grad_output: Array) -> Array:
        np.sum(grad_output * saved, axis=0, out=self.grad.weight)
        np.sum(grad_output, axis=0, out=self.grad.bias)
        return grad_output * (1 if self.lacks == "the weight in grad_input" else self.param.weight)

    def reference(self, input: Any, weight: Any, bias: Any) -> Any:
        return input * weight + bias


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("upstream", ["random", "tiny"])
def test_a_parameter_that_starts_at_1_or_0_hides_nothing(dtype: str, upstream: str) -> None:
    assert checked(Affine(), dtype=dtype, upstream=upstream).failure is None
    for lacks in ("the weight in output", "the bias in output", "the weight in grad_input"):
        found = checked(Affine(lacks), dtype=dtype, upstream=upstream)
        assert wrong_tensor(found) == f"0.{lacks.rpartition(' ')[2]}"


def test_constant_parameters_are_moved_and_keep_their_sign() -> None:
    model = Sequential(Affine(), Linear(3, 2), Affine(), dtype="float64")
    model.layers[2].param.weight[...] = -2
    before = model.param_arena.copy()
    move_constants(model, np.random.default_rng(0))
    first, last = model.layers[0].param, model.layers[2].param
    assert np.all((first.weight > 0.5) & (first.weight < 1.5))
    assert np.all((last.weight > -3) & (last.weight < -1))
    assert np.all(np.abs(first.bias) < 0.5)
    assert [len(np.unique(parameter)) for parameter in (first.weight, first.bias, last.weight, last.bias)] == [3] * 4
    np.testing.assert_array_equal(model.param_arena[6:14], before[6:14])  # the Linear's are random already


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_stray_squeeze(dtype: str) -> None:
    squeezing = elementwise("Tanh", lambda x: np.tanh(x).squeeze(), lambda x: 1 - np.tanh(x) ** 2)
    found = checked(squeezing, (4, 3), dtype)
    assert found.last_case == "random input, a batch of 1, random upstream gradient"
    assert found.failure is not None
    assert "0 (Tanh)" in str(found.failure.problem)


#: Forward, derivative, reference and domain.
DOMAINS: dict[str, tuple[Formula, Formula, Any, Domain]] = {
    "Log": (np.log, lambda x: 1 / x, lambda x: x.log(), "positive"),
    "Sqrt": (np.sqrt, lambda x: 0.5 / np.sqrt(x), lambda x: x.sqrt(), "positive"),
    "Exp": (np.exp, np.exp, lambda x: x.exp(), (-20, 20)),
    "Reciprocal": (np.reciprocal, lambda x: -1 / x**2, lambda x: 1 / x, "nonzero"),
    "Arcsine": (np.arcsin, lambda x: 1 / np.sqrt((1 - x) * (1 + x)), lambda x: x.asin(), (-1, 1)),
    "Arccosh": (np.arccosh, lambda x: 1 / np.sqrt((x - 1) * (x + 1)), lambda x: x.acosh(), (1, float("inf"))),
}


@pytest.mark.parametrize(("name", "dtype"), crossed(list(DOMAINS), list(DTYPES)))
def test_layers_with_a_domain_pass_inside_it_and_wrong_ones_fail(name: str, dtype: str) -> None:
    forward, derivative, reference, domain = DOMAINS[name]

    def layer(derivative: Formula) -> Layer:
        return elementwise(name, forward, derivative, domain, reference=lambda _, input: reference(input))

    for upstream in KINDS:
        found = checked(layer(derivative), dtype=dtype, upstream=upstream)
        assert found.failure is None or (upstream == "zero" and found.failure.agrees), str(found.failure)
    assert wrong_tensor(checked(layer(lambda x: derivative(x) * x.dtype.type(0.999)), dtype=dtype)) == "0.grad_input"


@pytest.mark.parametrize("layer", [BatchNorm1d(3), Sequential(Tanh(), BatchNorm1d(3)), Linear(3, 3)])
def test_a_composite_meets_the_batches_that_its_layers_take(layer: Layer) -> None:
    composite = StochasticDepth(layer)
    cases = list(layer_cases(composite, (4, 3), "float64", seed=0, upstreams=["random"]))
    assert all(case.failure is None for case in cases)
    takes_one = any("a batch of 1" in case.description for case in cases)
    assert takes_one == isinstance(layer, Linear)


def test_a_squeeze_too_many_in_a_composite_shows() -> None:
    class Squeezing(StochasticDepth):
        def forward(self, input: Array) -> tuple[Array, Any]:
            return super().forward(input.squeeze())

    cases = layer_cases(Squeezing(Linear(3, 3)), (4, 3), "float64", seed=0, upstreams=["random"])
    assert entry("Squeezing", "float64", cases).failure is not None


def test_what_raises_is_a_row_like_others() -> None:
    def cases() -> Iterator[CaseResult]:
        yield CaseResult("the first", 3, 0.5)
        raise ZeroDivisionError("division by zero")

    found = row("Own()", "float32", cases())
    assert str(found.failure) == "gradient check failed: Own() raised ZeroDivisionError: division by zero"
    with pytest.raises(ZeroDivisionError):
        entry("Own()", "float32", cases())
