"""With what a layer is compared: torch's classes of the same name as a user's layer among it."""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pytest
import torch
from nets import Double, batch, report_of
from slow_cases import crossed

from nn_manual import SGD, Layer, Linear, MSELoss, Sequential, SpectralNorm, Trainer, WeightNorm
from nn_manual.arrays import DTYPES, Array, Shape
from nn_manual.check.catalogue.upstream import UpstreamLoss
from nn_manual.check.twin.layers import Source, counterpart_of
from nn_manual.check.twin.modules import FRACTIONAL, RANDOM
from nn_manual.check.whole_step.checker import GradientChecker
from nn_manual.layers import LayerWithBuffers
from nn_manual.registry import components, examples


def test_no_shipped_layer_is_compared_with_differences() -> None:
    classes = components(Layer)
    assert classes.keys() >= {"Linear", "ReLU", "Tanh"}
    for layer, _ in examples(classes):
        assert counterpart_of(layer).source is not Source.FORWARD


@dataclass(eq=False)
class BatchNorm1d(Layer):
    """output = (input - mean) / sqrt(variance + eps) * weight + bias, with the statistics of the batch."""

    num_features: int
    eps: float = 1e-5
    wrong: ClassVar[bool] = False

    def parameter_shapes(self) -> dict[str, Shape]:
        return {"weight": (self.num_features,), "bias": (self.num_features,)}

    def reset_parameters(self, generator: np.random.Generator) -> None:
        for view in vars(self.param).values():
            view[...] = generator.uniform(0.5, 2, view.shape)

    def forward(self, input: Array) -> tuple[Array, Any]:
        weight, bias = vars(self.param).values()
        centered = input - input.mean(axis=0)
        inverse = 1 / np.sqrt((centered * centered).mean(axis=0) + input.dtype.type(self.eps))
        return centered * inverse * weight + bias, (centered * inverse, inverse)

    def backward(self, saved: Any, grad_output: Array) -> Array:
        normal, inverse = saved
        grad_weight, grad_bias = vars(self.grad).values()
        grad_weight[...], grad_bias[...] = (grad_output * normal).sum(axis=0), grad_output.sum(axis=0)
        grad = grad_output * next(iter(vars(self.param).values()))
        centered = grad if self.wrong else grad - grad.mean(axis=0)
        grad_input: Array = inverse * (centered - normal * (grad * normal).mean(axis=0))
        return grad_input


def renamed(name: str, base: type[Layer] = BatchNorm1d, **attributes: Any) -> Any:
    """A class of this name, as a user might call it."""
    return type(name, (base,), attributes)


GAMMA: dict[str, Any] = {"parameter_shapes": lambda self: {"gamma": (self.num_features,), "beta": (self.num_features,)}}
FORWARD = "its own forward in float64, the gradients with central differences of it"


COUNTERPARTS = [
    (BatchNorm1d, "torch.nn.BatchNorm1d"),
    (renamed("Mine", torch_class="BatchNorm1d"), "torch.nn.BatchNorm1d"),
    (renamed("Mine"), FORWARD),
    (renamed("BatchNorm1d", torch_class=None), FORWARD),
    (
        renamed("BatchNorm1d", **GAMMA),
        f"{FORWARD}; the parameters of torch.nn.BatchNorm1d are weight (4,), bias (4,), "
        "the layer's gamma (4,), beta (4,)",
    ),
]


@pytest.mark.parametrize(
    ("case", "wrong", "dtype"), crossed(COUNTERPARTS, [True, False], ["float32", "float64"])
)
def test_what_a_users_layer_is_compared_with(case: tuple[type[BatchNorm1d], str], wrong: bool, dtype: str) -> None:
    """torch's class where it fits, buffers and all, and the report says so."""
    layer_class, counterpart = case
    report = report_of(renamed(layer_class.__name__, layer_class, wrong=wrong)(4), dtype)
    label = f"2 ({layer_class.__name__})"
    assert report.problem is None
    assert report.sources[0] == f"{label} is compared with {counterpart}"
    assert report.passed != wrong, str(report)
    assert [failure.name for failure in report.failures][:1] == (["2.grad_input"] if wrong else [])


