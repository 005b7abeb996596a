"""What a row is given, and how it says what it found."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, TypeAlias

import torch

from nn_manual.arrays import Domain
from nn_manual.check.compare.comparison import CannotCompare
from nn_manual.errors import raise_if_nobodys_fault
from nn_manual.functions.arguments import Arguments, arguments_of, as_tensor
from nn_manual.functions.battery.lengths import (
    Sizes,
    cut,
    cut_if_large,
    full_sizes,
    is_steady,
    large_sizes,
    ragged_sizes,
    small_sizes,
)
from nn_manual.functions.callables import Function, dtype_name, floats, is_array, label_of_function
from nn_manual.functions.device import what_lost_the_device
from nn_manual.functions.forward_slopes import KnownSlopes
from nn_manual.functions.function_case import FunctionCase
from nn_manual.functions.handwritten import Checked, Handwritten
from nn_manual.functions.judged_case import judge
from nn_manual.functions.own_forward import OwnForward
from nn_manual.functions.watched_runs import Between
from nn_manual.messages.text import counted

#: A list of tensors, a mapping by keyword, or a function of a generator and sizes that makes either.
Inputs: TypeAlias = Sequence[Any] | Mapping[str, Any] | Callable[..., Any]
#: One dtype for all floating inputs, or one for each.
Dtype: TypeAlias = str | tuple[str, ...]
#: What a row runs: it returns a note, or None.
Run: TypeAlias = Callable[[], str | None]
Family: TypeAlias = Callable[["Trial"], Iterator[tuple[str, Run]]]


class Wrong(Exception):  # noqa: N818 - a verdict, not a failure of the check
    """The function is wrong, and the text says how."""


class Skip(Exception):  # noqa: N818 - as above
    """Nothing can be said, and the text says why."""


@dataclass(frozen=True)
class Trial:
    """A function, its reference, and what they are tried on. `dtypes` has at least one entry, and the rows run in the
    first; None means the inputs' own dtype. `settled` are the tensors that the comparison of the values has found
    wrong: the rows look at the others. `habits` are those of the function, with a sentence about each. Without a
    reference, the function is compared with its own forward, whose `slopes` are measured once.
    """

    function: Checked
    reference: Function | None
    inputs: Inputs
    dtypes: tuple[Dtype | None, ...]
    sizes: Sizes
    kinds: tuple[str, ...] | None
    tolerance: float | None
    seed: int
    settled: frozenset[str] = frozenset()
    habits: Mapping[str, str] = field(default_factory=dict)
    device: str | None = None
    domains: Mapping[str, Domain] = field(default_factory=dict)
    slopes: KnownSlopes = field(default_factory=KnownSlopes)

    @property
    def label(self) -> str:
        """The function's name."""
        return label_of_function(self.function)

    @property
    def is_pair(self) -> bool:
        """Whether the function is handwritten: differentiable once, and always for every input."""
        return isinstance(self.function, Handwritten)

    @property
    def full_sizes(self) -> dict[str, int]:
        """The largest size of each dimension."""
        return full_sizes(self.sizes)

    @cached_property
    def small_sizes(self) -> dict[str, int]:
        """Small sizes, or the full ones if the function or its reference doesn't take small ones."""
        small = small_sizes(self.sizes)
        try:
            judge(self.at(small))
        except Exception as error:  # anyone's function may raise anything; the run at the full sizes says what
            raise_if_nobodys_fault(error)
            if what_lost_the_device():
                raise
            return self.full_sizes
        return small

    @cached_property
    def case(self) -> FunctionCase:
        """The given inputs, or inputs of small sizes, in the first dtype."""
        return self.at(self.small_sizes) if callable(self.inputs) else self._cut()

    def _cut(self) -> FunctionCase:
        """The given inputs. If they are large: their first rows and columns, if the function and its reference take
        these.
        """
        case = self.at({})
        small = cut(case)
        if small is not None:
            try:
                judge(small)
            except Exception as error:  # anyone's function may raise anything; the run on all inputs says what
                raise_if_nobodys_fault(error)
                if what_lost_the_device():
                    raise
                return case
        return small or case

    @cached_property
    def large_case(self) -> FunctionCase | None:
        """The case for rows that run on a large size, too, since a kernel may take another path there. It has one
        upstream gradient, and the full size, or a smaller one with the same remainders if the full one is too large.
        None if all rows run on the full size anyway, or if the function is wrong there already before a row changes
        anything.
        """
        if self.is_whole:
            return None
        try:
            case = self.at(large_sizes(self.sizes)) if callable(self.inputs) else cut_if_large(self.at({}))
            case = replace(case, watched=False, upstreams=case.upstreams[:1])
            return case if judge(case).agrees else None
        except Exception as error:  # anyone's function may raise anything; the row of the full size says what
            raise_if_nobodys_fault(error)
            return None

    @cached_property
    def ragged_case(self) -> FunctionCase | None:
        """The case for the layouts, on sizes that no block divides: odd ones, or even ones if odd ones are refused.
        None if the inputs are given, or if the function is wrong on these sizes already in the usual layout.
        """
        if not callable(self.inputs):
            return None
        for step in (1, 2):
            try:
                case = self.at({**self.small_sizes, **ragged_sizes(self.sizes, step)})
                case = replace(case, watched=False, upstreams=case.upstreams[:1], drawn=True)
                if judge(case).agrees and is_steady(case):
                    return case
            except Exception as error:  # anyone's function may raise anything; the rows of sizes say what
                raise_if_nobodys_fault(error)
                continue
        return None

    def like_case(self, dtype: Dtype | None) -> FunctionCase:
        """The case of the rows in another dtype."""
        if callable(self.inputs):
            return self.at(self.small_sizes, dtype)
        return replace(self.case, arguments=in_dtype(self.case.arguments, dtype))

    @property
    def is_whole(self) -> bool:
        """Whether the rows run on the full sizes, or on the given inputs uncut."""
        if callable(self.inputs):
            return self.full_sizes == self.small_sizes
        whole = self.at({}).arguments.leaves
        both = zip(whole, self.case.arguments.leaves, strict=True)
        return all(one.shape == other.shape for one, other in both if is_array(one))

    def at(self, sizes: Mapping[str, int], dtype: Dtype | None = None) -> FunctionCase:
        """The case of these sizes, in the first dtype or another one."""
        inputs = self.inputs
        if callable(inputs):
            try:
                inputs = inputs(torch.Generator().manual_seed(self.seed), **sizes)
            except Exception as error:  # a user's own may raise anything
                error.add_note(f"raised by the function that makes the inputs, for {dict(sizes)}")
                raise
        arguments = arguments_of(self.function, self.reference or self.function, inputs)
        arguments = in_dtype(arguments, self.dtypes[0] if dtype is None else dtype)
        if self.device is not None:
            leaves = (as_tensor(leaf).to(self.device) if is_array(leaf) else leaf for leaf in arguments.leaves)
            arguments = replace(arguments, leaves=tuple(leaves))
        as_arrays = not any(isinstance(leaf, torch.Tensor) for leaf in arguments.leaves)
        reference = self.reference or OwnForward(self.function, as_arrays=as_arrays, known=self.slopes)
        return FunctionCase(
            self.function,
            reference,
            arguments,
            self.seed,
            tolerance=self.tolerance,
            settled=self.settled,
            habits=frozenset(self.habits),
            domains=self.domains,
        )


