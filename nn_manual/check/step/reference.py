"""The anchored reference: torch's autograd over the whole model, at our activations.

A torch model that runs freely drifts away by rounding until one ReLU whose input is near zero flips, and then the
gradients differ by percents. Anchored, torch runs each layer on *our* output of the layer before. Each output is
compared before ours takes its place, which proves forward; autograd then differentiates the true composition, at our
activations, which gives every gradient that backward must reproduce. A layer that is compared with central differences
is anchored on the way back, too: where our grad_input is right, it travels on in place of theirs.

The file is long because the run of one step meets each way in which a layer can be wrong, and values can be moved.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch

from nn_manual.arrays import Array
from nn_manual.check.compare.comparison import CannotCompare
from nn_manual.check.step.anchored_run import AnchoredRun, Tensors, put_ours, sums_over_uses, taken
from nn_manual.check.step.any_slope import with_any_slope
from nn_manual.check.step.calls import LayerCalls
from nn_manual.check.step.faulty_references import described, of_cut_off, of_raised, of_unlike
from nn_manual.check.step.moved_inside import MovedInside
from nn_manual.check.step.plan import Plan, gradient_names
from nn_manual.check.step.recording import Recording
from nn_manual.check.step.tree import Item
from nn_manual.check.twin.by_differences import ByDifferences, Finding
from nn_manual.check.twin.layers import Counterpart, Function
from nn_manual.check.twin.model import Twin, as_tensor
from nn_manual.defaults import defines
from nn_manual.errors import first_words_of, raise_if_nobodys_fault

Move = Callable[[torch.Tensor], torch.Tensor]


class Reference(NamedTuple):
    """torch's values for one step: by the name of each quantity of the plan, and what differences say of gradients."""

    values: dict[str, torch.Tensor]
    findings: dict[str, Finding]


def differentiate(
    twin: Twin,
    recorded: Recording,
    plan: Plan,
    dtype: np.dtype[Any],
    move: Move | None = None,
    move_grad: Move | None = None,
    *,
    our_grads: bool = False,
) -> Reference:
    """Run torch forward on the recorded input, anchored at the recorded activations, and backward, all in `dtype`.

    What the loss doesn't depend on has gradient zero. Input, target and activations go through `move`, if given,
    and the gradients on the way back through `move_grad`. With `our_grads` the way back is anchored, too: each layer
    gets our gradient of its output. Raises CannotCompare for a layer's reference that raises, or that isn't a tensor
    like the layer's output.
    """
    return Anchored(twin, recorded, plan, dtype, move or _stay, move_grad, our_grads=our_grads).differentiated()


