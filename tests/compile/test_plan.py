"""A plan computes the same as the replay of its trace, except for rounding."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
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
from slow_cases import crossed

from nn_manual import (
    GELU,
    SGD,
    AdamW,
    CrossEntropyLoss,
    LayerNorm,
    Linear,
    MSELoss,
    ReLU,
    Sequential,
    Softmax,
    Tanh,
    Trainer,
)
from nn_manual.arrays import Array, Shape
from nn_manual.compile.compile_step import compile_trace
from nn_manual.compile.plan import Done, Plan, first_buffers, persistent
from nn_manual.layers import Layer
from nn_manual.losses import CTCLoss, Loss, MultiLabelMarginLoss
from nn_manual.trace.numpy_replay import replay
from nn_manual.trace.step import trace_step
from nn_manual.trace.step_arrays import given

#: How far a number may be from the replay's, in units of eps times the array's largest number: the order of sums
#: differs, and a step has several sums in a row. The worst that was seen is 3.
TOLERANCE = 32

def compiled(trainer: Trainer, batch: tuple[Array, Array]) -> tuple[Any, Plan]:
    """The trace of the next step, and its plan."""
    model, optimizer = trainer.model, trainer.optimizer
    model.num_steps += 1  # as in the step itself
    trace = trace_step(model, trainer.loss, optimizer, *batch, trainer.clipping)
    model.num_steps -= 1
    return trace, compile_trace(trace, model, optimizer, print)


def run_one(plan: Plan, arrays: Mapping[str, Array]) -> Done:
    """Run the plan for one step."""
    own = {name: np.ascontiguousarray(arrays[name])[np.newaxis] for name in plan.program.of_steps}
    return plan.run(own.pop("input"), own.pop("target"), own)


def states(trainer: Trainer, shapes: Mapping[str, Array]) -> Iterator[tuple[str, Array]]:
    """The arrays that stay, in the forms of the given ones."""
    for name, array in persistent(trainer.model, trainer.optimizer, first_buffers(trainer.model)).items():
        if array.size and name in shapes:
            like = shapes[name]
            memory = np.lib.stride_tricks.as_strided(array.reshape(-1), (like.size,), (like.itemsize,))
            yield name, memory.reshape(like.shape)


#: What a loss calls that has no compiled form: NumPy runs it within the compiled step.
NOT_COMPILED = {
    CTCLoss: {"argsort", "take_along_axis"},
    MultiLabelMarginLoss: {"lexsort", "cumsum"},
}


def check_plan(trainer: Trainer, batches: Batches) -> None:
    """After two steps the next one is compiled. Then, before each step, the plan starts from where the replay ended."""
    model, optimizer = trainer.model, trainer.optimizer
    for batch in batches[:2]:
        trainer.train_step(*batch)
    trace, plan = compiled(trainer, batches[2])
    reasons = {reason.rpartition(": ")[2].removesuffix(" has no compiled form") for reason in plan.reasons}
    assert reasons == NOT_COMPILED.get(type(trainer.loss), set())
    eps = float(np.finfo(model.dtype).eps)
    for batch in batches[3:]:
        model.num_steps += 1
        before = {name: array.copy() for name, array in given(model, optimizer, *batch).items()}
        after = replay(trace, before)
        done = run_one(plan, before)
        model.num_steps -= 1
        assert done.num_steps == 1
        assert done.losses[0] == pytest.approx(float(after["loss"]), rel=TOLERANCE * eps, abs=TOLERANCE * eps)
        for name, array in states(trainer, before):
            expected = after[name]
            scale = float(np.abs(expected).max())
            np.testing.assert_allclose(array, expected, rtol=0, atol=TOLERANCE * eps * scale, err_msg=name)
            array[...] = expected
        trainer.num_steps += 1
        optimizer.num_steps += 1


@pytest.mark.slow
@with_each_dtype("layer, shape", LAYERS)
def test_each_layer(layer: Layer, shape: Shape, dtype: str) -> None:
    """It alone compiles each example of each layer, and compares all that the plan computes."""
    model, batches = of_layer(layer, shape, dtype, 5)
    # Not Adam: its first steps are large even for a gradient that is rounding alone.
    check_plan(Trainer(model, MSELoss(), SGD(model, lr=0.01, momentum=0.9), check_every=0), batches)


@pytest.mark.slow
@each("loss", [(loss,) for loss in LOSSES])
def test_each_loss(loss: Loss) -> None:
    """As test_each_layer."""
    model, batches = of_loss(loss, 5)
    check_plan(Trainer(model, loss, SGD(model, lr=0.1), check_every=0), batches)


@pytest.mark.slow
@with_each_dtype("optimizer, settings", OPTIMIZERS)
def test_each_optimizer(optimizer: Any, settings: dict[str, Any], dtype: str) -> None:
    """As test_each_layer."""
    model, batches = for_optimizer(optimizer, dtype, 5)
    check_plan(Trainer(model, MSELoss(), optimizer(model, **settings), check_every=0), batches)


def test_a_whole_net() -> None:
    """Shared weights, buffers, random numbers, groups, clipping."""
    model, generator = a_whole_net(bias=False), np.random.default_rng(0)
    optimizer = AdamW(model, lr=0.01, eps=1e-3, groups=[{"parameters": "*.bias", "weight_decay": 0, "lr": 0.1}])
    batches = [(generator.standard_normal((9, 6), np.float32), generator.integers(0, 7, 9)) for _ in range(6)]
    check_plan(Trainer(model, CrossEntropyLoss(), optimizer, clip_grad_norm=0.5, check_every=0), batches)


def small() -> tuple[Trainer, Batches]:
    model, generator = Sequential(Linear(4, 6), ReLU(), Linear(6, 3), seed=0), np.random.default_rng(0)
    batches = [(generator.standard_normal((5, 4), np.float32), generator.integers(0, 3, 5)) for _ in range(12)]
    return Trainer(model, CrossEntropyLoss(), SGD(model, lr=0.1, momentum=0.9), check_every=0), batches


def of_steps(plan: Plan, count: int) -> dict[str, Array]:
    """The coefficients of `count` steps."""
    coefficients = [
        {f"{i}.{name}": value.copy() for i, part in enumerate(plan.optimizer.parts)
         for name, value in part.rounded_coefficients(plan.optimizer.num_steps + 1 + step).items()}
        for step in range(count)
    ]
    return {name: np.array([each[name] for each in coefficients]) for name in coefficients[0]}


def test_many_steps_in_one_call() -> None:
    """The steps are those of the plain trainer, and end at the same weights: 10 steps move them by 0.3."""
    trainer, batches = small()
    plain, _ = small()
    for batch in batches[:2]:
        trainer.train_step(*batch)
        plain.train_step(*batch)
    _, plan = compiled(trainer, batches[2])
    before = trainer.model.param_arena.copy()
    inputs, targets = (np.stack(each) for each in zip(*batches[2:], strict=True))
    done = plan.run(inputs, targets, of_steps(plan, 10))
    losses = [plain.train_step(*batch).loss for batch in batches[2:]]
    assert done.num_steps == 10
    np.testing.assert_allclose(done.losses, losses, rtol=1e-6)
    np.testing.assert_allclose(trainer.model.param_arena, plain.model.param_arena, rtol=0, atol=1e-6)
    assert np.abs(trainer.model.param_arena - before).max() > 0.1


@pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf])
def test_a_call_ends_before_a_step_that_isnt_finite(wrong: float) -> None:
    trainer, batches = small()
    for batch in batches[:2]:
        trainer.train_step(*batch)
    _, plan = compiled(trainer, batches[2])
    inputs, targets = (np.stack(each) for each in zip(*batches[2:8], strict=True))
    again = copy.deepcopy(trainer)
    _, plan_again = compiled(again, batches[2])
    plan_again.run(inputs[:3], targets[:3], of_steps(plan_again, 3))
    inputs[3, 2, 1] = wrong
    done = plan.run(inputs, targets, of_steps(plan, 6))
    assert done.num_steps == len(done.losses) == 3
    for name, array in persistent(trainer.model, trainer.optimizer, first_buffers(trainer.model)).items():
        if name != "grad":
            others = persistent(again.model, again.optimizer, first_buffers(again.model))
            np.testing.assert_array_equal(array, others[name])
    assert not np.isfinite(trainer.model.grad_arena).all()


KINDS = {
    "ties": [0.5, 0.5, -0.5, 0.0],
    "zeros of both signs": [0.0, -0.0],
    "NaN": [0.3, np.nan, -0.2, 0.7, 0.1],
    "infinities": [0.3, np.inf, -0.2, -np.inf, 0.4],
    "large": [80.0, -90.0, 1e30, -1e30, 3.0],
    "tiny": [1e-40, -1e-30, 1e-38],
}


OF_KINDS: list[Layer] = [ReLU(), Tanh(), GELU(), GELU("tanh"), Softmax(-1), LayerNorm(6), Linear(6, 6)]


@pytest.mark.parametrize(("layer", "kind"), crossed(OF_KINDS, list(KINDS)), ids=str)
def test_kinds_of_numbers(layer: Layer, kind: str) -> None:
    """Gradients have the same numbers, and NaN and infinity in the same places."""
    generator = np.random.default_rng(0)
    model = Sequential(Linear(6, 6), copy.deepcopy(layer), seed=0)
    model.param_arena[:42] = np.concatenate([np.eye(6).ravel(), np.zeros(6)])
    trainer = Trainer(model, MSELoss(), SGD(model, lr=0.1), check_every=0)
    input = generator.choice(KINDS[kind], (8, 6)).astype(np.float32)
    batch = input, generator.uniform(-1, 1, (8, 6)).astype(np.float32)
    with np.errstate(all="ignore"):
        trace, plan = compiled(trainer, batch)
        before = {name: array.copy() for name, array in given(model, trainer.optimizer, *batch).items()}
        after = replay(trace, before)
        done = run_one(plan, before)
    grad, expected = model.grad_arena, after["grad"]
    is_finite = bool(np.isfinite(after["loss"]) and np.isfinite(expected).all())
    assert done.num_steps == int(is_finite)
    np.testing.assert_array_equal(np.isfinite(grad), np.isfinite(expected))
    scale = np.abs(expected[np.isfinite(expected)]).max(initial=0)
    # Huge numbers in a sum cancel: in another order some sums have four digits left.
    np.testing.assert_allclose(grad, expected, rtol=1e-4, atol=1e-5 * scale)
