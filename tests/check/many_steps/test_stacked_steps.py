"""torch's run of many steps at once: the same figures as one step at a time, whatever the steps beside it."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from composites import Backwards
from every_component import into_domain, with_each_dtype
from proving import BATCH, figures, net, points, prover_of, trained, trainer_of
from slow_cases import crossed

from nn_manual import (
    LSTM,
    SGD,
    BatchNorm1d,
    BatchNorm2d,
    BatchNorm3d,
    CausalSelfAttention,
    Conv2d,
    CrossEntropyLoss,
    Dropout,
    Flatten,
    Linear,
    MSELoss,
    Padded,
    PaddedEmbeddingBag,
    PaddedTimePool,
    Sequential,
    Tanh,
    Trainer,
)
from nn_manual.arrays import DTYPES, Array, Shape
from nn_manual.check.catalogue.input_kinds import draw
from nn_manual.check.catalogue.targets import draw_target
from nn_manual.check.catalogue.upstream import UpstreamLoss
from nn_manual.check.many_steps.waiting import Waiting
from nn_manual.data import Examples
from nn_manual.layers import Layer, LayerWithLengths
from nn_manual.layers.recurrent import Recurrent
from nn_manual.losses import Loss
from nn_manual.optim import Optimizer, StepLR
from nn_manual.registry import components, examples
from nn_manual.trainer.steps import Step

#: How far the figures may be from those of one step at a time, in tolerances: torch rounds its products otherwise.
NEAR = 0.05
NUM_STEPS = 7

LAYERS = [(layer, shape) for layer, shape in examples(components(Layer)) if shape[0] > 1]
#: Those that move biases, too.
OPTIMIZERS = [
    (each, settings) for each in components(Optimizer).values() if each.num_dims is None for settings in each.examples()
]

each_dtype = pytest.mark.parametrize("dtype", DTYPES)


def is_stackable(layer: Layer) -> bool:
    """torch.vmap has no rule for recurrent layers, for references that take one sequence after the other, and none for
    the count that a batch normalization without momentum reads.
    """
    if isinstance(layer, Recurrent | PaddedTimePool | PaddedEmbeddingBag):
        return False
    return not (isinstance(layer, BatchNorm1d | BatchNorm2d | BatchNorm3d) and layer.momentum is None)


def proven(
    make: Callable[[int], Trainer], data: Examples, batch_size: int = BATCH
) -> tuple[list[Step], list[list[Step]], str]:
    """The steps proven one by one; proven after each step, after every 3, and all together, on two threads; and why not
    together if they weren't. A step has the same row of the ring each time: another one's memory is aligned otherwise,
    and there a BLAS may round otherwise.
    """
    one_by_one, groups = trained(make(0), data, batch_size), []
    for size in (1, 3, NUM_STEPS + 1):
        trainer, steps = make(64_000_000), []
        prover_of(trainer).groups._threads = 2 if size > NUM_STEPS else 1
        for step in trainer.epoch(data, batch_size, seed=0, epoch=0):
            steps.append(step)
            if len(steps) % size == 0:
                prover_of(trainer).flush()
        groups.append(steps)
    return one_by_one, groups, prover_of(trainer).groups.reason


def assert_same(one_by_one: list[Step], groups: list[list[Step]]) -> None:
    """Near those of one step at a time, in half of the steps and more: of a gradient whose terms nearly cancel there is
    mostly rounding. Bit for bit the same, whatever steps were proven beside them.
    """
    far = []
    for step, other in zip(one_by_one, groups[0], strict=True):
        assert step.check is not None
        assert other.check is not None
        assert step.check.tensors == other.check.tensors
        far.append(np.abs(other.check.severity - step.check.severity))
    assert np.median(far, axis=0).max() < NEAR
    assert figures(groups[0]) == figures(groups[1]) == figures(groups[2])


def model_of(layer: Layer, input_shape: Shape, dtype: str, *, takes_indices: bool) -> Sequential:
    """The layer behind one that has parameters and takes numbers."""
    mixed: list[Layer] = [Linear(input_shape[-1], input_shape[-1])]
    if len(input_shape) == 4:
        mixed = [Conv2d(input_shape[1], input_shape[1], 1)]
    return Sequential(*([] if takes_indices else mixed), copy.deepcopy(layer), seed=0, dtype=dtype)


@with_each_dtype("layer, input_shape", LAYERS)
def test_of_each_layer(layer: Layer, input_shape: Shape, dtype: str) -> None:
    generator, batch_size = np.random.default_rng(0), 2 * input_shape[0]
    shape = batch_size * NUM_STEPS, *input_shape[1:]
    array = draw("random", shape, dtype, generator, layer.domain)
    input: Array | Padded = array
    if isinstance(layer, LayerWithLengths):
        input = Padded(array, generator.integers(1, shape[1] + 1, len(array)))

    def model() -> Sequential:
        return model_of(layer, input_shape, dtype, takes_indices=array.dtype.kind == "i")

    output_shape = model().layers[-1].output_shape((batch_size, *input_shape[1:]))
    rows = output_shape[0] * NUM_STEPS
    if rows != len(input):
        pytest.skip("examples are no rows of its output")
    target = draw("random", (rows, *output_shape[1:]), dtype, generator)

    def make(memory: int) -> Trainer:
        made = model()
        return Trainer(made, UpstreamLoss(), SGD(made, lr=1e-4), check_memory=memory)

    one_by_one, groups, reason = proven(make, Examples(input, target), batch_size)
    assert (reason == "") == is_stackable(layer), reason
    assert_same(one_by_one, groups)


@each_dtype
@pytest.mark.parametrize("input_shape", [(4, 2, 7), (8, 7), (4, 3, 5)])
def test_of_gradients_that_fill_no_line_of_the_cache(input_shape: Shape, dtype: str) -> None:
    """A BLAS may round otherwise where the memory of a product begins within a line."""
    test_of_each_layer(Tanh(), input_shape, dtype)


@with_each_dtype("loss", [(loss,) for loss in examples(components(Loss))])
def test_of_each_loss(loss: Loss, dtype: str) -> None:
    generator = np.random.default_rng(0)
    data = points(NUM_STEPS, dtype)
    data = Examples(data.input, draw_target(loss, "random", (len(data.input), 5), dtype, generator))

    def make(memory: int) -> Trainer:
        model = Sequential(Linear(3, 4), Tanh(), Linear(4, 5), *into_domain(loss), seed=0, dtype=dtype)
        return Trainer(model, loss, SGD(model, lr=0.01), check_memory=memory)

    one_by_one, groups, reason = proven(make, data)
    if isinstance(loss, CrossEntropyLoss) and loss.weight and loss.label_smoothing and loss.reduction == "mean":
        assert "masked_select" in reason  # torch.vmap has no rule for it
    else:
        assert reason == ""
    assert_same(one_by_one, groups)


def test_of_a_composite_that_runs_its_children_in_another_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each step passes together with others."""

    def make(memory: int) -> Trainer:
        layer = Backwards(Sequential(Linear(3, 3), Tanh()), Linear(3, 3))
        return trainer_of(Sequential(Linear(3, 3), layer, seed=0), memory=memory)

    one_by_one, groups, reason = proven(make, points(NUM_STEPS))
    assert reason == ""
    assert_same(one_by_one, groups)
    monkeypatch.setattr(Waiting, "prove_alone", None)
    trained(make(64_000_000), points(NUM_STEPS))


