"""The replay of a traced step gives the same bits as the trainer's step."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from every_component import (
    LAYERS,
    LOSSES,
    OPTIMIZERS,
    Batches,
    a_whole_net,
    each,
    for_optimizer,
    of_layer,
    of_loss,
    with_each_dtype,
)

from nn_manual import (
    SGD,
    AdamW,
    CrossEntropyLoss,
    Linear,
    MSELoss,
    PaddedLSTM,
    Residual,
    Sequential,
    Trainer,
)
from nn_manual.arrays import Array, Shape
from nn_manual.layers import Layer
from nn_manual.layers.composite import counter_names
from nn_manual.losses import Loss
from nn_manual.optim.clipping import NormClipping
from nn_manual.trace.comparing import LOST
from nn_manual.trace.methods import OF_VALUE
from nn_manual.trace.numpy_replay import replay
from nn_manual.trace.step import trace_slice, trace_step, trace_update
from nn_manual.trace.step_arrays import given
from nn_manual.trace.trace import CannotTrace


def check_replays(trainer: Trainer, batches: Batches) -> None:
    """After two steps, the next step is traced on the third batch, and replayed on the batches that follow."""
    model, optimizer = trainer.model, trainer.optimizer
    for batch in batches[:2]:
        trainer.train_step(*batch)
    model.num_steps += 1  # as in the step itself
    trace = trace_step(model, trainer.loss, optimizer, *batches[2], trainer.clipping)
    for batch in batches[3:]:
        before = {name: array.copy() for name, array in given(model, optimizer, *batch).items()}
        after = replay(trace, before)
        model.num_steps -= 1
        loss = trainer.train_step(*batch).loss
        assert float(after["loss"]) == loss
        buffers = {name: np.ravel(buffer) for name, buffer in vars(model.buffer).items()}
        counts = [buffers.pop(name) for name in counter_names(model)]
        expected = {"param": model.param_arena, "grad": model.grad_arena, **optimizer.vectors}
        expected |= {"buffer": np.concatenate([[], *buffers.values()]), "counters": np.concatenate([[], *counts])}
        for name, array in expected.items():
            np.testing.assert_array_equal(after[name], array, err_msg=name)
        for name, array in before.items():
            is_kept = name in expected or name.endswith("grad of this use")
            assert is_kept or after[name].tobytes() == array.tobytes(), f"{name} is written to"


@with_each_dtype("layer, shape", LAYERS)
def test_each_layer(layer: Layer, shape: Shape, dtype: str) -> None:
    model, batches = of_layer(layer, shape, dtype, 5)
    trainer = Trainer(model, MSELoss(), AdamW(model, lr=0.01), clip_grad_norm=0.3, check_every=0)
    check_replays(trainer, batches)


@each("loss", [(loss,) for loss in LOSSES])
def test_each_loss(loss: Loss) -> None:
    model, batches = of_loss(loss, 5)
    check_replays(Trainer(model, loss, SGD(model, lr=0.1), check_every=0), batches)


@with_each_dtype("optimizer, settings", OPTIMIZERS)
def test_each_optimizer(optimizer: Any, settings: dict[str, Any], dtype: str) -> None:
    model, batches = for_optimizer(optimizer, dtype, 5)
    check_replays(Trainer(model, MSELoss(), optimizer(model, **settings), check_every=0), batches)


def test_a_whole_net() -> None:
    """Shared weights, buffers, random numbers, groups, clipping."""
    model, generator = a_whole_net(), np.random.default_rng(0)
    optimizer = AdamW(model, lr=0.01, groups=[{"parameters": "*.bias", "weight_decay": 0, "lr": 0.1}])
    batches = [(generator.standard_normal((9, 6), np.float32), generator.integers(0, 7, 9)) for _ in range(6)]
    check_replays(Trainer(model, CrossEntropyLoss(), optimizer, clip_grad_norm=0.5, check_every=0), batches)


def test_nothing_moves_and_each_operation_knows_where_it_stands() -> None:
    model = a_whole_net()
    optimizer = AdamW(model, lr=0.01)
    arrays = [model.param_arena, model.grad_arena, *vars(model.buffer).values(), *optimizer.vectors.values()]
    before = [array.copy() for array in arrays]
    batch = np.ones((7, 6), np.float32), np.arange(7)
    trace = trace_step(model, CrossEntropyLoss(), optimizer, *batch)
    assert all(np.array_equal(array, kept) for array, kept in zip(arrays, before, strict=True))
    owners = list(dict.fromkeys(operation.place.owner for operation in trace.operations))
    names = ["0 (Linear)", "1.0 (LayerNorm)", "1.1 (Linear)", "1.2 (GELU)", "1.3 (Dropout)", "1 (Residual)"]
    names += ["2.0 (Linear)", "2.1 (BatchNorm1d)", "2.2 (Tanh)", "3 (Linear)", "4 (Linear)", "loss"]
    assert owners == [*names, "model", "optimizer"]
    (tanh,) = (each for each in trace.operations if each.name == "tanh" and "Tanh" in each.place.owner)
    assert str(tanh.place).startswith("2.2 (Tanh).forward, nn_manual/layers/activations.py:")


def test_a_slice_and_an_update_are_together_a_step() -> None:
    """The trace of a slice writes gradients alone; the trace of an update takes them. Neither moves the buffers."""
    model, generator = a_whole_net(), np.random.default_rng(0)
    optimizer = AdamW(model, lr=0.01, groups=[{"parameters": "*.bias", "weight_decay": 0, "lr": 0.1}])
    batch = generator.standard_normal((9, 6), np.float32), generator.integers(0, 7, 9)
    loss = CrossEntropyLoss()
    clipping = NormClipping(0.5)
    whole, of_slice = trace_step(model, loss, optimizer, *batch, clipping), trace_slice(model, loss, optimizer, *batch)
    update = trace_update(model, loss, optimizer, clipping)
    before = given(model, optimizer, *batch)
    expected = replay(whole, before)
    after_slice = replay(of_slice, before)
    assert after_slice["loss"] == expected["loss"]
    for name in ("param", "buffer", "counters"):
        assert after_slice[name].tobytes() == before[name].tobytes(), name
    assert {"input", "target", "buffer"}.isdisjoint(each.name for each in update.storages)
    after = replay(update, before | {"grad": after_slice["grad"]})
    for name in ("param", "grad", *optimizer.vectors):
        np.testing.assert_array_equal(after[name], expected[name], err_msg=name)


@dataclass(eq=False)
class Own(Layer):
    """A layer that does what can't be traced."""

    what: str = ""

    def forward(self, input: Array) -> tuple[Array, Array]:
        if self.what == "branch" and input.sum() > 0:
            return input, input
        if self.what == "number":
            return input * float(input.max()), input
        if self.what == "lost":
            plain = np.zeros(input.shape, input.dtype)
            plain[:] = input
            return input + plain, input
        if self.what == "shape":
            return input[input > 0].sum() + input, input
        if self.what == "resize":
            input.resize(12)
        return input, input

    def backward(self, saved: Array, grad_output: Array) -> Array:
        grad_input: Array = grad_output + 0 * saved
        return grad_input

    def reference(self, input: Any) -> Any:
        return input