def test_running_statistics_are_torchs_own_affair() -> None:
    """torch's module moves its buffers at every step; in training they don't enter the output."""
    model, loss = Sequential(Linear(3, 4, bias=False), BatchNorm1d(4), seed=1), UpstreamLoss()
    checker = GradientChecker(model, loss)
    generator = np.random.default_rng(0)
    for _ in range(3):
        with checker.recording():
            checker.run(*(generator.standard_normal((5, size)).astype(np.float32) for size in (3, 4)))
        assert checker.compare().rounding == frozenset()


@pytest.mark.parametrize(
    ("torch_class", "words"),
    [
        ("BatchNorm7d", "torch.nn has no class BatchNorm7d"),
        ("functional", "torch.nn has no class functional"),
        ("Dropout", "torch.nn.Dropout draws random numbers"),
        ("LayerNorm", "torch.nn.LayerNorm can't be made with the fields of Mine(num_features=4, eps=1e-05): "),
        ("Identity", "the parameters of torch.nn.Identity are none, the layer's weight (4,), bias (4,)"),
    ],
)
def test_a_torch_class_that_does_not_fit_is_an_error(torch_class: str, words: str) -> None:
    problem = report_of(renamed("Mine", torch_class=torch_class)(4)).problem
    assert problem is not None
    assert problem.startswith(f"2 (Mine): its torch_class doesn't fit: {words}")


@pytest.mark.parametrize("torch_class", [3, torch.nn.Identity])
def test_a_torch_class_that_is_no_name_is_an_error(torch_class: Any) -> None:
    problem = report_of(renamed("Mine", torch_class=torch_class)(4)).problem
    assert problem == (
        f"2 (Mine): its torch_class is {torch_class!r}, it must be the name of a class of torch.nn, or None"
    )


@pytest.mark.parametrize("name", ["LSTMCell", "SyncBatchNorm", "Dropout", "RReLU", "Softmax2d"])
def test_a_right_layer_may_bear_the_name_of_a_class_that_does_something_else(name: str) -> None:
    """Where that shows only when torch's class runs, the message says how to stop it."""
    report = report_of(renamed(name, Double)())
    if name == "Softmax2d":  # a class without parameters and fields: it is taken, and refuses the input
        assert report.problem is not None
        assert report.problem.startswith("2 (Softmax2d): torch.nn.Softmax2d raised ValueError: ")
        assert report.problem.endswith("; torch_class = None in the class stops this comparison")
        return
    assert report.passed, str(report)
    assert report.sources[0].startswith(f"2 ({name}) is compared with {FORWARD}; torch.nn.{name}")


def test_the_classes_that_are_random_are_those_that_are_left_out() -> None:
    """Every class of torch.nn that can be made of nothing but a size or a probability, run twice."""
    torch.manual_seed(0)
    found, sizes = set(), {"output_size": 5}
    torch_classes: list[tuple[str, Any]] = inspect.getmembers(torch.nn, inspect.isclass)
    for (name, torch_class), arguments, num_axes in itertools.product(torch_classes, [(), (2,), (0.5,)], range(4)):
        input = torch.randn(2, 2, *[8] * num_axes)
        try:
            module = torch_class(*arguments, **(sizes if "FractionalMaxPool" in name else {}))
            first, second = module(input), module(input)
        except Exception:  # it takes other arguments, or another input
            continue
        if isinstance(first, torch.Tensor) and not torch.equal(first, second):
            found.add(name)
    assert found == {*RANDOM, *FRACTIONAL}  # the latter take given numbers instead