@pytest.mark.parametrize("clip", [None, pytest.param(0.1, marks=pytest.mark.slow)])
@with_each_dtype("optimizer_class, settings", OPTIMIZERS)
def test_of_each_optimizer(optimizer_class: Any, settings: dict[str, Any], clip: float | None, dtype: str) -> None:
    def make(memory: int) -> Trainer:
        model = net(dtype)
        groups: list[dict[str, Any]] = [{"parameters": "*.bias", "lr": 0.02}]
        if "weight_decay" in optimizer_class.setting_names():
            groups[0]["weight_decay"] = 0.0
        optimizer = optimizer_class(model, groups=groups, **{"lr": 0.05, **settings})
        schedule = StepLR(2, 0.5)
        return Trainer(model, MSELoss(), optimizer, clip, schedule, lr_step="step", check_memory=memory)

    one_by_one, groups, reason = proven(make, points(NUM_STEPS, dtype))
    assert reason == ""
    assert_same(one_by_one, groups)


@pytest.mark.parametrize(("clip", "dtype"), crossed([None, 0.1], list(DTYPES)))
@pytest.mark.parametrize(
    ("name", "sum_name"),
    [
        ("weight", "0.grad_weight + 1.grad_weight"),
        ("out_proj.weight", "0.grad_out_proj.weight + 1.grad_out_proj.weight"),
    ],
)
def test_of_shared_parameters(name: str, sum_name: str, clip: float | None, dtype: str) -> None:
    """A name with a dot, too: the gradient's name has it."""
    shape = (8 * NUM_STEPS, 3, 4)
    generator = np.random.default_rng(0)
    data = Examples(*(generator.standard_normal(shape).astype(dtype) for _ in range(2)))

    def make(memory: int) -> Trainer:
        layers = [Linear(4, 4) if name == "weight" else CausalSelfAttention(4, 2) for _ in range(2)]
        model = Sequential(*layers, tied=[(f"0.{name}", f"1.{name}")], seed=0, dtype=dtype)
        return trainer_of(model, memory=memory, clip_grad_norm=clip)

    one_by_one, groups, reason = proven(make, data, 8)
    assert reason == ""
    assert groups[0][0].check is not None
    assert (sum_name in groups[0][0].check.tensors) == (clip is None)
    assert_same(one_by_one, groups)


@pytest.mark.parametrize("batch_size", [5, 8, 33])
def test_of_layers_that_lay_steps_side_by_side(batch_size: int) -> None:
    """Batch normalization: its gradient comes back with the features of all steps in a row."""
    generator = np.random.default_rng(0)
    data = Examples(*(generator.standard_normal((batch_size * 6, 4)).astype("float32") for _ in range(2)))

    def make(memory: int) -> Trainer:
        layers = Linear(4, 8), BatchNorm1d(8), Tanh(), Dropout(0.2), Linear(8, 4)
        return trainer_of(Sequential(*layers, seed=0), memory=memory)

    _, groups, reason = proven(make, data, batch_size)
    assert reason == ""
    assert figures(groups[0]) == figures(groups[1]) == figures(groups[2])


def test_a_function_that_torch_has_no_rule_for_is_named() -> None:
    model = Sequential(LSTM(3, 2, batch_first=True), Flatten(), seed=0)
    generator = np.random.default_rng(0)
    data = Examples(*(generator.standard_normal((20, *shape)).astype("float32") for shape in ((2, 3), (4,))))
    trainer = trainer_of(model)
    checks = [step.check for step in trained(trainer, data)]
    assert all(check is not None and check.proven for check in checks)
    problem = "RuntimeError: Batching rule not implemented for aten::"
    assert prover_of(trainer).groups.reason.startswith(f"0 (LSTM) under torch.vmap raised {problem}")