LINE = Own.forward.__code__.co_firstlineno


@pytest.mark.parametrize(
    ("what", "line", "message"),
    [
        ("branch", 1, OF_VALUE),
        ("number", 4, OF_VALUE),
        ("lost", 8, f"add takes {LOST}"),
        ("shape", 10, "an array picked by a mask has a shape that depends on values: use np.where"),
        ("resize", 12, "ndarray.resize isn't traced"),
    ],
)
def test_what_can_not_be_traced_is_named(what: str, line: int, message: str) -> None:
    model = Sequential(Linear(3, 3), Own(what), seed=0)
    batch = np.ones((4, 3), np.float32), np.ones((4, 3), np.float32)
    with pytest.raises(CannotTrace) as error:
        trace_step(model, MSELoss(), SGD(model, lr=0.1), *batch)
    assert str(error.value) == f"1 (Own).forward, test_step.py:{LINE + line}: {message}"


def test_a_layer_that_heeds_lengths_is_named_with_its_number() -> None:
    model = Sequential(Linear(3, 3), Residual(PaddedLSTM(3, 3)), seed=0)
    batch = np.ones((4, 5, 3), np.float32), np.ones((4, 5, 3), np.float32)
    with pytest.raises(CannotTrace, match=r"^1\.0 \(PaddedLSTM\) heeds lengths, which a trace doesn't take$"):
        trace_step(model, MSELoss(), SGD(model, lr=0.1), *batch)


@dataclass(eq=False)
class Stale(SGD):
    """SGD that takes a number from the settings: a step that is traced once would keep it."""

    what: str = "lr"

    def move(
        self, param: Array, grad: Array, vectors: Mapping[str, Array], coefficients: Mapping[str, Array]  # noqa: ARG002
    ) -> None:
        param -= getattr(self, self.what) * grad


@pytest.mark.parametrize("what", ["lr", "momentum"])
def test_what_a_schedule_moves_must_come_from_the_coefficients(what: str) -> None:
    model = Sequential(Linear(3, 3), seed=0)
    with pytest.raises(CannotTrace) as error:
        trace_update(model, MSELoss(), Stale(model, lr=0.1, momentum=0.9, what=what))
    place = f"optimizer.move, test_step.py:{Stale.move.__code__.co_firstlineno + 3}"
    assert str(error.value) == f"{place}: multiply takes {LOST}"


def test_a_replay_takes_what_the_step_takes() -> None:
    model = Sequential(Linear(3, 2), seed=0)
    optimizer = SGD(model, lr=0.1)
    batch = np.ones((4, 3), np.float32), np.ones((4, 2), np.float32)
    trace, arrays = trace_step(model, MSELoss(), optimizer, *batch), given(model, optimizer, *batch)
    with pytest.raises(ValueError, match="input takes 48 bytes, not 36"):
        replay(trace, arrays | {"input": np.ones((3, 3), np.float32)})
    with pytest.raises(KeyError, match="target"):
        replay(trace, {name: array for name, array in arrays.items() if name != "target"})
