"""How layers treat their noise, their buffers and what a step leaves behind: each that misbehaves is named."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from nets import batch
from problems import problem_and_place
from stateful import Averaged, Center, Drop, model_of

from nn_manual import SGD, GradientMismatch, Layer, MSELoss, Trainer, check_gradients
from nn_manual.arrays import DTYPES, Array


class InferScalesItsInput(Drop):
    def infer(self, input: Array) -> Array:
        input *= 1 / (1 - self.p)
        return input


class InferMapsItsInput(Drop):
    """Which changes nothing the second time."""

    def infer(self, input: Array) -> Array:
        return np.maximum(input, 0, out=input)

    def infer_reference(self, input: Any) -> Any:
        return input.clamp(min=0)


class InferMovesTheBuffer(Center):
    def infer(self, input: Array) -> Array:
        self.buffer.mean[...] = input.mean(axis=0)
        return super().infer(input)


class InferReplacesTheBuffer(Center):
    def infer(self, input: Array) -> Array:
        self.buffer.mean = self.buffer.mean + 0
        return super().infer(input)


class InferMovesTheWeight(Averaged):
    def infer(self, input: Array) -> Array:
        self.param.weight[...] = self.buffer.average
        return super().infer(input)


class InferUsesTheNoise(Drop):
    def infer(self, input: Array) -> Array:
        return self.forward(input)[0]

    def infer_reference(self, input: Any) -> Any:
        return input * 0


class InferUsesTheLastMean(Center):
    def forward(self, input: Array) -> tuple[Array, Any]:
        output, self.last = super().forward(input)
        return output, self.last

    def infer(self, input: Array) -> Array:
        output: Array = input - self.last
        return output


class InferUsesTheMeanOfAll(InferUsesTheLastMean):
    """The same for the same numbers in other places."""

    def infer(self, input: Array) -> Array:
        output: Array = input - self.last.mean()
        return output


class InferCounts(Drop):
    numbers: Iterator[int] = count(1)

    def infer(self, input: Array) -> Array:
        return input * np.float32(next(self.numbers))


class InferReturnsABuffer(Drop):
    def infer(self, input: Array) -> Array:
        vars(self).setdefault("memory", np.zeros_like(input))[...] = input
        result: Array = vars(self)["memory"]
        return result


class InferReturnsNothing(Drop):
    def infer(self, input: Array) -> Any:
        """Nothing."""


LEFT_BEHIND = (
    "infer uses what a training step left behind, its noise or something on the layer: it may use its input, "
    "parameters and buffers"
)

INFERS: list[tuple[type[Layer], str]] = [
    (InferScalesItsInput, "infer wrote into its input"),
    (InferMapsItsInput, "infer wrote into its input"),
    (InferMovesTheBuffer, "infer wrote into buffer.mean"),
    (InferReplacesTheBuffer, "infer replaced buffer.mean: it may only be read"),
    (InferMovesTheWeight, "infer wrote into param.weight"),
    (InferUsesTheNoise, LEFT_BEHIND),
    (InferUsesTheLastMean, LEFT_BEHIND),
    (InferUsesTheMeanOfAll, LEFT_BEHIND),
    (InferCounts, "infer is not deterministic: run twice on the same, its output differs"),
    (InferReturnsABuffer, "run again on other values, it overwrote what infer returned"),
    (InferReturnsNothing, "infer must return an array, it returned NoneType"),
]


class DrawsFromElsewhere(Drop):
    elsewhere = np.random.default_rng(0)

    def draw_noise(self, generator: Any) -> None:  # noqa: ARG002 - that is its fault
        super().draw_noise(self.elsewhere)


class DrawsTheSame(Drop):
    def draw_noise(self, generator: Any) -> None:  # noqa: ARG002 - that is its fault
        super().draw_noise(np.random.default_rng(0))


class ReplacesTheMask(Drop):
    def draw_noise(self, generator: Any) -> None:
        self.noise.mask = (generator.random(self.noise.mask.shape) >= self.p).astype(np.float32)


class BackwardReadsTheNoise(Drop):
    def forward(self, input: Array) -> tuple[Array, Any]:
        return input * self.noise.mask, None

    def backward(self, saved: Any, grad_output: Array) -> Array:  # noqa: ARG002 - that is its fault
        grad_input: Array = grad_output * self.noise.mask
        return grad_input


NOISES: list[tuple[type[Layer], str]] = [
    (
        DrawsFromElsewhere,
        "draw_noise is not deterministic: run twice on the same generator, noise.mask differs: draw from the "
        "generator alone",
    ),
    (DrawsTheSame, "draw_noise draws the same in every step: draw from the generator"),
    (ReplacesTheMask, "draw_noise replaced noise.mask: write into it, noise.mask[...] = ..."),
    (
        BackwardReadsTheNoise,
        "backward uses what another forward left behind, grad_input differs after several forwards: what backward "
        "needs must travel in `saved`",
    ),
]


class UpdateMovesTheWeight(Averaged):
    def update_buffers(self, saved: Any) -> None:
        super().update_buffers(saved)
        self.param.weight *= np.float32(0.5)


class UpdateScalesTheGradient(Averaged):
    def update_buffers(self, saved: Any) -> None:
        super().update_buffers(saved)
        self.grad.weight *= np.float32(2)


class UpdateClearsItsInput(Averaged):
    def update_buffers(self, saved: Any) -> None:
        super().update_buffers(saved)
        saved[...] = 0


class UpdateClearsSaved(Center):
    def update_buffers(self, saved: Any) -> None:
        super().update_buffers(saved)
        saved[...] = 0


class UpdateReplaces(Center):
    def update_buffers(self, saved: Any) -> None:
        self.buffer.mean = (self.buffer.mean + (saved - self.buffer.mean) / 10).astype(np.float32)


UPDATES: list[tuple[type[Layer], str]] = [
    (UpdateMovesTheWeight, "update_buffers wrote into param.weight"),
    (UpdateScalesTheGradient, "update_buffers wrote into grad.weight"),
    (UpdateClearsItsInput, "update_buffers wrote into its input"),
    (UpdateClearsSaved, "update_buffers wrote into what forward saved"),
    (UpdateReplaces, "update_buffers replaced buffer.mean: write into it, buffer.mean[...] = ..."),
]


@pytest.mark.parametrize(("layer_class", "words"), [*INFERS, *NOISES, *UPDATES])
def test_what_misbehaves_is_named(layer_class: type[Layer], words: str) -> None:
    problem, file, _ = problem_and_place(check_gradients(model_of(layer_class()), MSELoss(), *batch()))
    assert problem == f"1 ({layer_class.__name__}): {words}"
    assert file == Path(__file__)


class UpdatesNothing(Center):
    def update_buffers(self, saved: Any) -> None:
        """Nothing."""


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_buffer_that_stays_is_no_gradient_that_was_not_passed_on(dtype: str) -> None:
    report = check_gradients(model_of(UpdatesNothing(), dtype), MSELoss(), *batch(dtype))
    assert report.failures[0].name == "1.mean"
    assert report.diagnosis == "update_buffers left it as it was"


@pytest.mark.parametrize(("layer_class", "words"), [each for each in UPDATES if each[0] is not UpdateClearsSaved])
def test_in_training_neither_the_optimizer_nor_another_layer_is_blamed(layer_class: type[Layer], words: str) -> None:
    model = model_of(layer_class())
    trainer = Trainer(model, MSELoss(), SGD(model, lr=0.1))
    with pytest.raises(GradientMismatch) as caught:
        trainer.train_step(*batch())
    assert problem_and_place(caught.value.report)[0] == f"1 ({layer_class.__name__}): {words}"
