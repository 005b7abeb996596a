"""Scripts with each layer, loss and optimizer of the package give the step's bits, for two sizes of the batch."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

import every_component
import numpy as np
import pytest
from every_component import (
    LOSSES,
    OPTIMIZERS,
    a_whole_net,
    each,
    for_optimizer,
    into_domain,
    of_layer,
    with_each_dtype,
)

from nn_manual import (
    SGD,
    AdamW,
    AdaptiveAvgPool2d,
    BatchNorm1d,
    CrossEntropyLoss,
    Flatten,
    LayerNorm,
    Linear,
    MSELoss,
    Sequential,
    Tanh,
    Upsample,
)
from nn_manual.arrays import Array, Shape
from nn_manual.check.catalogue.targets import draw_target, probabilities
from nn_manual.layers import Layer
from nn_manual.losses import Loss
from nn_manual.optim import Optimizer
from nn_manual.optim.clipping import NormClipping
from nn_manual.unroll.command import proven_script
from nn_manual.unroll.sections import Subject

#: All layers, without those whose first dimension isn't the batch.
LAYERS = [
    (layer, shape)
    for layer, shape in every_component.LAYERS
    if getattr(layer, "batch_first", True) and getattr(layer, "start_dim", 1)
]
#: The number of examples in the largest batch, and in the smaller one that is compared, too.
SIZES = 6, 3


def page_of(model: Sequential, loss: Loss, optimizer: Optimizer, input: Array, target: Array) -> str:
    kind = "indices" if target.dtype.kind == "i" else "probabilities"
    subject = Subject("a test", model, loss, optimizer, kind, None, NormClipping(0.3))
    _, text = proven_script(subject, [(input[:size], target[:size]) for size in SIZES], num_steps=20)
    return text


#: Matrices of more than a hundred numbers, each with the functions on the page that make them.
RESAMPLING = [
    (Upsample(scale_factor=2, mode="linear"), (2, 69), ["linear_matrix(69, 138, 0.5, 0.5, "]),
    (Upsample(31, mode="linear"), (2, 13), ["linear_matrix(13, 31, "]),
    (Upsample([7, 40], mode="bilinear", align_corners=True), (2, 30, 9), ["(30, 7, ", "(9, 40, 0.2051282051282051"]),
    (Upsample(scale_factor=2.5, mode="bicubic"), (2, 8, 12), ["cubic_matrix(8, 20, 0.4, ", "cubic_matrix(12, 30, "]),
    (Upsample(25, mode="bicubic", align_corners=True), (2, 8, 12), ["cubic_matrix(8, 25, ", "cubic_matrix(12, 25, "]),
    (Upsample(41), (2, 12), ["nearest_matrix(12, 41, "]),
    (AdaptiveAvgPool2d([4, 9]), (2, 30, 40), ["mean_matrix(30, 4, ", "mean_matrix(40, 9, "]),
]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("layer", "shape", "calls"), RESAMPLING, ids=[str(case[2][0]) for case in RESAMPLING])
def test_large_matrices_are_made_by_a_few_lines(layer: Layer, shape: Shape, calls: list[str], dtype: str) -> None:
    """The script has the step's bits, or `page_of` would refuse it; no line has a hundred numbers."""
    model = Sequential(copy.deepcopy(layer), Flatten(), dtype=dtype, seed=0)
    input = np.random.default_rng(0).standard_normal((6, *shape)).astype(dtype)
    target = np.zeros(model.output_shape(input.shape), dtype)
    text = page_of(model, MSELoss(), SGD(model, lr=0.1), input, target)
    assert [call for call in calls if call not in text] == []
    assert len(text) < 6000
    assert max(map(len, text.splitlines())) <= 120


@with_each_dtype("layer, shape", LAYERS)
def test_each_layer(layer: Layer, shape: Shape, dtype: str) -> None:
    model, [(input, target)] = of_layer(layer, (SIZES[0], *shape[1:]), dtype, 1)
    text = page_of(model, MSELoss(), AdamW(model, lr=0.01), input, target)
    assert "as_strided" not in text
    assert "nn_manual" not in text


