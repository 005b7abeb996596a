"""One layer in torch's run of many steps: what torch.vmap runs.

Inside of a composite, behind each output stands our value of it, a leaf of torch's graph:

    node = ours + (output - output.detach())

which has our value exactly, lets the gradient through to the output, and whose leaf gets the gradient at this place.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch

from nn_manual.check.many_steps.ring import NOISE
from nn_manual.check.step.anchored_run import AnchoredRun, Tensors, taken
from nn_manual.check.step.tree import Item
from nn_manual.check.twin.modules import WithSamples
from nn_manual.errors import first_words_of, raise_if_nobodys_fault


class CannotStack(Exception):  # noqa: N818 - says what can't be done, not that something broke
    """A layer's reference doesn't run on many steps at once; the text says which, and why."""


class NoRoom(CannotStack):
    """No steps are kept; the text says why."""


def described(error: BaseException) -> str:
    """An error's type, and the first sentence of its text: torch's have many."""
    return first_words_of(error).partition(". ")[0]


class PaddedEmbedding(torch.nn.Embedding):
    """torch.nn.Embedding whose row `padding_idx` has no gradient. Under torch.vmap, torch's own leaves this gradient
    out in the first step alone (torch 2.13).
    """

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """The rows of the weight."""
        assert self.padding_idx is not None  # `stackable` has seen it
        output = torch.nn.functional.embedding(input, self.weight)
        return torch.where(torch.eq(input, self.padding_idx).unsqueeze(-1), output.detach(), output)


class _WithoutOut:
    """torch's spectral normalization, which writes its vectors when its iterations are done: torch.vmap can't write to
    `out`.
    """

    eps: float
    _u: torch.Tensor
    _v: torch.Tensor

    @torch.no_grad()
    def _power_method(self, weight_mat: torch.Tensor, n_power_iterations: int) -> None:
        left, right = self._u, self._v
        for _ in range(n_power_iterations):
            left = torch.nn.functional.normalize(weight_mat.mv(right), dim=0, eps=self.eps)
            right = torch.nn.functional.normalize(weight_mat.mT.mv(left), dim=0, eps=self.eps)
        self._u.copy_(left)
        self._v.copy_(right)


class _AsOneBatch(torch.autograd.Function):
    """A function of an input and of samples, which torch.vmap would run on one step after the other, and warn of it. It
    treats each example by itself: so here the steps are examples of one batch.
    """

    @staticmethod
    def forward(function: Any, *operands: torch.Tensor) -> torch.Tensor:
        raise NotImplementedError("it runs under torch.vmap alone")

    @staticmethod
    def setup_context(context: Any, inputs: Any, output: Any) -> None:
        pass

    @staticmethod
    def vmap(info: Any, in_dims: tuple[int, ...], function: Any, *operands: torch.Tensor) -> tuple[torch.Tensor, int]:
        merged = [each.movedim(dim, 0).flatten(0, 1) for each, dim in zip(operands, in_dims[1:], strict=True)]
        output: torch.Tensor = function(*merged)
        steps = info.batch_size
        return output.reshape(steps, len(output) // steps, *output.shape[1:]), 0


class _FractionalMaxPool(WithSamples):
    """torch.nn's fractional pooling of many steps."""

    def forward(self, input: torch.Tensor, samples: torch.Tensor | None = None) -> torch.Tensor:
        """The output."""
        output: torch.Tensor = _AsOneBatch.apply(super().forward, input, samples)  # type: ignore[no-untyped-call]  # torch has no types
        return output


def stackable(module: torch.nn.Module) -> torch.nn.Module:
    """The module; where torch.vmap makes it compute something else, or nothing, made to compute the same."""
    if type(module) is torch.nn.Embedding and module.padding_idx is not None:
        module.__class__ = PaddedEmbedding
    if isinstance(module, WithSamples):
        module.__class__ = type(type(module).__name__, (_FractionalMaxPool, type(module)), {})
    for inner in module.modules():
        if type(inner).__name__ == "_SpectralNorm":
            inner.__class__ = type("SpectralNorm", (_WithoutOut, type(inner)), {})
    return module


class LayerRun(AnchoredRun):
    """torch's run of a layer in one step, of whose tensors torch.vmap has stacked many."""

    def __init__(
        self, modules: Mapping[str, torch.nn.Module], leaves: Tensors, given: Tensors, buffers: Tensors
    ) -> None:
        super().__init__()
        self.modules, self.leaves, self.given, self.buffers = modules, leaves, given, buffers

    def layer(self, item: Item, node: torch.Tensor) -> torch.Tensor:
        """As in every run."""
        output = self.output(item, node)
        self.values[f"{item.name}.output"] = output.detach()
        return self.anchored(f"{item.name}.output", output)

    def output(self, item: Item, node: torch.Tensor) -> torch.Tensor:
        """torch's output of a layer."""
        try:
            if item.children:
                return self.composite(item, self.anchored(taken(item), node))
            return self._alone(item, node)
        except CannotStack:  # of a layer in this one
            raise
        except BaseException as error:  # a user's own reference may raise anything here
            raise_if_nobodys_fault(error)
            raise CannotStack(f"{item.label} under torch.vmap raised {described(error)}") from error

    def anchored(self, place: str, node: torch.Tensor) -> torch.Tensor:
        """As in every run."""
        ours = self.leaves[place]
        if not ours.is_floating_point():
            return ours
        anchored: torch.Tensor = _Apart.apply(ours + (node - node.detach()))  # type: ignore[no-untyped-call]  # as torch has it
        return anchored

    def _alone(self, item: Item, node: torch.Tensor) -> torch.Tensor:
        layer, name = item.layer, item.name
        noise, module = self.noise(item), self.modules.get(item.name)
        parameters = {key: self.leaves[f"parameter {name}.{key}"] for key in item.own_parameters}
        buffers = {key: self.buffers[f"{name}.{key}"] for key in item.own_buffers}
        if module is not None:
            output: torch.Tensor = torch.func.functional_call(module, {**parameters, **buffers}, (node,), noise)
            return output
        function: Callable[..., Any] = layer.reference
        if not buffers:
            return function(node, **parameters, **noise)  # type: ignore[no-any-return]  # a user's own
        output, moved = function(node, **parameters, **{key: b.clone() for key, b in buffers.items()}, **noise)
        for key, value in moved.items():
            buffers[key].copy_(value.detach())
        return output

    def noise(self, item: Item) -> Tensors:
        """As in every run."""
        prefix = f"{item.name}{NOISE}"
        return {name.removeprefix(prefix): tensor for name, tensor in self.given.items() if name.startswith(prefix)}


class _Apart(torch.autograd.Function):
    """A tensor whose gradient comes back with one step behind the other in memory. Some functions of torch lay the
    steps side by side, and a sum over such a gradient would depend on how many steps there are.
    """

    @staticmethod
    def forward(node: torch.Tensor) -> torch.Tensor:
        return node.view_as(node)

    @staticmethod
    def setup_context(context: Any, inputs: Any, output: Any) -> None:
        pass

    @staticmethod
    def backward(context: Any, grad_output: torch.Tensor) -> torch.Tensor:  # noqa: ARG004 - torch's
        return grad_output.contiguous()

    @staticmethod
    def vmap(info: Any, in_dims: tuple[int], node: torch.Tensor) -> tuple[torch.Tensor, int]:  # noqa: ARG004 - torch's
        stacked: torch.Tensor = _Apart.apply(node.movedim(in_dims[0], 0))  # type: ignore[no-untyped-call]  # as above
        return stacked, 0
