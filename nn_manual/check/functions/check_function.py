"""The check of code that is no layer: an autograd.Function, a fused kernel's wrapper, a forward and its backward."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import torch

from nn_manual.arrays import DTYPES, Array, Shape, size_of
from nn_manual.check.comparison import CannotCompare, Quantity, compare
from nn_manual.check.functions.callables import (
    Function,
    arrays_by_name,
    as_tensor,
    by_autograd,
    floats,
    is_array,
    label_of_function,
    names_of_inputs,
    naming,
    run_function,
)
from nn_manual.check.kinds import draw
from nn_manual.check.tolerances import sum_of_products
from nn_manual.check.verdict.arbiter import MARGIN, NUM_PERTURBATIONS, distance, eps_of, larger_effect, move_by_eps
from nn_manual.check.verdict.conduct import Kept
from nn_manual.check.verdict.diagnosis import describe_difference
from nn_manual.check.verdict.report import GradientReport

#: Draws the gradient of an output: its kind, of UPSTREAMS, and its shape.
Upstream: TypeAlias = Callable[[str, Shape], torch.Tensor]

#: A random upstream gradient shows what ones would hide, and a negative one what is right under |grad_output| only.
UPSTREAMS = ("random", "negative")


class _Compared(NamedTuple):
    quantity: Quantity
    ours: Array
    reference: torch.Tensor


def check_function(
    function: Function | tuple[Function, Function], reference: Function, inputs: Sequence[Any], *, seed: int = 0
) -> GradientReport:
    """Compare a function's outputs, and the gradient of each floating input, with those of `reference`.

        grad_input = sum over outputs of (d output / d input)^T grad_output

    for a random and for a negative grad_output, drawn from `seed`.

    `function` takes torch tensors and is differentiable by autograd: a subclass of torch.autograd.Function, its apply,
    or anything built on one. Or it is a pair `(forward, backward)`, which gets arrays or tensors as `inputs` has them:
    `forward(*inputs)` returns `(outputs, saved)` and `backward(saved, *grad_outputs)` the gradients, one for each
    floating input. `reference(*inputs)` is the definition on torch tensors, which autograd differentiates. Both return
    one array or a tuple.

    inputs: numpy arrays, torch tensors, and anything else, which is passed on as it is. All floating ones have one
    dtype, float32 or float64. The gradients are named by the reference's parameters.

    What is beyond the tolerance and only rounding, as a computation in float64 shows, passes and is told.

    Returns a report, whatever `function` does. Raises TypeError for other dtypes, and ValueError for inputs or a
    reference with nothing to differentiate.
    """
    dtype = _dtype(inputs)
    label = label_of_function(function)
    try:
        compared = list(_compared(function, reference, inputs, label, _drawn(dtype, seed)))
    except CannotCompare as problem:
        return GradientReport((), problem=str(problem))
    report = GradientReport(tuple(compare(*each) for each in compared), vacuous=tuple(_vacuous(compared)))
    if report.agrees:
        return report
    by_name = {each.quantity.name: each for each in compared}
    failed = [by_name[failure.name] for failure in report.failures]
    report = replace(report, rounding=_rounding(function, reference, inputs, seed, failed))
    if report.agrees:
        return report
    first = by_name[report.failures[0].name]
    return replace(report, diagnosis=describe_difference(first.ours, first.reference.numpy()))


def _drawn(dtype: np.dtype[Any], seed: int, change: Callable[[Any], torch.Tensor] | None = None) -> Upstream:
    """The upstream gradients of a seed, drawn in `dtype` and then changed."""
    generator = np.random.default_rng(seed)

    def upstream(kind: str, shape: Shape) -> torch.Tensor:
        drawn = torch.from_numpy(draw(kind, shape, dtype.name, generator))
        return drawn if change is None else change(drawn)

    return upstream


def _rounding(
    function: Function | tuple[Function, Function],
    reference: Function,
    inputs: Sequence[Any],
    seed: int,
    failed: list[_Compared],
) -> frozenset[str]:
    """The names of those of `failed` that are beyond the tolerance by rounding; none where a formula is wrong.

    As the arbiter of a training step decides: the formulas must agree in float64, and our values must be as near to
    the reference's float64 ones as its own float32 ones are, with every input and upstream gradient moved by one
    eps. What can't do float64 is not excused.
    """
    label = failed[0].quantity.layer

    def values(function: Function | tuple[Function, Function], change: Callable[[Any], Any]) -> dict[str, _Compared]:
        changed = [change(input) if floats(input) else input for input in inputs]
        compared = _compared(function, reference, changed, label, _drawn(_dtype(inputs), seed, change))
        return {each.quantity.name: each for each in compared}

    generator = torch.Generator().manual_seed(seed)
    try:
        in_double = values(function, _double)
        moved = [
            values(reference, lambda input: move_by_eps(as_tensor(input).float(), generator))
            for _ in range(NUM_PERTURBATIONS)
        ]
    except Exception:  # whatever a function or a reference raises that can't do another dtype
        return frozenset()
    effect = dict.fromkeys(in_double, 0.0)
    for name, rounded in itertools.product(in_double, moved):
        away = distance(rounded[name].reference.numpy(), in_double[name].reference.numpy())
        effect[name] = larger_effect(effect[name], away / eps_of(np.dtype(np.float32)))

    def is_near(name: str, ours: Array) -> bool:
        return distance(ours, in_double[name].reference.numpy()) <= MARGIN * effect[name] * eps_of(ours.dtype)

    if not all(compare(*each).passed or is_near(name, each.ours) for name, each in in_double.items()):
        return frozenset()
    return frozenset(each.quantity.name for each in failed if is_near(each.quantity.name, each.ours))


def _double(input: Any) -> Any:
    return input.astype(np.float64) if isinstance(input, np.ndarray) else input.double()


def _compared(
    function: Function | tuple[Function, Function],
    reference: Function,
    inputs: Sequence[Any],
    label: str,
    upstream: Upstream,
) -> Iterator[_Compared]:
    """Every pair of tensors to compare. Raises CannotCompare where the function gives none."""
    their_outputs, their_backward = by_autograd(reference, inputs)
    differentiable = [i for i, output in enumerate(their_outputs) if output.requires_grad]
    if not differentiable:
        raise ValueError("no output of the reference depends on a floating input in a way that autograd can follow")
    tolerance = sum_of_products(_dtype(inputs), _longest([*filter(is_array, inputs), *their_outputs]))

    def pair(name: str, ours: torch.Tensor, theirs: torch.Tensor) -> _Compared:
        return _Compared(Quantity(name, label, tolerance), *_same_kind(f"{label}: {name}", ours, theirs))

    input_names = names_of_inputs(reference, inputs)
    kept = Kept(label, dict(arrays_by_name(input_names, inputs)))
    with naming(label, "forward"):
        outputs, backward = run_function(function, inputs)
        kept.check("forward wrote into")
    if len(outputs) != len(their_outputs):
        raise CannotCompare(f"{label}: {len(outputs)} outputs, the reference has {len(their_outputs)}")
    for i, (ours, theirs) in enumerate(zip(outputs, their_outputs, strict=True)):
        yield pair("output" if len(outputs) == 1 else f"output {i}", ours.detach(), theirs.detach())

    names = [f"grad_{name}" for name, input in zip(input_names, inputs, strict=True) if floats(input)]
    for kind in UPSTREAMS:
        device = their_outputs[0].device
        grad_outputs = {i: upstream(kind, tuple(their_outputs[i].shape)).to(device) for i in differentiable}
        their_grads = their_backward(grad_outputs)
        received = {f"the gradient of output {i}": grad for i, grad in grad_outputs.items()}
        kept.add(dict(arrays_by_name(list(received), list(received.values()))))
        with naming(label, "backward"):
            grads = backward(grad_outputs)
            kept.check("backward wrote into")
        if len(grads) != len(names):
            raise CannotCompare(f"{label}: backward returned {len(grads)} gradients, for {', '.join(names)}")
        for name, input, ours_or_none, theirs_or_none in zip(
            names, filter(floats, inputs), grads, their_grads, strict=True
        ):
            if ours_or_none is None and theirs_or_none is None:
                continue  # both say that nothing depends on this input
            zero = torch.zeros(input.shape, dtype=as_tensor(input).dtype)
            ours, theirs = (zero if grad is None else grad for grad in (ours_or_none, theirs_or_none))
            yield pair(f"{name}, {kind} upstream", ours, theirs)


def _same_kind(name: str, ours: torch.Tensor, reference: torch.Tensor) -> tuple[Array, torch.Tensor]:
    """Both in main memory, floating. Raises CannotCompare for two shapes or dtypes, or nothing to compare."""
    ours, reference = ours.detach().cpu(), reference.detach().cpu()
    if ours.dtype != reference.dtype:
        raise CannotCompare(f"{name} is {ours.dtype}, the reference's {reference.dtype}")
    if not ours.is_floating_point():
        ours, reference = ours.double(), reference.double()
    if ours.shape != reference.shape:
        raise CannotCompare(f"{name}: {describe_difference(ours.numpy(), reference.numpy())}")
    if ours.numel() == 0:
        raise CannotCompare(f"{name} is empty: there is nothing to compare")
    return ours.numpy(), reference


def _vacuous(compared: list[_Compared]) -> Iterator[str]:
    """A sentence for each gradient that is zero under every upstream gradient."""
    by_name: dict[str, list[_Compared]] = {}
    for each in compared:
        by_name.setdefault(each.quantity.name.split(",")[0], []).append(each)
    for name, cases in by_name.items():
        if not any(case.reference.any() for case in cases):
            yield f"{cases[0].quantity.layer}: {name} is zero everywhere"


def _dtype(inputs: Sequence[Any]) -> np.dtype[Any]:
    """The one dtype of the floating inputs."""
    names = {str(as_tensor(input).dtype).removeprefix("torch.") for input in inputs if floats(input)}
    if not names:
        raise ValueError("none of the inputs is a floating array or tensor: there is no gradient to check")
    if len(names) > 1 or not names <= DTYPES.keys():
        raise TypeError(f"the floating inputs must all be float32 or all float64, not {', '.join(sorted(names))}")
    return DTYPES[names.pop()]


def _longest(arrays: Sequence[Any]) -> int:
    """The longest dimension in sight, several leading ones counting together: few sums are taken over more."""
    return max((max(*array.shape, size_of(array.shape[:-1])) for array in arrays if array.ndim), default=1)