@each("loss", [(loss,) for loss in LOSSES])
def test_each_loss(loss: Loss) -> None:
    generator = np.random.default_rng(0)
    model = Sequential(Linear(4, 5), *into_domain(loss), seed=0)
    input = generator.standard_normal((6, 4), np.float32)
    targets = [draw_target(loss, "random", (6, 5), "float32", generator)]
    if isinstance(loss, CrossEntropyLoss) and loss.ignore_index < 0:
        targets.append(probabilities("random", (6, 5), "float32", generator))
    for target in targets:
        page_of(model, loss, SGD(model, lr=0.1), input, target)


def test_a_whole_net() -> None:
    """Shared weights, layers in layers, buffers, random numbers, groups."""
    model, generator = a_whole_net(), np.random.default_rng(0)
    optimizer = AdamW(model, lr=0.01, groups=[{"parameters": "*.bias", "weight_decay": 0, "lr": 0.1}])
    input, target = generator.standard_normal((6, 6), np.float32), generator.integers(0, 7, 6)
    text = page_of(model, CrossEntropyLoss(), optimizer, input, target)
    lines = [line.strip() for line in text.splitlines()]
    for line in (
        "output_1 = output_0 + output_1_3",
        "output_1_3 = output_1_2 * mask_1_3",
        "output_2_2 = np.tanh(output_2_1)",
        "output_1_1 = output_1_0 @ weight_0.T",
        "grad_weight_shared += grad_weight_0",
        "# AdamW, of the parameters *.bias",
    ):
        assert line in lines


@pytest.mark.slow
def test_many_layers_of_one_kind_are_functions() -> None:
    """It alone unrolls many layers of one kind."""
    model = Sequential(*(layer for _ in range(20) for layer in (Linear(4, 4), Tanh(), LayerNorm(4))), seed=0)
    generator = np.random.default_rng(0)
    input, target = (generator.standard_normal((6, 4), np.float32) for _ in range(2))
    text = page_of(model, MSELoss(), SGD(model, lr=0.1), input, target)
    functions = [line.partition("(")[0] for line in text.splitlines() if line.startswith("def ")]
    names = ["tanh", "tanh_backward", "layer_norm", "layer_norm_backward", "linear", "linear_backward", "train_step"]
    assert functions == [f"def {name}" for name in names]
    assert "    output_3 = linear(output_2, weight_3, bias_3)" in text.splitlines()


@each("optimizer, settings", OPTIMIZERS)
def test_each_optimizer(optimizer: Any, settings: dict[str, Any]) -> None:
    model, [(input, target)] = for_optimizer(optimizer, "float32", 1, SIZES[0])
    text = page_of(model, MSELoss(), optimizer(model, **settings), input, target)
    assert " + 0.0" not in text


class Shifted(BatchNorm1d):
    """output = as BatchNorm1d's; the running mean moves towards another mean"""

    def update_buffers(self, saved: tuple[Array, ...]) -> None:
        normalized, _, mean, variance = saved
        self._move(mean + normalized.max(), variance, len(normalized))


def test_what_the_buffers_need_too_is_no_part_of_what_is_saved() -> None:
    layers = (layer for _ in range(6) for layer in (Linear(4, 4), Shifted(4), Tanh()))
    generator = np.random.default_rng(0)
    input, target = (generator.standard_normal((6, 4), np.float32) for _ in range(2))
    model = Sequential(*layers, seed=0)
    lines = page_of(model, MSELoss(), SGD(model, lr=0.1), input, target).splitlines()
    assert "def shifted_backward(normalized, weight, deviation, grad_output):" in lines
    outputs = "output_1, mean_1, variance_1, deviation_1, normalized_1"
    assert f"    {outputs} = shifted(output_0, weight_1, bias_1)" in lines


@dataclass(eq=False)
class Unit(Layer):
    """output = input / norm of each row, from a spectrum, whose function isn't in np itself"""

    def forward(self, input: Array) -> tuple[Array, Array]:
        norm = np.linalg.norm(input, axis=1, keepdims=True)
        return np.fft.irfft(np.fft.rfft(input / norm), input.shape[1]).astype(input.dtype), norm

    def backward(self, saved: Array, grad_output: Array) -> Array:  # not the gradient: the script must only do the same
        return grad_output / saved


