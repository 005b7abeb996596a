"""Which of torch's own operations check_function blames, beside their compositions in torch._refs.

torch's tests list the operations in OpInfo, with samples of their inputs. torch._refs defines many of them as
compositions of other operations. The first 100 by name are taken whose composition autograd can differentiate. Many
compositions are one primitive, which has no derivative: that of exp, for example.
"""

from __future__ import annotations

import importlib.util
import itertools
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import torch
from torch.utils import _pytree as pytree

from nn_manual import check_function
from nn_manual.functions.callables import floats
from nn_manual.functions.function_report import FunctionReport

NUM_OPERATIONS = 100
DTYPES = ("float32", "float64")
#: So many samples of each entry of OpInfo: later ones differ from these in settings more than in formulas.
NUM_SAMPLES = 3


@dataclass(frozen=True)
class Sample:
    """A sample of an operation and of its composition: all that both get, in a flat list of `leaves` with names."""

    operation: Callable[..., Any]
    composition: Callable[..., Any]
    label: str
    names: Sequence[str]
    leaves: Sequence[Any]
    structure: pytree.TreeSpec

    @property
    def inputs(self) -> dict[str, torch.Tensor]:
        """The tensors that require a gradient, and those of integers and truth values."""
        found = {name: leaf for name, leaf in zip(self.names, self.leaves, strict=True) if torch.is_tensor(leaf)}
        return {name: leaf.detach() for name, leaf in found.items() if leaf.requires_grad or not floats(leaf)}

    def of_inputs(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """The operation or the composition, as a function of the inputs. The other tensors are constants, such as the
        weights of classes; they have the dtype of the inputs.
        """

        def called(**inputs: torch.Tensor) -> Any:
            dtype = next(tensor.dtype for tensor in inputs.values() if floats(tensor))
            constants = (leaf.detach().to(dtype) if floats(leaf) else leaf for leaf in self.leaves)
            leaves = [inputs.get(name, leaf) for name, leaf in zip(self.names, constants, strict=True)]
            input, args, kwargs = pytree.tree_unflatten(leaves, self.structure)
            return function(input, *args, **kwargs)

        called.__name__ = self.label
        return called

    def why_not(self) -> str:
        """Why nothing can be compared; empty if it can."""
        inputs = {name: leaf.clone().requires_grad_(floats(leaf)) for name, leaf in self.inputs.items()}
        floating = [leaf for leaf in inputs.values() if floats(leaf)]
        if not floating:
            return "no floating input requires a gradient"
        try:
            outputs = _tensors(self.of_inputs(self.composition)(**inputs))
            if any(output.is_complex() for output in outputs):
                return "the output is complex"
            carrying = [output for output in outputs if output.requires_grad]
            torch.autograd.grad([output.sum() for output in carrying], floating, allow_unused=True)
        except Exception as error:  # a composition may raise anything
            return str(error).splitlines()[0].partition(". ")[0]
        is_random = any(map(self._is_random, (self.operation, self.composition)))
        return "it draws random numbers" if is_random else ""

    def _is_random(self, function: Callable[..., Any]) -> bool:
        once, again = (_tensors(self.of_inputs(function)(**self.inputs)) for _ in range(2))
        return not all(itertools.starmap(_equal, zip(once, again, strict=True)))

    def report(self) -> FunctionReport:
        """What check_function says of the operation beside the composition."""
        return check_function(self.of_inputs(self.operation), self.of_inputs(self.composition), self.inputs)


@dataclass(frozen=True)
class Operation:
    """An operation with a composition: its name, and its entries in OpInfo, which are variants."""

    name: str
    entries: Sequence[Any]
    composition: Callable[..., Any]

    def all_samples(self, entry: Any, dtype: str) -> Iterator[Sample]:
        """All samples of an entry, always the same ones."""
        torch.manual_seed(0)
        for number, sample in enumerate(entry.sample_inputs("cpu", getattr(torch, dtype), requires_grad=True)):
            given, structure = pytree.tree_flatten_with_path((sample.input, sample.args, sample.kwargs))
            names = [_name(path) for path, _ in given]
            label = " ".join(filter(None, (self.name, entry.variant_test_name, f"sample {number}, {dtype}")))
            yield Sample(entry.op, self.composition, label, names, [leaf for _, leaf in given], structure)

    def samples(self, dtype: str) -> Iterator[Sample]:
        """The first samples of each entry that can be compared."""
        for entry in filter(_is_differentiable, self.entries):
            yield from itertools.islice((s for s in self.all_samples(entry, dtype) if not s.why_not()), NUM_SAMPLES)

    def reports(self) -> dict[str, FunctionReport]:
        """What check_function says of each sample, by its label."""
        return {sample.label: sample.report() for dtype in DTYPES for sample in self.samples(dtype)}

    def why_left_out(self) -> str:
        """Why no sample can be compared; empty if one can."""
        differentiable = list(filter(_is_differentiable, self.entries))
        if not differentiable:
            return "OpInfo says that it isn't differentiable"
        reasons = (sample.why_not() for entry in differentiable for sample in self.all_samples(entry, DTYPES[0]))
        first = next(reasons, "no sample")
        return first and ("" if "" in reasons else first)


def _is_differentiable(entry: Any) -> bool:
    return bool(entry.supports_autograd) and torch.float32 in entry.supported_dtypes("cpu")


def _tensors(returned: Any) -> list[torch.Tensor]:
    return [leaf for leaf in pytree.tree_leaves(returned) if torch.is_tensor(leaf)]


def _equal(one: torch.Tensor, other: torch.Tensor) -> bool:
    return torch.allclose(one, other, rtol=0, atol=0, equal_nan=True)


def _name(path: Sequence[Any]) -> str:
    """The name of a leaf of (input, args, kwargs): "input", "args[0]", or that of a keyword."""
    (which, *rest) = path
    if which.idx == 2:
        keyword, *rest = rest
        return f"{keyword.key}{pytree.keystr(tuple(rest))}"
    return f"{('input', 'args')[which.idx]}{pytree.keystr(tuple(rest))}"


def operations() -> Iterator[Operation]:
    """All operations that have a composition, by name."""
    from torch.testing._internal.common_methods_invocations import op_db  # takes seconds, and changes torch's settings

    for name, entries in itertools.groupby(sorted(op_db, key=lambda entry: str(entry.name)), lambda entry: entry.name):
        composition = reduce(lambda module, part: getattr(module, part, None), name.split("."), torch._refs)
        if callable(composition):
            yield Operation(name, list(entries), composition)


def chosen() -> tuple[list[Operation], dict[str, str]]:
    """The first operations that can be compared; and the names of those before them that can't, each with the reason."""
    taken: list[Operation] = []
    left_out = dict[str, str]()
    for operation in operations():
        if len(taken) == NUM_OPERATIONS:
            break
        if reason := operation.why_left_out():
            left_out[operation.name] = reason
        else:
            taken.append(operation)
    return taken, left_out


def main(numbers: range | None = None) -> int:
    """Judge the operations, or those with these numbers, and print what is blamed. Returns 1 if anything is, 2 if torch's
    tests can't be imported, else 0.
    """
    if importlib.util.find_spec("expecttest") is None:
        print("torch's tests import expecttest, which isn't there: pip install 'nn_manual[dev]'", file=sys.stderr)
        return 2
    warnings.simplefilter("ignore")
    start = time.perf_counter()
    taken, left_out = chosen()
    for reason, names in _by_reason(left_out).items():
        print(f"left out, {reason}: {', '.join(names)}")
    num_samples, blamed = 0, list[str]()
    for number in range(len(taken)) if numbers is None else numbers:
        reports = taken[number].reports()
        wrong = [f"{label}:\n{report}\n" for label, report in reports.items() if not report.passed]
        print(f"{number} {taken[number].name}: {len(reports)} samples, {len(wrong)} blamed", *wrong, sep="\n", flush=True)
        num_samples += len(reports)
        blamed += [taken[number].name] if wrong else []
    print(f"{len(blamed)} operations blamed of {num_samples} ... in {time.perf_counter() - start:.0f} s")
    return int(bool(blamed))


def _by_reason(left_out: Mapping[str, str]) -> dict[str, list[str]]:
    found = dict[str, list[str]]()
    for name, reason in left_out.items():
        found.setdefault(reason, []).append(name)
    return found
