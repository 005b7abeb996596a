"""One comparison of a function with its reference: the inputs, their layout, and the upstream gradients."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np
import torch

from nn_manual import streams
from nn_manual.arrays import Domain, size_of
from nn_manual.check.catalogue.input_kinds import draw, moved_into
from nn_manual.functions.arguments import Arguments, as_tensor
from nn_manual.functions.callables import Function, by_autograd, dtype_name, floats, is_array, label_of_function
from nn_manual.functions.exceptions import raised_by_the_reference
from nn_manual.functions.handwritten import Checked, Handwritten
from nn_manual.functions.settings import kept_generators
from nn_manual.streams import Stream

#: A random upstream gradient shows mistakes that ones would hide; a negative one shows a use of |grad_output|.
UPSTREAMS = ("random", "negative")

#: The dtypes in which values are judged by their distance to the reference in float64.
LOW_PRECISION = ("float16", "bfloat16")
SUPPORTED = ("float32", "float64", *LOW_PRECISION)

Change: TypeAlias = Callable[[Any], Any]


def eps_of(dtype: Any) -> float:
    """The distance from 1 to the next larger number, in a dtype of numpy or torch."""
    return float(torch.finfo(dtype).eps if isinstance(dtype, torch.dtype) else np.finfo(dtype).eps)


def unchanged(array: Any) -> Any:
    """The array itself."""
    return array


@dataclass(frozen=True)
class FunctionCase:
    """A function, its reference, the arguments of both, and the seed from which the gradients of the outputs are drawn.

    change: is applied to the floating inputs, and to the drawn gradients of the outputs. layout: gives the inputs of
    the function, not those of the reference, another layout in memory. upstream: is applied to the gradients of the
    outputs, for both. alone: the names of the inputs, or of the outputs, to which layout and upstream are applied; None
    means all. wanted: the names of the inputs whose gradients are asked for; None means all floating ones.
    absent: the outputs that get no gradient. tolerance: replaces the dtype's. settled: tensors that are known to be
    wrong, and are not compared again. drawn: whether the inputs are drawn, not the user's own; then what has no
    elements, or isn't finite in the reference, is not compared. own_terms: whether the rounding that is excused on
    drawn inputs may come from terms of the function that are larger than the reference's. excuses_terms: whether, on
    drawn inputs, a value may be off by a few roundings of its terms. watched: whether the check looks for writes of the
    function into its inputs and into what it saved or returned, which takes copies. habits: those that are known
    already. domains: where the floating inputs may lie, by name; "" stands for all others.
    """

    function: Checked
    reference: Function
    arguments: Arguments
    seed: int = 0
    change: Change = unchanged
    layout: Change = unchanged
    upstream: Change = unchanged
    alone: frozenset[str] | None = None
    upstreams: tuple[str, ...] = UPSTREAMS
    wanted: frozenset[str] | None = None
    absent: frozenset[str] = frozenset()
    tolerance: float | None = None
    settled: frozenset[str] = frozenset()
    drawn: bool = False
    own_terms: bool = True
    excuses_terms: bool = True
    watched: bool = True
    habits: frozenset[str] = frozenset()
    domains: Mapping[str, Domain] = field(default_factory=dict)

    @property
    def label(self) -> str:
        """The function's name."""
        return label_of_function(self.function)

    @property
    def floating(self) -> tuple[str, ...]:
        """The names of the floating inputs, without frozen parameters. Raises ValueError if there is no floating input,
        and TypeError for complex or sparse inputs, another byte order, and dtypes that can't be judged.
        """
        both = zip(self.arguments.names, self.arguments.leaves, strict=True)
        arrays = {name: leaf for name, leaf in both if is_array(leaf)}
        for name, leaf in arrays.items():
            if isinstance(leaf, torch.Tensor) and leaf.layout is not torch.strided:
                raise TypeError(f"{name} is sparse: pass its values, to a function that makes it of them")
            if isinstance(leaf, np.ndarray) and not leaf.dtype.isnative:
                raise TypeError(f"{name} has another byte order than torch: pass {name}.astype({leaf.dtype.name!r})")
        found = {name: dtype_name(leaf) for name, leaf in arrays.items()}
        found = {name: dtype for name, dtype in found.items() if "float" in dtype or "complex" in dtype}
        if not found:
            raise ValueError("none of the inputs is a floating array or tensor: there is no gradient to check")
        for name, dtype in found.items():
            if dtype not in SUPPORTED:
                raise TypeError(f"{name} is {dtype}: floating inputs must be {', '.join(SUPPORTED)}")
        return tuple(name for name in found if name not in self.arguments.frozen)

    @property
    def eps_of_low_precision(self) -> float | None:
        """The largest eps of the floating inputs of 16 bits; None if there are none."""
        dtypes = (leaf.dtype for leaf in self.arguments.leaves if floats(leaf) and dtype_name(leaf) in LOW_PRECISION)
        return max((eps_of(dtype) for dtype in dtypes), default=None)

    @property
    def is_low(self) -> bool:
        """Whether a floating input has 16 bits."""
        return self.eps_of_low_precision is not None

    @property
    def is_on_cuda(self) -> bool:
        """Whether an input lies on a CUDA device."""
        return any(is_array(leaf) and as_tensor(leaf).is_cuda for leaf in self.arguments.leaves)

    @property
    def is_in_float32(self) -> bool:
        """Whether all floating inputs are float32."""
        return all(dtype_name(leaf) == "float32" for leaf in self.arguments.leaves if floats(leaf))

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype that decides the tolerance: float64 if all floating inputs have 64 bits, else float32."""
        names = {dtype_name(self.change(leaf)) for leaf in self.arguments.leaves if floats(leaf)}
        return np.dtype("float64" if names == {"float64"} else "float32")

    @property
    def batch_size(self) -> int | None:
        """The first dimension of the first input that has one; None if none has."""
        return next((leaf.shape[0] for leaf in self.arguments.leaves if is_array(leaf) and leaf.ndim), None)

    def domain(self, name: str) -> Domain:
        """Where an input may lie."""
        return self.domains.get(name, self.domains.get("", "real"))

    def wants(self) -> list[bool]:
        """For each leaf, whether its gradient is asked for."""
        named = zip(self.arguments.names, self.arguments.leaves, strict=True)
        frozen = self.arguments.frozen
        return [
            floats(leaf) and name not in frozen and (self.wanted is None or name in self.wanted)
            for name, leaf in named
        ]

    def leaves(self) -> list[Any]:
        """What the reference runs on."""
        return [self.change(leaf) if floats(leaf) else leaf for leaf in self.arguments.leaves]

    def leaves_in_layout(self) -> list[Any]:
        """What the function runs on: the same values, in this case's layout."""
        if self.layout is unchanged:
            return self.leaves()
        named = zip(self.arguments.names, self.leaves(), strict=True)
        return [self._lain_out(leaf) if is_array(leaf) and self._is_meant(name) else leaf for name, leaf in named]

    def _is_meant(self, name: str) -> bool:
        """Whether layout and upstream are applied to what has this name."""
        return self.alone is None or name in self.alone

    def _lain_out(self, leaf: Any) -> Any:
        tensor = self.layout(as_tensor(leaf))
        return tensor if isinstance(leaf, torch.Tensor) else tensor.numpy()

    def differentiable(self, outputs: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        """Those outputs of the function that get a gradient: autograd follows them; or it follows the reference's, if
        the function is handwritten.
        """
        followed = outputs
        if isinstance(self.function, Handwritten):
            with raised_by_the_reference(), kept_generators():
                followed = by_autograd(self.reference, self.arguments, self.leaves(), self.wants()).outputs
        carrying = {name for name, output in followed.items() if output.requires_grad}
        return {name: output.detach() for name, output in outputs.items() if name in carrying}

    def grad_outputs(self, outputs: Mapping[str, torch.Tensor]) -> Iterator[tuple[str, dict[str, torch.Tensor]]]:
        """Each kind of upstream gradient, with the gradients of the outputs that are used, by name."""
        generator = streams.generator(self.seed, Stream.UPSTREAM)  # not the numbers of inputs from the same seed
        for kind in self.upstreams:
            drawn = {
                name: as_tensor(draw(kind, tuple(output.shape), self.dtype.name, generator))
                for name, output in outputs.items()
            }
            changed = {name: self.change(grad).to(outputs[name]) for name, grad in drawn.items()}
            yield (
                kind,
                {
                    name: self.upstream(grad) if self._is_meant(name) else grad
                    for name, grad in changed.items()
                    if name not in self.absent
                },
            )


def longest_sum(arrays: Sequence[Any]) -> int:
    """The longest dimension of the arrays, where all but the last count as one: few sums are longer."""
    shapes = (array.shape for array in arrays if array.ndim)
    return max((max(*shape, size_of(shape[:-1])) for shape in shapes), default=1)


def with_leaves(case: FunctionCase, change: Callable[[torch.Tensor], torch.Tensor]) -> FunctionCase:
    """The case with other values of its floating inputs, moved into their domains."""

    def changed(name: str, leaf: Any) -> Any:
        if not floats(leaf):
            return leaf
        tensor = change(as_tensor(leaf).detach())
        if (domain := case.domain(name)) != "real":
            inside = torch.from_numpy(moved_into(domain, tensor.double().cpu().numpy())).to(tensor)
            tensor = torch.where(inside == tensor, tensor, inside)
        return tensor if isinstance(leaf, torch.Tensor) else tensor.numpy()

    leaves = tuple(map(changed, case.arguments.names, case.arguments.leaves))
    return replace(case, arguments=replace(case.arguments, leaves=leaves), drawn=True)
