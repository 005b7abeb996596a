"""The rows of other inputs: other layouts in memory, and other kinds of values."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from nn_manual import streams
from nn_manual.check.catalogue.input_kinds import KINDS, draw, spread
from nn_manual.check.compare.comparison import CannotCompare
from nn_manual.functions.arguments import as_tensor
from nn_manual.functions.battery.grad_output import expanded, in_layout, layouts_of
from nn_manual.functions.battery.one_run import forward_of
from nn_manual.functions.battery.runs import is_right
from nn_manual.functions.battery.shared_input import of_one_shape, one_in_both_places
from nn_manual.functions.battery.trial import Run, Skip, Trial, Wrong, agree
from nn_manual.functions.callables import dtype_name, floats, is_array
from nn_manual.functions.exceptions import raised_by_the_reference
from nn_manual.functions.function_case import FunctionCase, eps_of, with_leaves
from nn_manual.functions.handwritten import Handwritten
from nn_manual.streams import Stream

#: The kinds of values that a function is tried on: those of the layers; the halves from -30 to 30, where thresholds
#: lie; numbers whose exponential overflows; and numbers whose mean is large beside their deviation.
FUNCTION_KINDS = (*(kind for kind in KINDS if kind != "random"), "spread", "large", "shifted")
LARGE = 1000

#: The mean, at which no sigmoid is 1 yet, and the deviation as a fraction of the mean, at least so many eps. In float32
#: one rounding of the squared mean is then a quarter of the variance, and more than the 1e-5 that a norm usually adds.
#: A variance computed as E[x**2] - E[x]**2 is off by such roundings, one from differences by a thousandth. The mean
#: lies halfway between two numbers: so in 16 bits its rounding is a sixteenth of the deviation, and a norm that centres
#: in 16 bits is off by as much.
MEAN, FRACTION, FEWEST_EPS = 16, 2.0**-11, 8

#: How often a small input gets other values. A vector has 7 numbers on the small sizes: it has had all 121 values then.
MOST_RUNS = 18
#: The next input begins so many values further: a prime number, so that no two inputs are the same.
APART = 31

#: In torch's message about a write into an expanded tensor.
SEVERAL_IN_ONE_PLACE = "more than one element of the written-to tensor"


def layouts(trial: Trial) -> Iterator[tuple[str, Run]]:
    """Inputs that are not contiguous, as a transpose, an expand or a slice leaves them."""
    arguments = trial.case.arguments
    named = dict(zip(arguments.names, arguments.leaves, strict=True))
    for name, layout in layouts_of(arguments.leaves).items():
        if layout is expanded:
            yield name, lambda: in_layout(trial, named, _expanded_inputs)
        else:
            yield name, lambda layout=layout: in_layout(trial, named, lambda case: agree(replace(case, layout=layout)))  # type: ignore[misc] # a default
    if any(map(_has_indices, arguments.leaves)):
        yield "repeated", lambda: _repeated(trial)
    if not trial.is_pair and of_one_shape(trial.case):
        yield "same", lambda: one_in_both_places(trial.case)


def _has_indices(leaf: Any) -> bool:
    """Whether it is an array of integers, and they aren't all equal."""
    if not (is_array(leaf) and "int" in dtype_name(leaf)):
        return False
    tensor = as_tensor(leaf)
    return bool((tensor != tensor.reshape(-1)[:1]).any())


def _repeated(trial: Trial) -> None:
    """Integers repeat, as indices do: each becomes the smallest or the largest of them. If they were a permutation, the
    function may be for permutations alone: then the row is skipped, and its note says what came of it. Then all are the
    smallest, as where every target is ignored: a function may refuse that.
    """
    generator = streams.generator(trial.seed, Stream.REPEATED)
    leaves = [leaf for leaf in trial.case.arguments.leaves if is_array(leaf)]
    lengths = {length for leaf in leaves if floats(leaf) for length in leaf.shape}
    try:
        agree(_with_indices(trial.case, lambda tensor: _of_two_values(tensor, generator)))
    except (Wrong, CannotCompare) as problem:
        if any(_has_indices(leaf) and _permutes(as_tensor(leaf).to(torch.int64), lengths) for leaf in leaves):
            words = "these integers are a permutation; it is wrong on ones that repeat: pass some if it takes them"
            raise Skip(f"{words}: {problem}") from problem
        raise
    alike = _with_indices(trial.case, lambda tensor: tensor if _ascend(tensor) else tensor.min().expand_as(tensor))
    with suppress(CannotCompare):
        if _has_finite_outputs(alike):  # the gradient of 0 / 0 is anybody's
            agree(alike)


def _has_finite_outputs(case: FunctionCase) -> bool:
    with raised_by_the_reference():
        outputs = forward_of(replace(case, function=case.reference)).outputs.values()
    return all(bool(output.isfinite().all()) for output in outputs if floats(output))


def _with_indices(case: FunctionCase, change: Callable[[torch.Tensor], torch.Tensor]) -> FunctionCase:
    """The case with other integers where they aren't all equal."""

    def changed(leaf: Any) -> Any:
        if not _has_indices(leaf):
            return leaf
        tensor = as_tensor(leaf)
        found = change(tensor.to(torch.int64)).to(tensor.dtype).contiguous()  # torch sorts no unsigned ones
        return found if isinstance(leaf, torch.Tensor) else found.numpy()

    leaves = tuple(map(changed, case.arguments.leaves))
    return replace(case, arguments=replace(case.arguments, leaves=leaves), drawn=True)


def _ascend(tensor: torch.Tensor) -> bool:
    return torch.equal(tensor, tensor.sort(-1).values)