class Anchored(AnchoredRun):
    """torch's run of one step.

    `nodes` has the tensor that each gradient in the plan belongs to. Where an array of ours is used twice, each use is
    a tensor of its own: at a fan-out, the gradient of one tensor would be the sum of both ways.
    """

    def __init__(
        self,
        twin: Twin,
        recorded: Recording,
        plan: Plan,
        dtype: np.dtype[Any],
        move: Move,
        move_grad: Move | None,
        *,
        our_grads: bool,
    ) -> None:
        super().__init__()
        self.twin, self.recorded, self.plan, self.dtype = twin, recorded, plan, dtype
        self.move, self.move_grad, self.our_grads = move, move_grad, our_grads
        self.calls = {calls.item.name: calls for calls in recorded.layers}
        self.nodes: Tensors = {
            f"{item.name}.grad_{name}": twin.parameters[f"{item.name}.{name}"]
            for item in plan.items
            for name in item.own_parameters
        }
        #: Our values inside of composites, by their places.
        self.ours: dict[str, Array | None] = {}
        for item in (item for item in plan.items if item.children):
            self.ours[taken(item)] = self.calls[item.name].input
            self.ours |= {f"{name}.input": self.calls[c[0].name].input for name, c in item.children.items() if c}
        self.findings: dict[str, Finding] = {}
        #: How often the output of each child of a composite had been written into when torch's run of it ended.
        self.versions: dict[str, int] = {}

    def differentiated(self) -> Reference:
        """The whole step."""
        self.twin.set_buffers(self.recorded.buffers_before)
        input = self._tensor(self.recorded.first.input)
        input.requires_grad_(self.plan.input_grad and input.is_floating_point())
        target = self._target().requires_grad_(self.plan.target_grad)
        prediction = self.chain(self.plan.chain, input)
        domain = self.recorded.loss.loss.domain
        if self.move is not _stay and isinstance(domain, tuple):  # torch's loss refuses what is moved out of it
            ours = self._in_dtype(self.recorded.loss.prediction)  # where it lies outside already, it isn't moved inside
            prediction.data.clamp_(ours.clamp(max=domain[0]), ours.clamp(min=domain[1]))  # a copy: ours stays
        loss = run_loss(self.twin, prediction, target)
        self.values["loss"] = loss.detach()
        self.values |= {name: buffer.to(prediction.dtype, copy=True) for name, buffer in self.twin.buffers.items()}
        self.nodes |= {"loss.grad_prediction": prediction, "loss.grad_target": target}
        names = [quantity.name for quantity in self.plan.backward if quantity.name not in self.plan.sums]
        try:
            wanted = [self.nodes[name] for name in names]
            grads = torch.autograd.grad(loss, wanted, allow_unused=True, materialize_grads=True)
        except BaseException as error:  # a user's own reference may be one that torch can't differentiate
            raise_if_nobodys_fault(error)
            raise CannotCompare(f"torch can't differentiate a reference: {first_words_of(error)}") from error
        self.values |= zip(names, grads, strict=True)
        self.values |= sums_over_uses(self.values, self.plan)
        for name, finding in self.findings.items():
            if name.endswith(".grad_input"):  # ours travelled on: compare it with what the differences gave
                self.values[name] = torch.from_numpy(finding.reference.astype(self.dtype))
        return Reference(self.values, self.findings)

    def _target(self) -> torch.Tensor:
        """The target, which stays where the loss takes only some numbers: a label that is moved is none."""
        calls = self.recorded.loss
        stays = self.move is _stay or defines(calls.loss, "as_target")
        return self._in_dtype(calls.target) if stays else self._tensor(calls.target)

    def layer(self, item: Item, node: torch.Tensor) -> torch.Tensor:
        """As in every run; where the way back is anchored, or gradients are moved, this happens at the output."""
        self.nodes[f"{item.name}.grad_input"] = node
        node = self._of_layers(item, node) if item.children else self._alone(item, node)
        if self.our_grads and self.calls[item.name].grad_output is not None and node.requires_grad:
            return self._with_our_grad(item, node)
        if self.move_grad is not None and node.requires_grad:
            node.register_hook(self.move_grad)  # type: ignore[no-untyped-call]  # torch's own lack of annotations
        return node

    def _with_our_grad(self, item: Item, node: torch.Tensor) -> torch.Tensor:
        """A layer's output, for what follows it; the layer gets our gradient of it, whatever follows computes."""
        grad = self._in_dtype(self.calls[item.name].grad_output)
        if self.move_grad is not None:
            grad = self.move_grad(grad)
        alias: torch.Tensor = _Alias.apply(node, [node.data, grad])  # type: ignore[no-untyped-call]  # as above
        return alias

    def _alone(self, item: Item, node: torch.Tensor) -> torch.Tensor:
        """The output of a layer that is made of no others."""
        calls, function = self.calls[item.name], self.twin.functions[item.name]
        if isinstance(function, ByDifferences):
            gradients = dict(zip(gradient_names(item), [*calls.grads.values(), calls.grad_input], strict=True))
            tolerance = self.plan.differences_tolerance(item)
            function = function.beside(gradients, tolerance, self.findings, self.move_grad)
        elif item.layer.kinks == "any" and calls.input is not None:
            function = self._with_any_slope(item, function, calls.input)
        if noise := self.noise(item):
            function = functools.partial(function, **noise)
        ours = self._tensor(calls.output)
        if self.move is _stay or item.name in self.plan.without_saturation:
            node = _run(function, node, ours, calls, self.plan.counterparts[item.name])
        else:
            with MovedInside(self.move) as inside:
                node = _run(function, node, ours, calls, self.plan.counterparts[item.name])
            # A Tanh's only such value is its output, which is moved anyway. To look takes longest, so it is done once.
            if inside.num_moved <= hasattr(node.grad_fn, "_saved_result"):
                self.plan.without_saturation.add(item.name)
        self.values[f"{item.name}.output"] = put_ours(node, ours)
        return node

    def _with_any_slope(self, item: Item, function: Function, input: Array) -> Function:
        """A layer's function, whose slopes at kinks may be ours."""
        calls, tolerance = self.calls[item.name], self.plan.differences_tolerance(item)
        if getattr(calls.output, "shape", ()) != input.shape:
            raise CannotCompare(f'{item.label}: kinks = "any" is for elementwise layers, its output has another shape')
        found = functools.partial(self.findings.__setitem__, f"{item.name}.grad_input")
        return with_any_slope(function, item.layer.kink_distance(input) == 0, calls.grad_input, tolerance, found)

    def _of_layers(self, item: Item, node: torch.Tensor) -> torch.Tensor:
        """The output of a layer that is made of others."""
        calls, input = self.calls[item.name], self.anchored(taken(item), node)
        self.nodes[f"{item.name}.grad_input"] = input
        ours, function = self._tensor(calls.output), functools.partial(self.composite, item)
        output = _run(function, input, ours, calls, self.plan.counterparts[item.name])
        for name, inner in item.children.items():
            if inner and f"{name}.grad_output" not in self.nodes:
                raise CannotCompare(f"{item.label}: its own reference never ran {name}")
            if inner and self.nodes[f"{name}.grad_output"]._version != self.versions[name]:
                raise CannotCompare(f"{item.label}: its own reference writes into what {name} returned")
        self.values[f"{item.name}.output"] = output.detach()
        return self._alias(output, ours)

    def child(self, item: Item, name: str, chain: Sequence[Item], given: torch.Tensor) -> torch.Tensor:
        """As in every run. Raises CannotCompare where a child runs twice, or gets what isn't like its input in ours."""
        if not chain:
            return given
        if f"{name}.input" in self.values:
            raise CannotCompare(f"{item.label}: its own reference ran {name} twice")
        ours = self._in_dtype(self.ours[f"{name}.input"])
        if not _is_like(given, ours):
            words = f"its own reference gave {name} {described(given)}, forward {described(ours)}"
            raise CannotCompare(f"{item.label}: {words}")
        node = super().child(item, name, chain, given)
        self.nodes[f"{name}.grad_output"], self.versions[name] = node, node._version
        return node

    def noise(self, item: Item) -> Tensors:
        """As in every run."""
        return {name: self._tensor(array) for name, array in self.calls[item.name].noise.items()}

    def anchored(self, place: str, node: torch.Tensor) -> torch.Tensor:
        """As in every run."""
        return self._alias(node, self._tensor(self.ours[place]))

    def _alias(self, node: torch.Tensor, ours: torch.Tensor) -> torch.Tensor:
        """Our value of a tensor, behind it in torch's graph."""
        alias: torch.Tensor = _Alias.apply(node, [ours])  # type: ignore[no-untyped-call]  # torch has no annotations
        if alias.is_floating_point() and not alias.requires_grad:
            alias.requires_grad_()  # nothing before it needs a gradient; the layers behind it compute theirs
        if self.move_grad is not None and alias.requires_grad:
            alias.register_hook(self.move_grad)  # type: ignore[no-untyped-call]  # as above
        return alias

    def _tensor(self, array: Array | None) -> torch.Tensor:
        """`as_tensor`, floating ones in the dtype of this run, moved."""
        return self.move(self._in_dtype(array))

    def _in_dtype(self, array: Array | None) -> torch.Tensor:
        assert array is not None  # check_structure has seen it
        if array.dtype.kind == "f":
            array = array.astype(self.dtype, copy=False)
        return as_tensor(array)


