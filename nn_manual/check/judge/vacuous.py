"""Comparisons that agree and prove nothing.

One rule for all: a tensor that is zero in all that was compared, though it need not be, is not proven, and what is not
proven doesn't pass. `nn-manual check` compares one batch, the catalogue and the pytest plugin many kinds of input, and
training each checked step. So a net whose last layer starts with zeros fails the check of its first batch, and passes
in training, where the second step has other weights. A gradient that differences could never judge isn't proven either.

A gradient that is zero in theory, its terms cancel, is another matter: a right net may have it, and no step could ever
prove it. It is listed, and doesn't fail.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Iterator, Mapping

import numpy as np
import numpy.typing as npt
import torch

from nn_manual.arrays import Array, carve
from nn_manual.check.compare.comparison import CannotCompare, Pair, Quantity
from nn_manual.check.compare.tolerances import MARGIN, SUM_OF_PRODUCTS
from nn_manual.check.judge.in_float64 import double_of, in_float64
from nn_manual.check.judge.rounding import eps_of
from nn_manual.check.judge.small_parts import blocks_where, written
from nn_manual.check.step.plan import Plan
from nn_manual.check.step.proof import Proof, beside_torch
from nn_manual.check.step.recording import Recording, run_step
from nn_manual.check.twin.by_differences import Finding
from nn_manual.check.twin.model import Twin
from nn_manual.errors import raise_if_nobodys_fault
from nn_manual.layers.with_lengths import LENGTHS
from nn_manual.model import Sequential

#: A single unit behind a kink is zero in half of the draws: in all of so many, once in 256 times.
NUM_DRAWS = 8

#: The most rows of a batch in a drawn step, which is in float64: what cancels in all rows cancels in some, too. In the
#: sum of thousands of rows, more than CANCELLED would be left.
MOST_ROWS = 256

#: Where the terms of a gradient cancel, what is left of them in float64 is at most this fraction of the layer's largest
#: grad_output, from which they are made: two right sums may differ by as much. A gradient that isn't rounding alone
#: isn't as small in every draw.
CANCELLED = SUM_OF_PRODUCTS["float64"]


def not_judged(plan: Plan, findings: Mapping[str, Finding]) -> Iterator[str]:
    """A sentence for each gradient that central differences are too coarse to judge."""
    for quantity in plan.backward:
        finding = findings.get(quantity.name)
        if finding is not None and finding.error:
            yield (
                f"{quantity.layer}: differences can't judge {quantity.name}, their error is {finding.error:.1g} of it; "
                "give the layer a reference in torch"
            )


def at_kinks(findings: Mapping[str, Finding]) -> Iterator[str]:
    """A sentence for each gradient that is right because a kink leaves a choice."""
    for name, finding in findings.items():
        if finding.num_kinks:
            yield (
                f"{name}: {finding.num_kinks} of {finding.reference.size} positions are at a kink, where every slope "
                "between those left and right passes"
            )


def vacuous(model: Sequential, step: Proof) -> Iterator[str]:
    """A sentence for each comparison of a step that could hardly have failed.

    Those are gradients from a constant upstream gradient, under which a lost mean or softmax can't be seen; and values
    that are zero everywhere in torch: a wrong factor, sign or index passes.
    """
    yield from not_judged(step.plan, step.findings)
    for calls in step.recorded.layers:
        grad_output = calls.grad_output
        if grad_output is not None and grad_output.size > 1 and grad_output.any() and np.ptp(grad_output) == 0:
            yield f"{calls.label}: its grad_output is {grad_output.flat[0]:.6g} everywhere"
    zero = [pair.quantity for pair in step.pairs if not pair.reference.any()]
    yield from zero_everywhere(model, step.recorded, step.plan, zero)


def zero_everywhere(model: Sequential, recorded: Recording, plan: Plan, zero: list[Quantity]) -> Iterator[str]:
    """A sentence for each of the quantities in `zero`, which were zero in all that was compared. A formula that gives
    zero for random inputs, parameters and targets, too, is left out: zero is what it must give.
    Before them stands which layers drew zeros alone in the recorded step: those may be why.
    """
    if zero:
        not_always = _not_always_zero(model, recorded, plan)
        sentences = [f"{each.layer}: {each.name} is zero everywhere" for each in zero if each.name in not_always]
        for calls in recorded.layers if sentences else ():
            if any(drawn.size and not drawn.any() for name, drawn in calls.noise.items() if name != LENGTHS):
                yield f"{calls.label}: its random draw is 0 alone, and leaves the branch out; another seed draws anew"
        yield from sentences


def zero_in_theory(model: Sequential, recorded: Recording, plan: Plan) -> tuple[str, ...]:
    """A sentence for each parameter's gradient, and each block of a vector's gradient, of which nothing is left but the
    rounding of its terms, whatever the parameters are: a wrong factor would not show. A gradient that is exactly zero
    isn't among them: there, any other number would show.
    """
    small: dict[str, npt.NDArray[np.bool_]] = {}
    not_zero: dict[str, npt.NDArray[np.bool_]] = {}
    names = {
        item.name: [plan.grad_names[f"{item.name}.{parameter}"] for parameter in item.own_parameters]
        for item in plan.items
    }
    wanted = frozenset(itertools.chain.from_iterable(names.values()))
    for values, grad_outputs in _drawn_steps(model, recorded, wanted, input_grad=plan.input_grad):
        for layer, of_layer in names.items():
            of_rounding = CANCELLED * grad_outputs.get(layer, 0.0)
            for name in of_layer:
                small[name] = small.get(name, True) & (values[name] <= of_rounding)
                not_zero[name] = not_zero.get(name, False) | (values[name] > 0)
        if not any(mask.any() for mask in small.values()):  # one step is enough for most nets
            break
    return tuple(
        f"{quantity.layer}: {quantity.name}{written(key)} is zero in theory and rounding alone"
        for quantity in plan.backward
        if quantity.name in small
        for key in blocks_where(small[quantity.name])
        if not_zero[quantity.name][key].any()
    )


def _drawn_steps(
    model: Sequential, recorded: Recording, names: Collection[str], *, input_grad: bool
) -> Iterator[tuple[dict[str, Array], dict[str, float]]]:
    """Steps in float64 on the recorded batch, its input scaled to 1, with parameters that are drawn at random. Of each:
    the magnitudes that torch finds of the tensors with these `names`, and the largest magnitude of each layer's
    grad_output. Steps that don't run, or give a number that isn't finite, are left out. Of a large batch, the first
    rows are taken.
    """
    generator = np.random.default_rng(0)
    for _ in range(NUM_DRAWS):
        try:
            pairs, grad_outputs = _drawn_step(model, recorded, generator, input_grad=input_grad)
        except BaseException as error:  # a layer, a loss or a reference may raise anything in float64
            raise_if_nobodys_fault(error)
            continue
        pairs = [pair for pair in pairs if pair.quantity.name not in recorded.buffers]
        if all(pair.reference.isfinite().all() for pair in pairs):
            found = {pair.quantity.name: pair.reference.numpy() for pair in pairs}
            yield {name: np.abs(found[name]) for name in names}, grad_outputs


def _drawn_step(
    model: Sequential, recorded: Recording, generator: np.random.Generator, *, input_grad: bool
) -> tuple[list[Pair], dict[str, float]]:
    double, loss = in_float64(model, model.param_arena, recorded.buffers_before), recorded.loss.loss
    for parameter in vars(carve(double.param_arena, double.parameter_shapes())).values():
        # Outputs of about 1: a softmax of large scores has gradients that are next to nothing.
        parameter[...] = generator.standard_normal(parameter.shape) / math.sqrt((1, *parameter.shape)[-1])
    with Recording(double, loss) as again:
        input, target = (double_of(array) for array in _some_rows(recorded))
        run_step(double, loss, recorded.with_lengths(_of_scale_1(input)), target, input_grad=input_grad)
    twin = Twin(double, loss)
    twin.anchor(double.param_arena)
    grad_outputs = {
        calls.item.name: float(np.abs(calls.grad_output).max(initial=0.0))
        for calls in again.layers
        if calls.grad_output is not None
    }
    return beside_torch(twin, again, Plan(double, again, input_grad=input_grad))[0], grad_outputs


def _some_rows(recorded: Recording) -> tuple[Array, Array]:
    """The first rows of a recorded batch, or the whole batch: where its rows have lengths, where the target has other
    rows, and where none of the first ones counts.
    """
    input, target = recorded.first.input, recorded.loss.target
    assert input is not None  # the step was recorded whole
    assert target is not None
    loss, some = recorded.loss.loss, target[:MOST_ROWS]
    if recorded.lengths is not None or len(target) != len(input) or not loss.has_value(loss.denominator(some)):
        return input, target
    return input[:MOST_ROWS], some


def _of_scale_1(input: Array) -> Array:
    """The input scaled to a largest magnitude of 1, unless it holds indices: large inputs make large scores, and the
    gradients of their softmax are next to nothing.
    """
    largest = np.abs(input).max(initial=0.0) if input.dtype.kind == "f" else 0.0
    return input / largest if largest else input


def _not_always_zero(model: Sequential, recorded: Recording, plan: Plan) -> set[str]:
    """The names of the quantities that torch finds other than zero when every number is drawn at random, in float64.
    What is left of terms that cancel is rounding there, far below what float32 can show, and counts as zero. Where a
    reference takes none of the drawn numbers, nobody knows: then all names are returned.
    """
    generator, names, has_run = torch.Generator().manual_seed(0), set(), False

    def draw(like: torch.Tensor) -> torch.Tensor:
        if not like.is_floating_point():
            return like
        return torch.randn(like.shape, generator=generator, dtype=like.dtype)

    twin = Twin(model, recorded.loss.loss, np.float64)
    for _ in range(NUM_DRAWS):
        twin.param[...] = draw(torch.from_numpy(twin.param)).numpy()
        try:
            both, _ = beside_torch(twin, recorded, plan, draw)
        except CannotCompare:  # a reference may refuse what is outside of its domain
            continue
        has_run = True
        magnitudes = [float(pair.reference.abs().max()) for pair in both]
        rounding = MARGIN * eps_of(np.dtype(np.float32)) * max(magnitudes)
        names |= {pair.quantity.name for pair, magnitude in zip(both, magnitudes, strict=True) if magnitude > rounding}
    return names if has_run else {quantity.name for quantity in (*plan.forward, *plan.backward)}
