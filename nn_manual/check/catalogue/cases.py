"""The cases of each kind of component: inputs, upstream gradients, and what the check finds there."""

from __future__ import annotations

import copy
from collections.abc import Collection, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from nn_manual.arrays import Shape
from nn_manual.check.catalogue.input_kinds import KINDS, draw
from nn_manual.check.catalogue.inputs import inputs_of_other_shapes, layer_inputs, move_constants, with_lengths
from nn_manual.check.catalogue.targets import loss_batches
from nn_manual.check.catalogue.upstream import UpstreamLoss
from nn_manual.check.judge.report import GradientReport
from nn_manual.check.whole_step.checker import GradientChecker
from nn_manual.check.whole_step.gradients import NothingCounts, check_gradients, checked_in_part
from nn_manual.check.whole_step.update import UpdateChecker
from nn_manual.errors import GradientMismatch
from nn_manual.layers import Conv1d, Flatten, Layer, Linear, Tanh, Unflatten
from nn_manual.losses import Loss, MSELoss, OfClasses
from nn_manual.losses.base import takes_numbers
from nn_manual.messages.text import counted
from nn_manual.model import Sequential
from nn_manual.optim import SGD, Optimizer, Scheduler
from nn_manual.optim.scheduling import move_scheduled


class CaseResult(NamedTuple):
    """One input of a component: how many tensors were compared, the worst as a fraction of its tolerance (without those
    that are beyond it by rounding), a failure, and the comparisons that prove nothing with this input.
    """

    description: str
    num_tensors: int
    worst: float
    failure: GradientReport | None = None
    vacuous: tuple[str, ...] = ()


def _case(description: str, report: GradientReport) -> CaseResult:
    judged = (c for c in report.comparisons if c.name not in report.rounding)
    worst = max((c.severity for c in judged), default=0.0)
    return CaseResult(description, len(report.comparisons), worst, None if report.agrees else report, report.vacuous)


def layer_cases(
    layer: Layer, input_shape: Shape, dtype: str, seed: int, upstreams: Collection[str] = KINDS.keys()
) -> Iterator[CaseResult]:
    """A copy of the layer alone, on each of its inputs with each of these kinds of upstream gradient, and on random
    inputs of each other shape that it takes with the first of them. Scattered ones are left out of the larger batches:
    one of many elements would stand for all.

    The layer's conduct has upstream gradients of its own, so it is checked once an input. What is vacuous is looked for
    until every tensor was proven by some case.
    """
    generator = np.random.default_rng(seed)
    layer = copy.deepcopy(layer)
    model = Sequential(layer, seed=seed, dtype=dtype)
    unproven: set[str] | None = None
    inputs = [(*each, upstreams) for each in layer_inputs(layer, input_shape, dtype, generator)]  # jumps first
    inputs += [(*each, list(upstreams)[:1]) for each in inputs_of_other_shapes(layer, input_shape, dtype, seed)]
    for description, drawn, kinds in inputs:
        with_conduct, input = True, with_lengths(model, drawn, generator)
        for upstream in kinds:
            if upstream == "scattered" and len(input) > input_shape[0]:
                continue
            model.num_steps += 1  # random layers draw anew: a mask kept from the last case would pass
            model.reset_parameters(generator)  # or parameters kept from the last case would pass
            move_constants(model, generator)
            grad_output = draw(upstream, layer.output_shape(input.shape), dtype, generator)
            with_vacuous = unproven is None or bool(unproven)
            report = checked_in_part(
                model, UpstreamLoss(), input, grad_output, with_conduct=with_conduct, with_vacuous=with_vacuous
            )
            with_conduct = False
            unproven = set(report.vacuous) if unproven is None else unproven & set(report.vacuous)
            yield _case(f"{description}, {upstream} upstream gradient", report)


def loss_cases(loss: Loss, dtype: str, seed: int) -> Iterator[CaseResult]:
    """The loss behind a Linear that passes its input through, on all of `loss_batches` but those of which no target
    counts. Raises NothingCounts where this is so of all, and where `denominator` and `counted` don't say the same.
    """
    num_cases = 0
    for description, prediction, target in loss_batches(loss, dtype, np.random.default_rng(seed)):
        size = prediction.shape[-1]
        model = Sequential(Linear(size, size, bias=False), dtype=dtype)
        model.load_state_dict({"0.weight": np.eye(size)})
        try:
            report = check_gradients(model, loss, prediction, target)
        except NothingCounts as nothing:
            if not loss.counted(target).any():
                continue  # a batch may be so
            nothing.add_note(f"on {description}: so says its `denominator`, and its `counted` says that some count")
            raise
        except BaseException as error:  # a loss of the user's own may raise anything
            error.add_note(f"on {description}")
            if not (takes_numbers(loss) or isinstance(loss, OfClasses)):
                error.add_note("the target was classes: a loss of numbers defines backward_target or as_target")
            raise
        num_cases += 1
        yield _case(description, report)
    if not num_cases:
        raise NothingCounts(f"{type(loss).__name__} counts no target of any case: there is no loss to check")


