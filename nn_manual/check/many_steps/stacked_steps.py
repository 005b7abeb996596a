"""torch's run of many steps at once: the anchored reference of one step, under torch.vmap.

Anchored steps don't depend on each other. So each layer's function runs on all of them in one call, their parameters
and inputs stacked along a first axis, and one backward of the summed losses gives the gradients of all. A call of torch
takes longer than what a small layer computes in it: this is what is saved.
"""

from __future__ import annotations

import copy
import functools
from collections.abc import Sequence

import torch

from nn_manual.arrays import Array
from nn_manual.check.many_steps.one_layer import CannotStack, LayerRun, described, stackable
from nn_manual.check.many_steps.ring import BEFORE, NOISE, Ring
from nn_manual.check.step.anchored_run import Tensors, put_ours, sums_over_uses, taken
from nn_manual.check.step.plan import Plan
from nn_manual.check.step.tree import Item, walk
from nn_manual.check.twin.layers import Source
from nn_manual.check.twin.model import TORCH_DTYPES, loss_function, reference_settings
from nn_manual.errors import raise_if_nobodys_fault
from nn_manual.losses import Loss
from nn_manual.model import Sequential


class StackedSteps:
    """torch's version of a model and its loss, for many steps of one plan at once.

    `leaves` has for each place in torch's graph that gets a gradient the tensor of the ring whose values stand there;
    `places` has the place of each gradient of the plan.
    """

    @reference_settings()
    def __init__(self, plan: Plan, model: Sequential, loss: Loss) -> None:
        """Raises CannotStack for a layer that is compared with differences of its own forward."""
        self.plan, self.model = plan, model
        self.first_of, self.uses = model.ties.first_of, list(model.uses())
        dtype = TORCH_DTYPES[model.dtype.name]
        self.modules: dict[str, torch.nn.Module] = {}
        for item in plan.items:
            counterpart = plan.counterparts[item.name]
            if counterpart.source is Source.FORWARD:
                raise CannotStack(f"{item.label} is compared with {counterpart.sentence}; a reference is faster")
            if counterpart.module is not None:
                self.modules[item.name] = stackable(copy.deepcopy(counterpart.module).to(dtype))
        self.leaves: dict[str, str] = {}
        self.places: dict[str, str] = {}
        self._of_indices = [
            f"{name}.input"
            for item in plan.items
            for name, children in item.children.items()
            if children and children[0].name in plan.integer_inputs
        ]
        self.places["loss.grad_prediction"] = self._walk(plan.chain, "input")
        for item in plan.chain:  # these stand between two runs of torch.vmap
            del self.leaves[f"{item.name}.output"]
        self.places |= {plan.grad_names[use]: f"parameter {use}" for use in self.uses}
        self._wanted = [quantity.name for quantity in plan.backward if quantity.name not in plan.sums]
        self._loss = torch.vmap(loss_function(loss, dtype))
        self._layers = [(item, torch.vmap(functools.partial(_run, self, item)), _Needs(item)) for item in plan.chain]

    def _walk(self, chain: Sequence[Item], place: str) -> str:
        """Find the places of a chain's gradients, from the `place` of its input on; returns that of its output."""
        for item in chain:
            if item.children:
                self.leaves[taken(item)] = self.leaves.get(place, place)
                place = taken(item)
            self.places[f"{item.name}.grad_input"] = place
            for name, children in item.children.items():
                if children:
                    self.leaves[f"{name}.input"] = f"{name}.input"
                    self.places[f"{name}.grad_output"] = self._walk(children, f"{name}.input")
            place = f"{item.name}.output"
            self.leaves[place] = place
        return place

    @reference_settings()
    def differentiate(self, ring: Ring, rows: slice) -> Tensors:
        """torch's value of each tensor of forward and backward, (steps, ...), of the steps in these rows of the ring.
        Raises CannotStack.
        """
        given = {name: _tensor(ring.given(name), rows) for name in ring.given_names()}
        wanted = {self.places[name] for name in self._wanted}
        leaves = self._parameters(ring, rows)
        leaves |= {place: _tensor(_source(ring, name), rows) for place, name in self.leaves.items()}
        leaves |= {place: leaves[place].long() for place in self._of_indices}  # the ring has them as floats
        leaves = {place: leaf.requires_grad_(place in wanted) for place, leaf in leaves.items()}
        # torch moves the buffers where they lie.
        buffers = {name.removesuffix(BEFORE): given[name].clone() for name in given if name.endswith(BEFORE)}
        try:
            losses, nodes, values = self._forward(ring, rows, leaves, given, buffers)
            places = nodes | leaves
            grads = torch.autograd.grad(
                losses.sum(), [places[self.places[name]] for name in self._wanted], materialize_grads=True
            )
        except CannotStack:
            raise
        except BaseException as error:  # a user's own reference may raise anything here
            raise_if_nobodys_fault(error)
            raise CannotStack(f"torch.vmap raised {described(error)}") from error
        values |= {name: buffer.to(losses.dtype) for name, buffer in buffers.items()}
        values |= {"loss": losses.detach(), **dict(zip(self._wanted, grads, strict=True))}
        return values | sums_over_uses(values, self.plan)

    def _forward(
        self, ring: Ring, rows: slice, leaves: Tensors, given: Tensors, buffers: Tensors
    ) -> tuple[torch.Tensor, Tensors, Tensors]:
        """The losses; our value of the output of each layer of the chain, in torch's graph, by its place; and torch's
        values, by the names of the plan.
        """
        nodes, values, node = dict[str, torch.Tensor](), dict[str, torch.Tensor](), given["input"]
        for item, layer, needs in self._layers:
            output, inside = layer(node, *needs.of(leaves, given, buffers))
            name = f"{item.name}.output"
            values |= inside
            values[name], node = _anchored(output, _tensor(ring.tensors[name], rows), item)
            nodes[name] = node
        try:
            losses = self._loss(node, given["target"])
        except BaseException as error:  # a user's own reference may raise anything here
            raise_if_nobodys_fault(error)
            raise CannotStack(f"the loss under torch.vmap raised {described(error)}") from error
        return losses, nodes, values

    def _parameters(self, ring: Ring, rows: slice) -> Tensors:
        """Each use of each parameter, a tensor of its own: so each has a gradient of its own."""
        sizes = {name: parameter.size for name, parameter in vars(self.model.param).items()}
        flat = _tensor(ring.before.param, rows)
        parts = dict(zip(sizes, torch.split(flat, list(sizes.values()), 1), strict=True))
        shapes = self.model.parameter_shapes()
        own = {use: self.first_of.get(use, use) for use in self.uses}
        return {f"parameter {use}": parts[name].detach().reshape(len(flat), *shapes[name]) for use, name in own.items()}