def in_dtype(arguments: Arguments, dtype: Dtype | None) -> Arguments:
    """The arguments in one dtype, or in one for each floating input; ValueError if these are too many or too few."""
    if dtype is None:
        return arguments
    floating = [name for name, leaf in zip(arguments.names, arguments.leaves, strict=True) if floats(leaf)]
    names = (dtype,) * len(floating) if isinstance(dtype, str) else dtype
    if len(names) != len(floating):
        given, taken = counted(len(names), "dtype"), counted(len(floating), "floating input")
        raise ValueError(f"{given} for {taken}: {', '.join(floating)}")
    by_name = dict(zip(floating, names, strict=True))

    def cast(name: str, leaf: Any) -> Any:
        if name not in by_name or dtype_name(leaf) == by_name[name]:
            return leaf
        tensor = as_tensor(leaf).to(getattr(torch, by_name[name]))
        return tensor if isinstance(leaf, torch.Tensor) or by_name[name] == "bfloat16" else tensor.numpy()

    leaves = tuple(cast(name, leaf) for name, leaf in zip(arguments.names, arguments.leaves, strict=True))
    return replace(arguments, leaves=leaves)


def agree(case: FunctionCase, between: Between | None = None) -> str | None:
    """Raise Wrong if the function differs from its reference in this case; returns a note if it does so at a kink. In
    16 bits a row can make a gradient that is all rounding: this is excused as on drawn inputs.
    """
    if case.is_low:
        case = replace(case, drawn=True)
    report = judge(case, between)
    if not report.agrees:
        raise Wrong(report.in_words())
    for habit, sentence in report.habits.items():
        if habit not in case.habits:
            raise Wrong(sentence)
    return next(iter(report.kinks.values()), None)


def on_all_sizes(trial: Trial, run: Callable[[FunctionCase], object]) -> None:
    """Run on the usual case, then on the large one and on the one with a tail, if there are such."""
    run(trial.case)
    for larger in (trial.large_case, trial.ragged_case):
        if larger is None:
            continue
        try:
            run(larger)
        except (Wrong, CannotCompare) as problem:
            named = zip(larger.arguments.names, larger.arguments.leaves, strict=True)
            sizes = ", ".join(f"{name} {'x'.join(map(str, leaf.shape))}" for name, leaf in named if floats(leaf))
            raise Wrong(f"right on small inputs, but not on {sizes}: {problem}") from problem
