"""The check of code that is no layer: an autograd.Function, a fused kernel's wrapper, a forward and its backward."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import torch

from nn_manual.arrays import DTYPES, Array, size_of
from nn_manual.check.catalogue import draw
from nn_manual.check.comparison import compare
from nn_manual.check.conduct import Kept
from nn_manual.check.diagnosis import describe_difference
from nn_manual.check.plan import Quantity
from nn_manual.check.report import GradientReport
from nn_manual.check.structure import CannotCompare
from nn_manual.check.tolerances import sum_of_products

Function: TypeAlias = Callable[..., Any]
#: Takes the gradient of each differentiable output, by its position, to those of the floating inputs.
Backward: TypeAlias = Callable[[dict[int, torch.Tensor]], Sequence[torch.Tensor | None]]

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

    Returns a report, whatever `function` does. Raises TypeError for other dtypes, and ValueError for inputs or a
    reference with nothing to differentiate.
    """
    dtype = _dtype(inputs)
    label = _label(function)
    try:
        compared = list(_compared(function, reference, inputs, dtype, label, np.random.default_rng(seed)))
    except CannotCompare as problem:
        return GradientReport((), problem=str(problem))
    report = GradientReport(tuple(compare(*each) for each in compared), vacuous=tuple(_vacuous(compared)))
    if report.agrees:
        return report
    first = next(each for each in compared if each.quantity.name == report.failures[0].name)
    return replace(report, diagnosis=describe_difference(first.ours, first.reference.numpy()))


def _compared(
    function: Function | tuple[Function, Function],
    reference: Function,
    inputs: Sequence[Any],
    dtype: np.dtype[Any],
    label: str,
    generator: np.random.Generator,
) -> Iterator[_Compared]:
    """Every pair of tensors to compare. Raises CannotCompare where the function gives none."""
    their_outputs, their_backward = _by_autograd(reference, inputs)
    differentiable = [i for i, output in enumerate(their_outputs) if output.requires_grad]
    if not differentiable:
        raise ValueError("no output of the reference depends on a floating input in a way that autograd can follow")
    tolerance = sum_of_products(dtype, _longest([*filter(_is_array, inputs), *their_outputs]))

    def pair(name: str, ours: torch.Tensor, theirs: torch.Tensor) -> _Compared:
        return _Compared(Quantity(name, label, tolerance), *_same_kind(f"{label}: {name}", ours, theirs))

    input_names = _names(reference, inputs)
    kept = Kept(label, dict(_arrays(input_names, inputs)))
    with _naming(label, "forward"):
        outputs, backward = _run(function, inputs)
        kept.check("forward wrote into")
    if len(outputs) != len(their_outputs):
        raise CannotCompare(f"{label}: {len(outputs)} outputs, the reference has {len(their_outputs)}")
    for i, (ours, theirs) in enumerate(zip(outputs, their_outputs, strict=True)):
        yield pair("output" if len(outputs) == 1 else f"output {i}", ours.detach(), theirs.detach())

    names = [f"grad_{name}" for name, input in zip(input_names, inputs, strict=True) if _floats(input)]
    for kind in UPSTREAMS:
        drawn = [draw(kind, tuple(their_outputs[i].shape), dtype.name, generator) for i in differentiable]
        device = their_outputs[0].device
        grad_outputs = {i: torch.from_numpy(array).to(device) for i, array in zip(differentiable, drawn, strict=True)}
        their_grads = their_backward(grad_outputs)
        kept.add(dict(_arrays([f"the gradient of output {i}" for i in grad_outputs], list(grad_outputs.values()))))
        with _naming(label, "backward"):
            grads = backward(grad_outputs)
            kept.check("backward wrote into")
        if len(grads) != len(names):
            raise CannotCompare(f"{label}: backward returned {len(grads)} gradients, for {', '.join(names)}")
        for name, input, ours_or_none, theirs_or_none in zip(
            names, filter(_floats, inputs), grads, their_grads, strict=True
        ):
            if ours_or_none is None and theirs_or_none is None:
                continue  # both say that nothing depends on this input
            zero = torch.zeros(input.shape, dtype=_tensor(input).dtype)
            ours, theirs = (zero if grad is None else grad for grad in (ours_or_none, theirs_or_none))
            yield pair(f"{name}, {kind} upstream", ours, theirs)


