"""A function beside its reference: everything that both compute, in pairs, and how the function behaves meanwhile."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import torch

from nn_manual.arrays import DTYPES, Array, size_of
from nn_manual.check.comparison import CannotCompare, Pair, Quantity, compare
from nn_manual.check.functions.callables import (
    Checked,
    Forward,
    Function,
    as_tensor,
    by_autograd,
    dtype_name,
    floats,
    is_array,
    label_of_function,
    names_of_inputs,
    naming,
    run_function,
)
from nn_manual.check.kinds import draw
from nn_manual.check.tolerances import sum_of_products
from nn_manual.check.verdict.diagnosis import describe_difference
from nn_manual.check.verdict.kept import Kept, arrays_in

#: A random upstream gradient shows what ones would hide, and a negative one what is right under |grad_output| only.
UPSTREAMS = ("random", "negative")

Change: TypeAlias = Callable[[Any], Any]


@dataclass(frozen=True)
class Case:
    """A function, its reference, the inputs that both get, and the seed that the gradients of the outputs are drawn
    from. `change` is applied to all of these: the floating inputs, and the gradients drawn in their dtype.
    """

    function: Checked
    reference: Function
    inputs: tuple[Any, ...]
    seed: int
    change: Change = lambda array: array

    @property
    def label(self) -> str:
        """The function's name."""
        return label_of_function(self.function)

    @property
    def dtype(self) -> np.dtype[Any]:
        """The one dtype of the floating inputs. ValueError where there are none, TypeError for others than float32 or
        float64.
        """
        names = {dtype_name(input) for input in self.inputs if is_array(input)}
        names = {name for name in names if "float" in name or "complex" in name}
        if not names:
            raise ValueError("none of the inputs is a floating array or tensor: there is no gradient to check")
        if len(names) > 1 or not names <= DTYPES.keys():
            raise TypeError(f"the floating inputs must all be float32 or all float64, not {', '.join(sorted(names))}")
        return DTYPES[names.pop()]

    @property
    def batch_size(self) -> int | None:
        """The first dimension of the inputs."""
        return next((input.shape[0] for input in self.inputs if is_array(input) and input.ndim), None)

    def changed_inputs(self) -> list[Any]:
        """The inputs to run on."""
        return [self.change(input) if floats(input) else input for input in self.inputs]

    def grad_outputs(self, outputs: dict[int, torch.Tensor]) -> Iterator[tuple[str, dict[int, torch.Tensor]]]:
        """Each kind of upstream gradient: one for each of the outputs, by their positions."""
        generator = np.random.default_rng(self.seed)
        for kind in UPSTREAMS:
            drawn = {i: as_tensor(draw(kind, tuple(o.shape), self.dtype.name, generator)) for i, o in outputs.items()}
            yield kind, {i: self.change(grad).to(outputs[i]) for i, grad in drawn.items()}


def pairs(case: Case, before_backward: Callable[[], object] | None = None) -> Iterator[Pair]:
    """Every pair of tensors to compare: outputs, then gradients under each upstream gradient.

    `before_backward`, where it is given, runs the function once more between its forward and its backward.

    Raises CannotCompare where the function raises, returns what can't be compared, or writes into anything but what it
    returns; TypeError and ValueError where the reference is to blame.
    """
    label, dtype, inputs = case.label, case.dtype, case.changed_inputs()
    theirs = _run_reference(case.reference, inputs)
    tolerance = sum_of_products(dtype, _longest([*filter(is_array, inputs), *theirs.outputs]))

    def pair(name: str, ours: Any, reference: torch.Tensor) -> Pair:
        return Pair(Quantity(name, label, tolerance), *_same_kind(f"{label}: {name}", ours, reference))

    input_names = names_of_inputs(case.reference, inputs)
    kept = Kept(label, {name: input for name, input in zip(input_names, inputs, strict=True) if is_array(input)})
    with naming(label, "forward"):
        ours = run_function(case.function, inputs)
        kept.check("forward wrote into")
    if len(ours.outputs) != len(theirs.outputs):
        raise CannotCompare(f"{label}: {len(ours.outputs)} outputs, the reference has {len(theirs.outputs)}")
    output_names = [f"output {i}" for i in range(len(ours.outputs))] if len(ours.outputs) > 1 else ["output"]
    for name, output, reference in zip(output_names, ours.outputs, theirs.outputs, strict=True):
        yield pair(name, output, reference)

    kept.add({f"its {name}": output.detach() for name, output in zip(output_names, ours.outputs, strict=True)})
    kept.add({f"what forward saved{place}": array for place, array in arrays_in(ours.saved)})
    doing = "backward"
    if before_backward is not None:
        before_backward()
        kept.check("forward, run again on other values, overwrote")
        doing = "backward, after forward ran again on other values,"
    floating = {name: input for name, input in zip(input_names, inputs, strict=True) if floats(input)}
    differentiable = {i: output for i, output in enumerate(theirs.outputs) if output.requires_grad}
    for kind, grad_outputs in case.grad_outputs(differentiable):
        kept.add({f"the gradient of its {output_names[i]}": grad for i, grad in grad_outputs.items()})
        with naming(label, doing):
            grads = ours.backward(grad_outputs)
            kept.check(f"{doing} wrote into")
        if len(grads) != len(floating):
            names = ", ".join(f"grad_{name}" for name in floating)
            raise CannotCompare(
                f"{label}: backward returned {len(grads)} gradients instead of {len(floating)}: {names}"
            )
        for name, grad, their_grad in zip(floating, grads, theirs.backward(grad_outputs), strict=True):
            if grad is None and their_grad is None:
                continue  # both say that nothing depends on this input
            zero = torch.zeros_like(as_tensor(floating[name]))
            yield pair(
                f"grad_{name}, {kind} upstream",
                zero if grad is None else grad,
                zero if their_grad is None else their_grad,
            )
            if grad is not None:
                kept.add({f"the grad_{name} that it returned before": grad.to_dense()})  # sparse ones can't be compared