class _Alias(torch.autograd.Function):
    """A tensor with another value, the first of `values`. Its gradient is the second of them, if there is one."""

    @staticmethod
    def forward(context: Any, node: torch.Tensor, values: list[torch.Tensor]) -> torch.Tensor:  # noqa: ARG004 - torch's
        context.grads = values[1:]
        return values[0].detach()

    @staticmethod
    def backward(context: Any, grad_output: torch.Tensor) -> tuple[torch.Tensor, None]:
        return context.grads[0] if context.grads else grad_output, None


def _run(
    function: Function, input: torch.Tensor, ours: torch.Tensor, calls: LayerCalls, counterpart: Counterpart
) -> torch.Tensor:
    """torch's output of a layer. Raises CannotCompare, naming the layer, where it isn't a tensor like `ours`."""
    version = input._version
    try:
        output = function(input)
    except CannotCompare:  # of a child
        raise
    except BaseException as error:  # a user's own reference may raise anything
        raise_if_nobodys_fault(error)
        raise of_raised(calls, counterpart, error) from error
    wrote = input._version != version
    if not _is_like(output, ours):
        raise of_unlike(output, ours, calls, counterpart)
    if wrote or (input.requires_grad and not output.requires_grad):
        raise of_cut_off(calls, counterpart, wrote=wrote)
    return output


def _is_like(value: object, ours: torch.Tensor) -> bool:
    """Whether it is a tensor of the shape and dtype of ours."""
    return isinstance(value, torch.Tensor) and value.shape == ours.shape and value.dtype == ours.dtype


def run_loss(twin: Twin, prediction: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    """torch's value of the loss. Raises CannotCompare where it isn't a scalar tensor."""
    try:
        loss = twin.loss_function(prediction, target)
    except BaseException as error:  # a user's own reference may raise anything
        raise_if_nobodys_fault(error)
        raise CannotCompare(f"loss: its reference raised {first_words_of(error)}") from error
    if not isinstance(loss, torch.Tensor) or loss.ndim:
        raise CannotCompare(f"loss: its reference returned {described(loss)}, it must return a scalar tensor")
    return loss


def _stay(tensor: torch.Tensor) -> torch.Tensor:
    return tensor
