"""torch's own operations with a composition in torch._refs, and the samples on which both can be compared."""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils import _pytree as pytree

from nn_manual import check_function
from nn_manual.errors import first_words_of
from nn_manual.functions.callables import as_copy, floats
from nn_manual.functions.function_report import FunctionReport

#: So many samples of each entry of OpInfo: later ones differ from these in settings more than in formulas.
NUM_SAMPLES = 3
DTYPES = ("float32", "float64")
#: What OpInfo calls the positional arguments of an operation.
POSITIONAL = ("input", "args")


@dataclass(frozen=True)
class Sample:
    """An operation, its composition, and what both get: a flat list of `leaves`, with a name for each. `says_itself` is
    whether OpInfo says that torch's own check of this gradient fails.
    """

    operation: Callable[..., Any]
    composition: Callable[..., Any]
    label: str
    says_itself: bool
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
        weights of classes; they get the dtype of the inputs.
        """

        def called(**inputs: torch.Tensor) -> Any:
            dtype = next(tensor.dtype for tensor in inputs.values() if floats(tensor))
            constants = (leaf.detach().to(dtype) if floats(leaf) else leaf for leaf in self.leaves)
            leaves = [inputs.get(name, leaf) for name, leaf in zip(self.names, constants, strict=True)]
            input, args, kwargs = pytree.tree_unflatten(leaves, self.structure)
            return function(input, *args, **kwargs)

        called.__name__ = self.label
        return called

    def report(self) -> FunctionReport:
        """What check_function says of the operation beside the composition."""
        return check_function(self.of_inputs(self.operation), self.of_inputs(self.composition), self.inputs)

    def why_not(self) -> str:
        """Why a comparison would prove nothing; empty if it would."""
        if not any(map(floats, self.inputs.values())):
            return "no floating input requires a gradient"
        try:
            (outputs, grads), (_, others) = map(self._computed, (self.composition, self.operation))
        except Exception as error:  # a composition may raise anything
            is_prim = "backward" in str(error) and "prim" in str(error)
            return "a primitive of the composition has no derivative" if is_prim else first_words_of(error)
        if any(grad is None and other is not None for grad, other in zip(grads, others, strict=True)):
            return "a primitive of the composition loses a gradient"
        found = [*outputs, *(grad for grad in grads if grad is not None)]
        if not outputs or not all(tensor.any() for tensor in found):
            return "an output or a gradient is empty, or zero everywhere"
        if any(tensor.is_complex() for tensor in found):
            return "an output is complex"
        if not all(tensor.isfinite().all() for tensor in found):
            return "an output or a gradient of the composition isn't finite"
        return "it draws random numbers" if self._draws() else ""

    def _draws(self) -> bool:
        """Whether the operation or the composition asks torch for random numbers. Equal results show nothing: a dropout
        often keeps a single number.
        """
        before = torch.get_rng_state()
        for function in (self.operation, self.composition):
            self.of_inputs(function)(**self.inputs)
        return not torch.equal(before, torch.get_rng_state())

    def _computed(self, function: Callable[..., Any]) -> tuple[list[torch.Tensor], Sequence[torch.Tensor | None]]:
        """The differentiable outputs, and the gradients of the floating inputs under a random upstream gradient."""
        inputs = {name: as_copy(leaf).requires_grad_(floats(leaf)) for name, leaf in self.inputs.items()}
        outputs = [output for output in _tensors(self.of_inputs(function)(**inputs)) if output.requires_grad]
        generator = torch.Generator().manual_seed(0)
        upstream = [torch.randn(each.shape, dtype=each.dtype, generator=generator) for each in outputs]
        floating = [leaf for leaf in inputs.values() if floats(leaf)]
        return outputs, torch.autograd.grad(outputs, floating, upstream, allow_unused=True)


@dataclass(frozen=True)
class Operation:
    """An operation: its name, its composition, and its entries in OpInfo, which are variants of it."""

    name: str
    composition: Callable[..., Any]
    entries: Sequence[Any]

    def samples(self) -> Iterator[Sample]:
        """The first samples of each entry that prove something, in each dtype."""
        for entry, dtype in itertools.product(self.entries, DTYPES):
            proving = (sample for sample in self._all_samples(entry, dtype) if not sample.why_not())
            yield from itertools.islice(proving, NUM_SAMPLES)

    def why_left_out(self) -> str:
        """Why no sample proves anything; empty if one does."""
        first = None
        for entry in self.entries:
            for sample in self._all_samples(entry, DTYPES[0]):
                reason = sample.why_not()
                if not reason:
                    return ""
                first = first or reason
        if first is None and any(entry.supports_autograd for entry in self.entries):
            return "it takes no real numbers"
        return first or "OpInfo says that it isn't differentiable"

    def _all_samples(self, entry: Any, dtype: str) -> Iterator[Sample]:
        """All samples of an entry, in each run the same. None if it isn't differentiable."""
        torch_dtype = getattr(torch, dtype)
        if not entry.supports_autograd or torch_dtype not in entry.supported_dtypes("cpu"):
            return
        torch.manual_seed(0)
        for number, sample in enumerate(entry.sample_inputs("cpu", torch_dtype, requires_grad=True)):
            given, structure = pytree.tree_flatten_with_path((sample.input, sample.args, sample.kwargs))
            label = " ".join(filter(None, (self.name, entry.variant_test_name, f"{dtype} {number}")))
            names, leaves = [_name(path) for path, _ in given], [leaf for _, leaf in given]
            yield Sample(entry.op, self.composition, label, _says_itself(entry, torch_dtype), names, leaves, structure)


def operations() -> Iterator[Operation]:
    """All operations that have a composition, by name. It takes seconds, and leaves torch with other settings."""
    from torch.testing._internal.common_methods_invocations import op_db

    for name, entries in itertools.groupby(sorted(op_db, key=lambda entry: str(entry.name)), lambda entry: entry.name):
        composition: Any = torch._refs
        for part in name.split("."):
            composition = getattr(composition, part, None)
        if callable(composition):
            yield Operation(name, composition, list(entries))


def _says_itself(entry: Any, dtype: torch.dtype) -> bool:
    """Whether torch's tests skip the check of this entry's gradient, or expect that it fails. That is a function which
    decorates a test; what loosens a tolerance is an object.
    """
    aimed = (each for each in entry.decorators if hasattr(each, "is_active"))
    active = (each for each in aimed if each.is_active("TestBwdGradients", "test_fn_grad", "cpu", dtype, {}))
    return any(inspect.isfunction(decorator) for each in active for decorator in each.decorators)


def _tensors(returned: Any) -> list[torch.Tensor]:
    return [leaf for leaf in pytree.tree_leaves(returned) if torch.is_tensor(leaf)]


def _name(path: Sequence[Any]) -> str:
    """The name of a leaf of (input, args, kwargs): "input", "args[0]", or that of the keyword."""
    which, *inner = path
    if which.idx < len(POSITIONAL):
        return f"{POSITIONAL[which.idx]}{pytree.keystr(tuple(inner))}"
    return f"{inner[0].key}{pytree.keystr(tuple(inner[1:]))}"