def test_functions_of_numpys_modules() -> None:
    generator = np.random.default_rng(0)
    input, target = (generator.standard_normal((6, 4), np.float32) for _ in range(2))
    model = Sequential(Linear(4, 4), Unit(), seed=0)
    text = page_of(model, MSELoss(), SGD(model, lr=0.1), input, target)
    assert "np.linalg.norm(output_0, axis=1, keepdims=True)" in text
    assert "np.fft.irfft(np.fft.rfft(" in text


@dataclass(eq=False)
class Picked(Layer):
    """output = input[:, places]. Backward adds up the gradients of places that occur twice."""

    places: tuple[int, ...] = (0, 2, 2)

    def output_shape(self, input_shape: Shape) -> Shape:
        return input_shape[0], len(self.places)

    def forward(self, input: Array) -> tuple[Array, Array]:
        return input[:, list(self.places)], input

    def backward(self, saved: Array, grad_output: Array) -> Array:
        grad_input = np.zeros_like(saved)
        np.add.at(grad_input, (slice(None), list(self.places)), grad_output)  # type: ignore[arg-type] # NumPy takes it
        return grad_input


def test_indices_of_several_parts() -> None:
    generator = np.random.default_rng(0)
    input, target = generator.standard_normal((6, 4), np.float32), generator.standard_normal((6, 3), np.float32)
    model = Sequential(Linear(4, 4), Picked(), seed=0)
    lines = [line.strip() for line in page_of(model, MSELoss(), SGD(model, lr=0.1), input, target).splitlines()]
    assert "output_1 = output_0[:, [0, 2, 2]]" in lines
    assert "np.add.at(grad_input_1, (slice(None), [0, 2, 2]), grad_prediction)" in lines


@dataclass(eq=False)
class Solved(Layer):
    """output = inverse(matrix) @ input for each example; in each row, later elements are added to earlier ones."""

    size: int

    def parameter_shapes(self) -> dict[str, Shape]:
        return {"matrix": (self.size, self.size)}

    def reset_parameters(self, generator: np.random.Generator) -> None:
        self.param.matrix[...] = np.eye(self.size) + 0.1 * generator.standard_normal((self.size, self.size))

    def forward(self, input: Array) -> tuple[Array, Array]:
        solved = np.linalg.solve(self.param.matrix, input.T).T
        return solved[:, ::-1].cumsum(axis=1)[:, ::-1], solved

    def backward(self, saved: Array, grad_output: Array) -> Array:
        grad_input: Array = np.linalg.solve(self.param.matrix.T, grad_output.cumsum(axis=1).T).T
        self.grad.matrix[...] = -grad_input.T @ saved
        return grad_input


def test_a_matrix_that_must_have_an_inverse_and_rows_that_are_turned_around() -> None:
    generator = np.random.default_rng(0)
    input, target = (generator.standard_normal((6, 4), np.float32) for _ in range(2))
    model = Sequential(Linear(4, 4), Solved(4), seed=0)
    lines = [line.strip() for line in page_of(model, MSELoss(), SGD(model, lr=0.1), input, target).splitlines()]
    assert "solve_1 = np.linalg.solve(matrix_1, output_0.T)" in lines
    assert "output_1 = np.cumsum(solved_1[:, ::-1], axis=1)[:, ::-1]" in lines


@dataclass(eq=False)
class Scaled(Layer):
    """output = input / std of each feature, with the standard deviation of a sample"""

    def forward(self, input: Array) -> tuple[Array, tuple[Array, Array]]:
        std = input.std(axis=0, ddof=1)
        return input / std, (input, std)

    def backward(self, saved: tuple[Array, Array], grad_output: Array) -> Array:
        input, std = saved
        grad_std = -(grad_output * input).sum(axis=0) / (std * std)
        grad_input: Array = grad_output / std + grad_std * (input - input.mean(axis=0)) / ((len(input) - 1) * std)
        return grad_input


def test_one_less_than_the_batch() -> None:
    generator = np.random.default_rng(0)
    input, target = (generator.standard_normal((6, 4), np.float32) for _ in range(2))
    model = Sequential(Linear(4, 4), Scaled(), seed=0)
    text = page_of(model, MSELoss(), SGD(model, lr=0.1), input, target)
    assert "np.divide(std_1, np.int64(batch - 1)," in text