def _run(function: Function | tuple[Function, Function], inputs: Sequence[Any]) -> tuple[list[torch.Tensor], Backward]:
    """The outputs of a function or pair of them, and its backward."""
    if not isinstance(function, tuple):
        return _by_autograd(function, inputs)
    forward, backward = function
    returned = forward(*inputs)
    if not (isinstance(returned, tuple) and len(returned) == 2):
        raise CannotCompare(f"{_label(function)}: forward must return (output, saved)")
    outputs, saved = returned
    as_inputs = _tensor if any(isinstance(input, torch.Tensor) for input in inputs) else _array
    return _tensors(outputs), lambda grad_outputs: _tensors(backward(saved, *map(as_inputs, grad_outputs.values())))


def _by_autograd(function: Function, inputs: Sequence[Any]) -> tuple[list[torch.Tensor], Backward]:
    """The outputs of a function on tensors, and autograd's way back."""
    leaves = [_tensor(input).detach() if _is_array(input) else input for input in inputs]
    leaves = [leaf.requires_grad_() if _floats(leaf) else leaf for leaf in leaves]
    apply = function.apply if isinstance(function, type) and issubclass(function, torch.autograd.Function) else function
    outputs = _tensors(apply(*leaves))

    def backward(grad_outputs: dict[int, torch.Tensor]) -> Sequence[torch.Tensor | None]:
        for i in grad_outputs:
            if not outputs[i].requires_grad:
                raise CannotCompare(f"{_label(function)}: output {i} carries no gradient that autograd could follow")
        floating = [leaf for leaf in leaves if _floats(leaf)]
        carrying = [outputs[i] for i in grad_outputs]
        return torch.autograd.grad(
            carrying, floating, list(grad_outputs.values()), retain_graph=True, allow_unused=True
        )

    return outputs, backward


@contextmanager
def _naming(label: str, doing: str) -> Iterator[None]:
    """A context in which whatever the function raises becomes CannotCompare, with its label."""
    try:
        yield
    except CannotCompare:
        raise
    except Exception as error:
        raise CannotCompare(f"{label}: {doing} raised {type(error).__name__}: {error}") from error


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
    names = {str(_tensor(input).dtype).removeprefix("torch.") for input in inputs if _floats(input)}
    if not names:
        raise ValueError("none of the inputs is a floating array or tensor: there is no gradient to check")
    if len(names) > 1 or not names <= DTYPES.keys():
        raise TypeError(f"the floating inputs must all be float32 or all float64, not {', '.join(sorted(names))}")
    return DTYPES[names.pop()]


def _names(reference: Function, inputs: Sequence[Any]) -> list[str]:
    """What the reference calls its inputs; numbers for what it does not name, as a built-in function doesn't."""
    try:
        parameters = inspect.signature(reference).parameters.values()
        names = [p.name for p in parameters if p.kind <= p.POSITIONAL_OR_KEYWORD]
    except ValueError:
        names = []
    return [*names[: len(inputs)], *(f"input_{i}" for i in range(len(names), len(inputs)))]


def _label(function: Any) -> str:
    if isinstance(function, tuple):
        return " and ".join(_label(each) for each in function)
    owner = getattr(function, "__self__", None)
    named = owner if isinstance(owner, type) else function  # the apply of an autograd.Function is its class's
    return str(getattr(named, "__name__", type(named).__name__))


def _longest(arrays: Sequence[Any]) -> int:
    """The longest dimension in sight, several leading ones counting together: few sums are taken over more."""
    return max((max(*array.shape, size_of(array.shape[:-1])) for array in arrays if array.ndim), default=1)


def _is_array(thing: Any) -> bool:
    return isinstance(thing, np.ndarray | torch.Tensor)


def _floats(thing: Any) -> bool:
    return _is_array(thing) and _tensor(thing).is_floating_point()


def _tensor(array: Any) -> torch.Tensor:
    return array if isinstance(array, torch.Tensor) else torch.from_numpy(np.asarray(array, order="C"))


def _array(tensor: torch.Tensor) -> Array:
    array: Array = tensor.detach().cpu().numpy()
    return array


def _tensors(returned: Any) -> list[Any]:
    """One output or several, as a list of tensors; None, a gradient that is not there, stays."""
    several = returned if isinstance(returned, tuple | list) else (returned,)
    return [None if each is None else _tensor(each) for each in several]


def _arrays(names: Sequence[str], things: Sequence[Any]) -> Iterator[tuple[str, Array]]:
    """The arrays and tensors among `things` by name; the memory of those on the CPU is not copied."""
    for name, thing in zip(names, things, strict=True):
        if _is_array(thing):
            yield name, thing if isinstance(thing, np.ndarray) else _array(thing)