@dataclass(eq=False)
class Centered(LayerWithBuffers):
    """output = input - mean over the batch; `returned` is what its reference returns beside the output."""

    returned: Any = None

    def buffer_shapes(self) -> dict[str, Shape]:
        return {"mean": (4,)}

    def forward(self, input: Array) -> tuple[Array, Array]:
        mean = input.mean(axis=0)
        return input - mean, mean

    def backward(self, saved: Array, grad_output: Array) -> Array:  # noqa: ARG002 - the contract's
        grad_input: Array = grad_output - grad_output.mean(axis=0)
        return grad_input

    def update_buffers(self, saved: Array) -> None:
        self.buffer.mean[...] = saved

    def reference(self, input: torch.Tensor, mean: torch.Tensor) -> Any:
        mean = input.mean(0)
        return (input - mean, {"mean": mean}) if self.returned is None else self.returned(input - mean, mean)


@pytest.mark.parametrize(
    "returned",
    [lambda output, _: output, lambda output, mean: (output, {"maen": mean}), lambda output, _: (output, {})],
)
def test_a_reference_returns_all_buffers_by_their_names(returned: Any) -> None:
    assert report_of(Centered()).agrees
    report = report_of(Centered(returned))
    assert report.problem is not None
    assert "it must return the output, and a dict of all buffers after the step: mean" in report.problem


@dataclass(eq=False)
class Scaled(Layer):
    """output = input @ weight + bias * input: parameters of its own, of which `factor` spoils a gradient."""

    factor: float = 1.0

    def parameter_shapes(self) -> dict[str, Shape]:
        return {"weight": (4, 4), "bias": (4,)}

    def reset_parameters(self, generator: np.random.Generator) -> None:
        self.param.weight[...] = generator.standard_normal((4, 4))
        self.param.bias[...] = generator.standard_normal(4)

    def forward(self, input: Array) -> tuple[Array, Array]:
        return input @ self.param.weight + self.param.bias * input, input

    def backward(self, saved: Array, grad_output: Array) -> Array:
        self.grad.weight[...] = self.factor * (saved.T @ grad_output)
        self.grad.bias[...] = (saved * grad_output).sum(axis=0)
        grad_input: Array = grad_output @ self.param.weight.T + self.param.bias * grad_output
        return grad_input


class ScaledWithReference(Scaled):
    def reference(self, input: Any, weight: Any, bias: Any) -> Any:
        return input @ weight + bias * input


@pytest.mark.parametrize("around", [WeightNorm, SpectralNorm])
@pytest.mark.parametrize("dtype", DTYPES)
def test_a_parametrized_layer_is_compared_with_the_reference_of_what_is_inside(
    around: Callable[[Layer], Layer], dtype: str
) -> None:
    report = report_of(around(ScaledWithReference()), dtype)
    assert report.passed, str(report)
    assert len(report.sources) == 1
    assert report.sources[0].endswith("_norm of ScaledWithReference's own reference")

    failures = report_of(around(ScaledWithReference(factor=1.01)), dtype).failures
    assert failures[0].name.startswith("2.grad_parametrizations.weight.original")


def test_a_parametrized_layer_with_buffers_and_without_a_reference_inside() -> None:
    """Differences, as for the one without buffers, can't stand for it."""
    report = report_of(SpectralNorm(Scaled()))
    assert str(report.problem).startswith(
        "2 (SpectralNorm): it has buffers, so that differences can't stand for it, and Scaled has no reference"
    )


def test_steps_of_a_parametrized_layer_with_a_reference_are_proven_together() -> None:
    model = Sequential(Linear(3, 4), SpectralNorm(ScaledWithReference()), WeightNorm(ScaledWithReference()), seed=1)
    trainer = Trainer(model, MSELoss(), SGD(model, lr=0.01))
    for seed in range(9):
        trainer.steps.one(*batch(seed=seed), together=True)
    trainer.flush()
    assert trainer.prover is not None
    assert trainer.prover.groups.most > 1