class _Needs:
    """What a layer of the chain needs: the places of the leaves inside of it, and the names of its random numbers and
    buffers, with those of the layers that it is made of.
    """

    def __init__(self, item: Item) -> None:
        inside = list(walk([item]))
        self.layers = {inner.name for inner in inside}
        self.leaves = [f"parameter {inner.name}.{name}" for inner in inside for name in inner.own_parameters]
        self.leaves += [f"{inner.name}.output" for inner in inside[:-1]]
        self.leaves += [taken(inner) for inner in inside if inner.children]
        self.leaves += [f"{name}.input" for inner in inside for name, chain in inner.children.items() if chain]
        self.buffers = [f"{inner.name}.{name}" for inner in inside for name in inner.own_buffers]

    def of(self, leaves: Tensors, given: Tensors, buffers: Tensors) -> tuple[Tensors, Tensors, Tensors]:
        """The leaves, random numbers and buffers of the layer."""
        noise = {name: tensor for name, tensor in given.items() if name.partition(NOISE)[0] in self.layers}
        return {name: leaves[name] for name in self.leaves}, noise, {name: buffers[name] for name in self.buffers}


def _anchored(output: torch.Tensor, ours: torch.Tensor, item: Item) -> tuple[torch.Tensor, torch.Tensor]:
    """torch's value of a layer's output, and the output with our value in its place. Its gradient comes back with one
    step behind the other in memory, as `_Apart` has it.
    """
    if output.shape != ours.shape or output.dtype != ours.dtype:
        raise CannotStack(f"{item.label}: of many steps, its reference returned {tuple(output.shape)}")
    if not output.requires_grad:
        return output, ours
    value = put_ours(output, ours)
    output.register_hook(torch.Tensor.contiguous)  # type: ignore[no-untyped-call]  # torch has no annotations
    return value, output


def _run(
    stacked: StackedSteps, item: Item, input: torch.Tensor, leaves: Tensors, given: Tensors, buffers: Tensors
) -> tuple[torch.Tensor, Tensors]:
    """One layer of the chain in one step: its output, and torch's values inside of it where it is a composite."""
    step = LayerRun(stacked.modules, leaves, given, buffers)
    return step.output(item, input), step.values


def _source(ring: Ring, name: str) -> Array:
    return ring.given(name) if name == "input" else ring.tensors[name]


def _tensor(array: Array, rows: slice) -> torch.Tensor:
    return torch.from_numpy(array[rows])
