"""The plan of a check: every tensor that a step must prove, by name, before the step runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain

import numpy as np

from nn_manual.arrays import Shape, size_of
from nn_manual.check.compare import tolerances
from nn_manual.check.compare.comparison import CannotCompare, Quantity
from nn_manual.check.step.calls import LayerCalls
from nn_manual.check.step.recording import Recording
from nn_manual.check.step.tree import Item, in_order, walk
from nn_manual.check.twin.layers import Counterpart, Source, counterpart_of, is_own
from nn_manual.check.twin.modules import CannotStandIn
from nn_manual.defaults import defines
from nn_manual.layers.base import Layer, num_parameters
from nn_manual.layers.composite import counter_names
from nn_manual.model import Sequential
from nn_manual.model.contract import checked_length
from nn_manual.optim import Clipping, Optimizer
from nn_manual.optim.averaging import AVERAGE
from nn_manual.optim.clipping import NormClipping

#: How a report introduces the other value of a gradient, by what it comes from.
ORIGINS = {Source.TORCH: "torch has", Source.REFERENCE: "its reference has", Source.FORWARD: "differences give"}


class Plan:
    """The quantities of one checked step, in the order in which a mistake would spread.

    That order is: the outputs of the layers, first to last, a composite's after its children's; the loss;
    grad_prediction; from the last layer to the first its parameters' gradients and its grad_input; the clipped
    gradient; the optimizer's state vectors; the updated parameters. The first that fails was computed from values that
    passed, so its layer is the wrong one.

    `input_grad` says whether the gradients of the model's own input, and of the target where the loss has one, are
    asked for. If not, the gradient travels back to the first layer that has parameters and stops there. `clipping`
    is how the step clips the gradient, `optimizer` what moves the parameters, if anything does.
    """

    def __init__(
        self,
        model: Sequential,
        recorded: Recording,
        *,
        input_grad: bool,
        clipping: Clipping | None = None,
        optimizer: Optimizer | None = None,
    ) -> None:
        """`recorded` is a step on inputs of the shape that the plan is for. It gives the shapes, and the order in which
        the children of a composite ran.
        """
        loss, calls = recorded.loss.loss, {calls.item.name: calls for calls in recorded.layers}
        self.dtype = model.dtype
        self.chain = in_order(recorded.chain, {name: calls[name].place for name in calls})
        #: Every layer, a composite after its children.
        self.items = list(walk(self.chain))
        #: The name of each parameter's gradient, by the parameter's: "0.grad_weight" by "0.weight".
        self.grad_names = {
            f"{item.name}.{name}": f"{item.name}.grad_{name}" for item in self.items for name in item.own_parameters
        }
        #: The shapes of each layer's input and output, by its name.
        self.shapes = {name: (_shape(calls[name].input), _shape(calls[name].output)) for name in calls}
        #: The layers whose input is indices, which have no gradient.
        self.integer_inputs = {
            name for name in calls if np.issubdtype(getattr(calls[name].input, "dtype", np.float64), np.integer)
        }
        #: About how many multiplications forward takes.
        self.num_products = sum(_num_products(item.layer, self.shapes[item.name][0]) for item in self.chain)
        self.input_grad, self.target_grad = input_grad, input_grad and defines(loss, "backward_target")
        with_parameters = [i for i, item in enumerate(self.chain) if num_parameters(item.layer)]
        #: The first layer of the chain whose backward runs.
        self.first = 0 if input_grad else min(with_parameters, default=len(self.chain))
        #: The first layer of the chain whose grad_input is computed.
        self.first_grad_input = 0 if input_grad else self.first + 1
        #: Of each composite's children, by the child's name: the first layer of its chain whose backward runs, and the
        #: first whose grad_input is computed. A composite's own backward_parameters needs no more than parameters do.
        self.starts = {
            name: _start_of(children, calls, may_skip=calls[item.name].only_parameters)
            for item in self.items
            for name, children in item.children.items()
        }
        #: What each layer is compared with, by its name.
        self.counterparts = {item.name: _counterpart_of(item) for item in self.items}
        #: The layers whose references are known to compute nothing inside that saturates.
        self.without_saturation: set[str] = set()
        self._tolerances = {item.name: self._tolerance_of(item) for item in self.items}
        widest = max(self._tolerances.values())
        self.forward = [*self._forward_of(self.chain), Quantity("loss", "loss", widest, _origin_for(loss))]
        loss_grads = ["grad_prediction", *(["grad_target"] if self.target_grad else [])]
        self.backward = [Quantity(f"loss.{name}", "loss", widest, _origin_for(loss)) for name in loss_grads]
        self.backward += self._backward_of(self.chain[self.first :], self.first_grad_input - self.first)
        #: The names of the uses of each shared parameter, by that of its gradient. Clipping would change this: then the
        #: sum is compared when it is clipped.
        self.sums = {
            " + ".join(self.grad_names[name] for name in names): names
            for names in model.ties.names.values()
            if clipping is None
        }
        self.backward += [Quantity(name, "Sequential", widest) for name in self.sums]
        self.update = [
            Quantity(name, "optimizer", tolerances.UPDATE[model.dtype.name], _origin_for(optimizer))
            for name in _updated(model, optimizer)
        ]
        self.clipping = [] if clipping is None else [clipped_gradient(clipping, model)]
        self.quantities = [*self.forward, *self.backward, *self.clipping, *self.update]
        self.tolerances = np.array([quantity.tolerance for quantity in self.quantities])
        self.tensors = tuple(quantity.name for quantity in self.quantities)

    def _forward_of(self, chain: Sequence[Item]) -> Iterator[Quantity]:
        """The outputs, and what a composite gives each of its children: if that is wrong, the composite is to blame."""
        for item in chain:
            for name, children in item.children.items():
                if children:
                    yield Quantity(f"{name}.input", item.label, self._tolerances[item.name])
                yield from self._forward_of(children)
            yield self._output_of(item)
            for name in item.own_buffers:
                counts = name in counter_names(item.layer)
                tolerance = tolerances.COUNTER[self.dtype.name] if counts else self._tolerances[item.name]
                yield Quantity(f"{item.name}.{name}", item.label, tolerance, _origin_for(item.layer))

    def _backward_of(self, chain: Sequence[Item], first_grad_input: int = 0) -> Iterator[Quantity]:
        """The gradients, and what a composite passes back to each of its children. `first_grad_input` is the first
        layer of the chain whose grad_input is computed.
        """
        for i, item in reversed(list(enumerate(chain))):
            for name, children in reversed(item.children.items()):
                first, child_grad_input = self.starts[name]
                if children[first:]:
                    yield Quantity(f"{name}.grad_output", item.label, self._tolerances[item.name])
                yield from self._backward_of(children[first:], child_grad_input - first)
            names = gradient_names(item)
            tolerance, source = self._tolerances[item.name], self.counterparts[item.name].source
            if source is Source.FORWARD:
                tolerance = self.differences_tolerance(item)
            if i < first_grad_input or item.name in self.integer_inputs:
                names = names[:-1]
            for name in names:
                yield Quantity(name, item.label, tolerance, ORIGINS[source])

    def _output_of(self, item: Item) -> Quantity:
        name, tolerance = f"{item.name}.output", self._tolerances[item.name]
        source = self.counterparts[item.name].source
        if source is not Source.FORWARD:
            return Quantity(name, item.label, tolerance, ORIGINS[source])
        if self.dtype != np.float64:
            tolerance = max(tolerance, tolerances.OWN_FORWARD)
        return Quantity(name, item.label, tolerance, "in float64 it is")

    def differences_tolerance(self, item: Item) -> float:
        """How far a layer's gradients may be from central differences."""
        return max(self._tolerances[item.name], tolerances.CENTRAL_DIFFERENCES)

    def reported_sources(self) -> tuple[str, ...]:
        """A sentence that says what a layer is compared with, for each layer but those of the package that are compared
        with torch's class of the same name.
        """
        return tuple(
            f"{item.label} is compared with {counterpart.sentence}"
            for item in self.items
            for counterpart in [self.counterparts[item.name]]
            if is_own(item.layer) or counterpart.source is Source.FORWARD
        )

    def without_reference(self) -> tuple[str, ...]:
        """The layers whose forward is compared with nothing else."""
        return tuple(item.label for item in self.items if self.counterparts[item.name].source is Source.FORWARD)

    def _tolerance_of(self, item: Item) -> float:
        return tolerances.sum_of_products(self.dtype, longest_sum(item.layer, *self.shapes[item.name]))