def optimizer_cases(
    optimizer_class: type[Optimizer], settings: Mapping[str, Any], dtype: str, seed: int
) -> Iterator[CaseResult]:
    """Ten steps of a small net for each kind of input: every tensor of each, the updated parameters among them.

    Scattered inputs are left out: they make the net diverge, and add nothing to what an optimizer can get wrong.
    """
    generator = np.random.default_rng(seed)
    for kind in (kind for kind in KINDS if kind != "scattered"):
        model, loss = Sequential(*_moved_by(optimizer_class), seed=seed, dtype=dtype), MSELoss()
        optimizer = optimizer_class(model, **{"lr": 0.1} | dict(settings))
        initial_lr, checker = optimizer.lr, GradientChecker(model, loss, optimizer)
        for step in range(1, 11):
            input, target = draw(kind, (6, 3), dtype, generator), draw("random", (6, 2), dtype, generator)
            optimizer.lr = initial_lr / step  # or an lr kept from the last step would pass
            with checker.recording():
                checker.run(input, target)
                optimizer.step()
            try:
                check = checker.compare()
            except GradientMismatch as mismatch:
                yield _case(f"{kind} input, step {step}", mismatch.report)
                return
            yield CaseResult(f"{kind} input, step {step}", len(check.tensors), float(check.severity.max()))


def _moved_by(optimizer_class: type[Optimizer]) -> list[Layer]:
    """The layers of the small net, from (batch, 3) to (batch, 2): those of the first net whose parameters the optimizer
    moves. One that isn't elementwise meets parameters of one, two and three dimensions.
    """
    nets: list[list[Layer]] = [
        [Linear(3, 4), Tanh(), Unflatten(1, [2, 2]), Conv1d(2, 4, 3, padding=1), Flatten(), Linear(8, 2)],
        [Linear(3, 4), Tanh(), Linear(4, 2)],
        [Linear(3, 4, bias=False), Tanh(), Linear(4, 2, bias=False)],
    ]
    if optimizer_class.is_elementwise:
        nets = nets[1:]
    return next((layers for layers in nets if _moves(optimizer_class, layers)), nets[-1])


def _moves(optimizer_class: type[Optimizer], layers: list[Layer]) -> bool:
    each = ((index, layer.parameter_shapes()) for index, layer in enumerate(layers))
    shapes = {f"{index}.{name}": shape for index, own in each for name, shape in own.items()}
    return not optimizer_class.misfit(shapes)


def scheduler_cases(scheduler: Scheduler) -> Iterator[CaseResult]:
    """What the schedule moves of an optimizer and of its group, to the schedule's end and on, with validation losses
    that waver while they fall: multiples of powers of 2, so that some lie exactly on a threshold, and some just below
    these.
    """
    scheduler, generator = copy.deepcopy(scheduler), np.random.default_rng(0)
    groups = [{"parameters": "*.bias", "lr": 0.01, "momentum": 0.5}]
    optimizer = SGD(Sequential(Linear(1, 1)), lr=0.1, momentum=0.9, groups=groups)
    initial = [member.scheduled for member in optimizer.members]
    update = UpdateChecker(optimizer, optimizer.model.param_arena.copy(), scheduler)
    num_epochs = int(min(2 * scheduler.duration + 100, scheduler.last_count + 1))
    for epoch in range(num_epochs):
        move_scheduled(optimizer, initial, scheduler, epoch)
        try:
            update.compare_schedule(epoch)
        except GradientMismatch as mismatch:
            yield _case(f"after {counted(epoch, 'epoch')}", mismatch.report)
            return
        loss = generator.integers(1, 9) / 8 * 0.5 ** (epoch // 10) * (1 - 1e-9 * generator.integers(2))
        update.observe(loss)
        scheduler.observe(loss)
    yield CaseResult(counted(num_epochs, "epoch"), num_epochs * len(initial), 0.0)
