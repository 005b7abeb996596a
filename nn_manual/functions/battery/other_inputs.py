"""Other inputs of the same function: other floating values, other integers and truth values, and other sizes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import replace
from typing import Any, TypeAlias

import torch

from nn_manual.errors import raise_if_nobodys_fault
from nn_manual.functions.arguments import as_tensor
from nn_manual.functions.battery.lengths import Choice, free_dimensions, lengths_of, shortened
from nn_manual.functions.battery.trial import Trial
from nn_manual.functions.callables import dtype_name, floats, is_array
from nn_manual.functions.function_case import FunctionCase, with_leaves

#: Makes other values of a floating tensor.
Change: TypeAlias = Callable[[torch.Tensor], torch.Tensor]


def on_other_values(case: FunctionCase) -> FunctionCase:
    """The case with the same floating numbers, in other places and somewhat smaller: most functions take these."""
    return with_leaves(case, moved_and_smaller)


def moved_and_smaller(tensor: torch.Tensor) -> torch.Tensor:
    """The same numbers, in other places and three quarters as large. If all are zero, as a bias is at first, they
    become 1/4.
    """
    other = 0.75 * tensor.detach().flatten().roll(1).reshape(tensor.shape)
    return other + 0.25 if torch.equal(other, tensor) else other


def smaller(tensor: torch.Tensor) -> torch.Tensor:
    """Three quarters of each number: a symmetric matrix stays symmetric."""
    return 0.75 * tensor


def turned(tensor: torch.Tensor) -> torch.Tensor:
    """The same numbers in other places: probabilities and orthogonal matrices stay what they are."""
    return tensor.flip(tuple(range(tensor.ndim)))


#: What makes other floating inputs of a function's own: most functions take the first.
OTHER_FLOATS = (moved_and_smaller, smaller, turned)


def other_floats(case: FunctionCase) -> Iterator[FunctionCase]:
    """Other floating inputs, as far as they are others."""
    for change in OTHER_FLOATS:
        other = with_leaves(case, change)
        pairs = zip(case.arguments.leaves, other.arguments.leaves, strict=True)
        if change is not turned or not any(torch.equal(as_tensor(a), as_tensor(b)) for a, b in pairs if floats(a)):
            yield other


def other_integers_or_truth_values(case: FunctionCase) -> Iterator[FunctionCase]:
    """Others in all inputs, since they may have to fit each other; then in each alone."""
    leaves = case.arguments.leaves
    places = [i for i, leaf in enumerate(leaves) if changed(leaf) is not leaf]
    for chosen in [places, *([place] for place in places)] if places else ():
        yield with_other_integers(case, chosen)


def with_other_integers(case: FunctionCase, places: Collection[int]) -> FunctionCase:
    """The case with other integers or truth values in the inputs at these places."""
    leaves = tuple(changed(leaf) if i in places else leaf for i, leaf in enumerate(case.arguments.leaves))
    return replace(case, arguments=replace(case.arguments, leaves=leaves), drawn=True)


def changed(leaf: Any, of_floats: Change | None = None) -> Any:
    """An input with other values; itself where there are none: floating ones without a function that makes others."""
    if not is_array(leaf) or (floats(leaf) and of_floats is None):
        return leaf
    tensor = as_tensor(leaf).detach()
    other = of_floats(tensor) if of_floats is not None and floats(leaf) else other_integers(tensor)
    if other is None:
        return leaf
    return other if isinstance(leaf, torch.Tensor) else other.numpy()


def other_integers(tensor: torch.Tensor) -> torch.Tensor | None:
    """Other values for a tensor that isn't floating; None if there are no others. Truth values are moved by one place:
    in a mask of an attention each row keeps at least one place that counts. Where all are equal, each second one is
    negated. Of integers that are all equal, such as lengths or weights, each second one becomes its neighbour nearer to
    zero, and so does a seed; 0 becomes 1. A permutation becomes 1, 2, ..., 0, which isn't its own inverse; that one
    becomes its inverse. Ascending ones, which may be offsets, are mirrored: they stay ascending, with the same ends.
    All others are reversed; if any come several times, the first becomes another one of them.
    """
    if tensor.numel() == 0 or tensor.is_complex():
        return None
    if tensor.dtype == torch.bool:
        return _other_mask(tensor)
    own = tensor.to(torch.int64)  # torch neither turns nor subtracts unsigned ones
    other, count = own.flip(tuple(range(own.ndim))), torch.arange(own.shape[-1] if own.ndim else 1, device=own.device)
    if bool((own == own.reshape(-1)[0]).all()):
        other = torch.where(_each_second(own), torch.where(own > 0, own - 1, own + 1), own)
    elif bool((own.sort(-1).values == count).all()):
        several = (each.expand_as(own) for each in (count.roll(-1), count.roll(1), count))
        other = next(each for each in several if not torch.equal(each, own))
    elif own.equal(own.sort(-1).values):
        other = own[..., :1] + own[..., -1:] - own.flip(-1)
    elif len(set(own.flatten().tolist())) < own.numel():  # they may come several times: so one comes more often
        other.view(-1)[0] = next(each for each in other.view(-1) if each != other.view(-1)[0])
    return None if torch.equal(other, own) else other.to(tensor.dtype)


def _other_mask(mask: torch.Tensor) -> torch.Tensor:
    """Moved by one place, along the last axis along which the truth values differ. Then one more becomes true, in a row
    in which another one stays false: a mean over a constant number of them is wrong.
    """
    for axis in reversed(range(mask.ndim)):
        if not torch.equal(moved := mask.roll(1, axis), mask):
            rows = moved.reshape(-1, mask.shape[-1])
            for i in ((~rows).sum(-1) > 1).nonzero()[:1].flatten():
                rows[i, rows[i].int().argmin()] = True
            return moved
    return mask ^ _each_second(mask)


def _each_second(tensor: torch.Tensor) -> torch.Tensor:
    """Whether an entry is the second, the fourth, ...; a single one is."""
    return torch.arange(1, tensor.numel() + 1, device=tensor.device).reshape(tensor.shape) % 2 == (tensor.numel() == 1)


def other_sizes(trial: Trial) -> Iterator[FunctionCase]:
    """All dimensions one longer, or each alone, or another one of a choice. Given inputs are cut instead, unless there
    are integers among them: these may count rows, and a kernel would write behind the end.
    """
    case = trial.case
    if callable(trial.inputs):
        small, free = trial.small_sizes, free_dimensions(trial.sizes)
        longer = [{name: small[name] + 1 for name in names} for names in (free, *([name] for name in free)) if names]
        chosen = {name: given for name, given in trial.sizes.items() if isinstance(given, Choice)}
        longer += [{name: size} for name, given in chosen.items() for size in given if size != small[name]]
        for changed in longer:
            try:
                other = trial.at({**small, **changed})
            except Exception as error:  # the user's own function of the sizes may raise anything
                raise_if_nobodys_fault(error)
                continue
            yield replace(other, drawn=True)
    elif not any(is_array(leaf) and "int" in dtype_name(leaf) for leaf in case.arguments.leaves):
        lengths = [length for length in lengths_of(case) if length > 1]
        for cut in (lengths, *([length] for length in lengths)):
            yield replace(shortened(case, {length: length - 1 for length in cut}), drawn=True)