def check_state(case: Case, alone: Sequence[Pair]) -> None:
    """Compare what a function gives `alone` with what it gives if its forward ran again, on other values, before its
    backward. Raises CannotCompare where that makes a difference.
    """

    def run_on_other_values() -> None:
        others = [_other_values(input) if floats(input) else input for input in case.inputs]
        # Other values may be none that the function takes. Nothing of this run is compared.
        with contextlib.suppress(Exception), warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            run_function(case.function, others)

    for first, (quantity, again, _) in zip(alone, pairs(case, run_on_other_values), strict=True):
        if compare(quantity, again, torch.from_numpy(first.ours)).passed:
            continue
        if not quantity.name.startswith("grad_"):
            raise CannotCompare(f"{case.label}: {quantity.name} differs when forward runs twice on the same inputs")
        raise CannotCompare(
            f"{case.label}: {quantity.name} differs when forward ran again, on other values, before backward: "
            "what backward needs must travel in `saved`, or on the context"
        )


def _other_values(input: Any) -> torch.Tensor | Array:
    """The same numbers in other places and somewhat smaller, which most functions take."""
    other = 0.75 * as_tensor(input).detach().flatten().roll(1).reshape(input.shape)
    return other if isinstance(input, torch.Tensor) else other.numpy()


def _run_reference(reference: Function, inputs: Sequence[Any]) -> Forward:
    """Raises TypeError for an output that can't be compared, ValueError where none can be differentiated, and whatever
    the reference raises, with a note that it was the reference.
    """
    try:
        ran = by_autograd(reference, inputs)
    except Exception as error:  # a user's own may raise anything
        error.add_note("raised by the reference")
        raise
    for i, output in enumerate(ran.outputs):
        if not isinstance(output, torch.Tensor):
            raise TypeError(f"output {i} of the reference is {type(output).__name__}, not an array or tensor")
        if output.is_complex() or (floats(output) and dtype_name(output) not in DTYPES):
            raise TypeError(
                f"output {i} of the reference is {dtype_name(output)}: outputs must be float32, float64 or integer"
            )
    if not any(output.requires_grad for output in ran.outputs):
        raise ValueError("no output of the reference depends on a floating input in a way that autograd can follow")
    return ran


def _same_kind(name: str, ours: Any, reference: torch.Tensor) -> tuple[Array, torch.Tensor]:
    """Both in main memory, floating, and ours copied: the function may write into what it returned. Raises
    CannotCompare for two shapes or dtypes, or nothing to compare.
    """
    if not isinstance(ours, torch.Tensor):
        raise CannotCompare(f"{name} is {type(ours).__name__}, not an array or tensor")
    if ours.dtype != reference.dtype:
        raise CannotCompare(f"{name} is {dtype_name(ours)}, the reference's {dtype_name(reference)}")
    reference = reference.detach().to_dense().cpu()
    ours = ours.detach().to_dense().to("cpu", copy=True)
    if not ours.is_floating_point():
        ours, reference = ours.double(), reference.double()
    if ours.shape != reference.shape:
        raise CannotCompare(f"{name}: {describe_difference(ours.numpy(), reference.numpy())}")
    if ours.numel() == 0:
        raise CannotCompare(f"{name} is empty: there is nothing to compare")
    return ours.numpy(), reference


def _longest(arrays: Sequence[Any]) -> int:
    """The longest dimension, where leading dimensions count together: few sums run over more."""
    return max((max(*array.shape, size_of(array.shape[:-1])) for array in arrays if array.ndim), default=1)