def _origin_for(component: object) -> str:
    return ORIGINS[Source.REFERENCE if defines(component, "reference") else Source.TORCH]


def longest_sum(layer: Layer, input_shape: Shape, output_shape: Shape) -> int:
    """The number of terms in a layer's longest sum, for its tolerance: the longest dimension of input, output and
    parameters, or less, if the layer says so. Leading dimensions count together, because a sum may run over all of
    them. A composite's parameters are its children's.
    """
    parameters = {} if layer.children() else layer.parameter_shapes()
    longest = max(1, size_of(input_shape[:-1]), *input_shape, *output_shape, *chain(*parameters.values()))
    stated = checked_length(layer, "longest_sum", layer.longest_sum(input_shape))
    return longest if stated is None else max(1, min(longest, stated))


def gradient_names(item: Item) -> list[str]:
    """The names of a layer's gradients: of its own parameters, then of its input."""
    return [f"{item.name}.grad_{name}" for name in (*item.own_parameters, "input")]


def _start_of(chain: list[Item], calls: Mapping[str, LayerCalls], *, may_skip: bool) -> tuple[int, int]:
    """The first layer whose backward ran, and the first whose grad_input was computed, in the chain of a composite's
    child. Where that isn't enough for all its parameters, the first of all: the check then says what is missing.
    `may_skip` says that a child without parameters need not run at all.
    """
    ran = next((i for i, item in enumerate(chain) if calls[item.name].num_backwards), len(chain))
    if any(num_parameters(item.layer) for item in chain[:ran]):
        return 0, 0
    if ran == len(chain):
        return (ran, ran) if may_skip else (0, 0)
    return (ran, ran + 1) if calls[chain[ran].name].only_parameters else (0, 0)


