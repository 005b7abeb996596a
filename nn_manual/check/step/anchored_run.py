"""torch's run of layers at our values, of one step or of many at once: the walk over chains and composites."""

from __future__ import annotations

import functools
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence

import torch

from nn_manual.check.step.plan import Plan
from nn_manual.check.step.tree import Item

Tensors = dict[str, torch.Tensor]


class AnchoredRun(ABC):
    """Each layer runs on *our* output of the layer before it. A subclass decides how a tensor gets our value.

    `values` has torch's own values, by the names in the plan: each layer's output from our input to it, and what a
    composite gives to its children.
    """

    def __init__(self) -> None:
        self.values: Tensors = {}

    def chain(self, items: Iterable[Item], node: torch.Tensor) -> torch.Tensor:
        """Layers one after the other: the last one's output."""
        for item in items:
            node = self.layer(item, node)
        return node

    @abstractmethod
    def layer(self, item: Item, node: torch.Tensor) -> torch.Tensor:
        """A layer's output, with our value in the place of torch's, which goes into `values`."""

    @abstractmethod
    def anchored(self, place: str, node: torch.Tensor) -> torch.Tensor:
        """Our value at this place, behind the tensor in torch's graph."""

    @abstractmethod
    def noise(self, item: Item) -> Tensors:
        """The random numbers that the layer itself took, by their names."""

    def composite(self, item: Item, node: torch.Tensor) -> torch.Tensor:
        """torch's output of a layer that is made of others: its reference, in which each of them is a function."""
        names = [f"{item.name}.{key}" for key in item.layer.children()]  # in the order of its fields
        children = [functools.partial(self.child, item, name, item.children[name]) for name in names]
        output: torch.Tensor = item.layer.reference(node, *children, **self.noise(item))
        return output

    def child(self, item: Item, name: str, chain: Sequence[Item], given: torch.Tensor) -> torch.Tensor:  # noqa: ARG002 - Anchored names it
        """What the reference of a composite calls with the input of one of its children."""
        if not chain:
            return given
        self.values[f"{name}.input"] = given.detach()
        return self.chain(chain, self.anchored(f"{name}.input", given))


def taken(item: Item) -> str:
    """The place of what a composite takes as its input: the layers in it, and what goes past them, start there."""
    return f"{item.name} takes"


#: torch's functions whose backward looks for the numbers that equal the result: only torch's own result equals one.
SEEKING_ITS_RESULT = {
    *("AmaxBackward0", "AminBackward0", "MaxBackward1", "MinBackward1", "MedianBackward0", "NanmedianBackward0"),
    *("LinalgVectorNormBackward0", "DistBackward0", "CdistBackward0", "PdistBackward0"),
}


def put_ours(output: torch.Tensor, ours: torch.Tensor) -> torch.Tensor:
    """Let the tensor have our value, and keep its graph; returns torch's value."""
    node = output.grad_fn
    if node is not None and hasattr(node, "_saved_result") and node.name() not in SEEKING_ITS_RESULT:
        # torch's backward will read its output where it lies, as our backward reads ours. Both must read the same:
        # for a saturated tanh, 1 - output**2 depends on the last bit.
        value = output.detach().clone()
        output.data.copy_(ours)
    else:
        value = output.detach()
        output.data = ours
    return value


def sums_over_uses(values: Tensors, plan: Plan) -> Tensors:
    """The gradient of each shared parameter: the sum of those of its uses."""
    return {
        name: torch.stack([values[plan.grad_names[use]] for use in uses]).sum(0) for name, uses in plan.sums.items()
    }