def _of_two_values(tensor: torch.Tensor, generator: np.random.Generator) -> torch.Tensor:
    """Each integer becomes the smallest or the largest of them, the first two the same. Ascending integers, which may
    be offsets, stay ascending, with the same ends.
    """
    ends = torch.stack([tensor.min(), tensor.max()])
    found = ends[torch.as_tensor(generator.integers(2, size=tuple(tensor.shape)))]
    found.view(-1)[:2] = ends[0]
    if _ascend(tensor):
        found = found.sort(-1).values
        found[..., 0], found[..., -1] = tensor[..., 0], tensor[..., -1]
    return found


def _permutes(tensor: torch.Tensor, lengths: Collection[int]) -> bool:
    """Whether 0, 1, 2, ... stand along an axis, each once, and that axis is as long as one of a floating input."""
    return any(
        bool((tensor.sort(axis).values.movedim(axis, -1) == torch.arange(length, device=tensor.device)).all())
        for axis, length in enumerate(tensor.shape)
        if length > 1 and length in lengths
    )


def _expanded_inputs(case: FunctionCase) -> None:
    """Each floating input is its first row, expanded. If the function raises an error on such values in the usual
    layout, or is wrong there, too, nothing is known about this layout. Equal rows have equal eigenvalues, of which each
    basis has a gradient of its own; the kinds have such rows as well.
    """

    def first_row(tensor: torch.Tensor) -> torch.Tensor:
        return tensor[:1].clone().expand(tensor.shape) if tensor.ndim else tensor  # a number has no rows

    def where_equal(tensor: torch.Tensor) -> torch.Tensor:
        return first_row(tensor) if torch.equal(first_row(tensor), tensor) else tensor

    usual = with_leaves(case, lambda tensor: first_row(tensor).contiguous())
    try:
        agree(replace(usual, layout=where_equal))
    except CannotCompare as problem:
        if SEVERAL_IN_ONE_PLACE in str(problem):
            raise Skip("it works in place, which torch refuses on expanded tensors") from problem
        _raise_if_refused(usual)
        raise
    except Wrong:
        if isinstance(case.function, Handwritten) and case.habits & {"inputs", "saved"}:  # numpy lets it write there
            words = "it writes into its inputs, which have one place in memory for several numbers here"
            raise Skip(words) from None
        if not is_right(usual):
            raise Skip("on equal rows it is wrong in the usual layout, too: that is no matter of layout") from None
        raise


def _raise_if_refused(usual: FunctionCase) -> None:
    """Raise Skip if the function raises an error on these values in the usual layout."""
    try:
        agree(usual)
    except CannotCompare as problem:
        raise Skip(f"{problem}; it may not be for inputs whose rows are all equal") from problem
    except Wrong:
        return


#: How some kinds are made of normal numbers and the eps of the input's dtype.
OF_NORMAL: dict[str, Callable[[torch.Tensor, float], torch.Tensor]] = {
    "large": lambda values, _: LARGE * values,
    "shifted": lambda values, eps: MEAN * (1 + eps / 2 + max(FRACTION, FEWEST_EPS * eps) * values),
}


def kinds(trial: Trial) -> Iterator[tuple[str, Run]]:
    """Other values of the floating inputs: ties, zeros, tiny and scattered values, and so on. Where the reference isn't
    finite, nothing is compared.
    """
    for kind in FUNCTION_KINDS if trial.kinds is None else trial.kinds:
        yield kind, lambda kind=kind: _kind(trial, kind)  # type: ignore[misc] # a default


def _kind(trial: Trial, kind: str) -> str | None:
    generator = streams.generator(trial.seed, Stream.KINDS)

    def drawn(tensor: torch.Tensor) -> torch.Tensor:
        normal = kind in OF_NORMAL
        values = as_tensor(draw("random" if normal else kind, tuple(tensor.shape), "float64", generator))
        return (OF_NORMAL[kind](values, eps_of(tensor.dtype)) if normal else values).to(tensor)

    try:
        cases = _spread(trial.case, generator) if kind == "spread" else [with_leaves(trial.case, drawn)]
        # `shifted` looks for terms that are larger in the function.
        notes = [agree(replace(case, own_terms=kind != "shifted")) for case in cases]
        return next(filter(None, notes), None)
    except CannotCompare as problem:
        if trial.kinds is None:  # nobody said that it takes such values
            advice = f"it may not be for such values; kinds=[{kind!r}] demands that it is"
            raise Skip(f"{problem}; {advice}") from problem
        raise


def _spread(case: FunctionCase, generator: np.random.Generator) -> Iterator[FunctionCase]:
    """All floating inputs are spread; then each alone, while the others are 1: so their product meets the thresholds.
    Small inputs take several runs, until the largest has had every value.
    """
    values = torch.from_numpy(generator.permutation(spread()))
    inputs = [as_tensor(leaf) for leaf in case.arguments.leaves if floats(leaf)]
    largest = max(1, *(tensor.numel() for tensor in inputs))

    def filled(tensor: torch.Tensor, start: int) -> torch.Tensor:
        return values[(start + torch.arange(tensor.numel())) % len(values)].reshape(tensor.shape).to(tensor)

    for run in range(min(MOST_RUNS, math.ceil(len(values) / largest))):
        full = [filled(tensor, run * tensor.numel() + APART * i) for i, tensor in enumerate(inputs)]
        yield _with_inputs(case, full)
        for alone in range(len(full)) if len(full) > 1 else ():
            yield _with_inputs(case, [x if i == alone else torch.ones_like(x) for i, x in enumerate(full)])


def _with_inputs(case: FunctionCase, inputs: Iterable[torch.Tensor]) -> FunctionCase:
    left = iter(inputs)
    return with_leaves(case, lambda _: next(left))