def _num_products(layer: Layer, input_shape: Shape) -> int:
    return checked_length(layer, "num_products", layer.num_products(input_shape)) or 0


def _shape(array: object) -> Shape:
    """An array's shape; () where a step that ended early, or a wrong layer, left none."""
    return array.shape if isinstance(array, np.ndarray) else ()


def _updated(model: Sequential, optimizer: Optimizer | None) -> list[str]:
    """The names of the tensors that an optimizer changes: "0.weight.momentum_buffer", then "updated 0.weight", and then
    the average of the latter.
    """
    if optimizer is None:
        return []
    parameters = model.parameter_shapes()
    own = [f"{parameter}.{name}" for name in optimizer.vectors if name != AVERAGE for parameter in parameters]
    updated = [f"updated {parameter}" for parameter in parameters]
    return own + updated + [f"{parameter}.{AVERAGE}" for parameter in parameters if AVERAGE in optimizer.vectors]


def _counterpart_of(item: Item) -> Counterpart:
    try:
        return counterpart_of(item.layer)
    except CannotStandIn as misfit:
        raise CannotCompare(f"{item.label}: {misfit}") from misfit


def clipped_gradient(clipping: Clipping, model: Sequential) -> Quantity:
    """What a clipped gradient is compared as. A norm is a sum over all parameters; numbers that are clipped one by one
    round at most as an update does, where gradients of several uses were added up.
    """
    own = tolerances.UPDATE[model.dtype.name]
    if isinstance(clipping, NormClipping):
        own = tolerances.sum_of_products(model.dtype, model.num_parameters)
    return Quantity("clipped gradient", clipping.key, own)
