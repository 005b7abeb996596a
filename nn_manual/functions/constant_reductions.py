"""A gradient that lacks the way through a mean, a norm or another reduction of the inputs, as if that were constant.

The reference is traced into basic operations, those of its fused normalizations, too. Then it runs again with the
results of one reduction, or of two, detached.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterator
from dataclasses import replace
from operator import getitem
from typing import Any

import torch
from torch._decomp import get_decompositions
from torch.fx import GraphModule, Interpreter, Node
from torch.fx.experimental.proxy_tensor import make_fx

from nn_manual.check.compare.comparison import Pair, compare
from nn_manual.check.judge.moved import aten
from nn_manual.errors import raise_if_nobodys_fault
from nn_manual.functions.arguments import Number, as_tensor
from nn_manual.functions.callables import applied, is_array
from nn_manual.functions.function_case import FunctionCase
from nn_manual.functions.outputs import Outputs, named_outputs
from nn_manual.functions.own_forward import OwnForward
from nn_manual.functions.pairs import values_of_reference
from nn_manual.functions.swapped import equals

#: Operations that contain reductions.
FUSED = [
    *(aten.native_layer_norm, aten.native_group_norm, aten._fused_rms_norm),
    *(aten.native_batch_norm, aten._native_batch_norm_legit, aten.cudnn_batch_norm),
    *(aten._softmax, aten._log_softmax),
]
#: What the results of those with several are called.
SEVERAL = {"var_mean": ("var", "mean"), "std_mean": ("std", "mean")}
#: In a reference with more reductions, nothing is tried: with each of them, and each two, it runs once.
MOST_REDUCTIONS = 10


def describe_constant(case: FunctionCase, first: Pair) -> str:
    """A sentence that names the reductions without whose gradients the reference has this wrong gradient; empty if
    there are none, or if the reference can't be traced.
    """
    if isinstance(case.reference, OwnForward):  # which has no operations of torch
        return ""
    try:
        return next(_found(case, first), "")
    except Exception as error:  # a reference may raise anything on what traces it
        raise_if_nobodys_fault(error)
        return ""


def _found(case: FunctionCase, first: Pair) -> Iterator[str]:
    traced = traced_reference(case)
    reductions = _reductions(traced)

    def without(constant: Collection[str]) -> torch.Tensor:
        def reference(*leaves: Any) -> Outputs:
            tensors = (leaf for leaf in leaves if is_array(leaf))
            return Outputs(dict(_Detaching(traced, constant).run(*tensors)), {})

        numbers = tuple(map(Number, range(len(case.arguments.leaves))))
        flat = replace(case.arguments, positional=numbers, keywords={}, parameters={}, buffers={})
        found = values_of_reference(replace(case, reference=reference, arguments=flat)).get(first.quantity.name)
        return torch.empty(0) if found is None else found.to(first.reference.dtype)

    def agrees(constant: Collection[str]) -> bool:
        return compare(first.quantity, without(constant).numpy(), first.reference).passed

    if len(reductions) > MOST_REDUCTIONS:
        return
    # A maximum that is subtracted only against overflow is constant in any case.
    always = [name for name in reductions if agrees([name])]
    if not agrees(always):  # or the reference's gradients aren't those of its operations
        return
    others = [name for name in reductions if name not in always]
    for constant in (*itertools.combinations(others, 1), *itertools.combinations(others, 2)):
        if equals(first, without([*always, *constant])):
            words, way = " and ".join(_called(name, reductions) for name in constant), "them" if constant[1:] else "it"
            yield f"as if {words} were constant: the gradient through {way} is left out"


def traced_reference(case: FunctionCase) -> GraphModule:
    """The reference as a graph of operations, from the arrays among the leaves to the outputs by name."""
    leaves = case.leaves()

    def flat(*tensors: torch.Tensor) -> dict[str, torch.Tensor]:
        left = iter(tensors)
        given = [next(left) if is_array(leaf) else leaf for leaf in leaves]
        returned, _ = case.arguments.call_and_buffers(applied(case.reference), given)
        return named_outputs(returned).tensors

    tensors = [as_tensor(leaf).detach().clone() for leaf in leaves if is_array(leaf)]
    table: Any = get_decompositions(FUSED)  # make_fx takes this, by its types something narrower
    return make_fx(flat, table)(*tensors)


def _reductions(traced: GraphModule) -> dict[str, str]:
    """The floating results of reductions, by the names of their nodes: how each is called."""
    found = {}
    for node in traced.graph.nodes:
        is_part = node.target is getitem and isinstance(node.args[0], Node)
        made = node.args[0] if is_part else node
        value = node.meta.get("val")
        is_reduction = torch.Tag.reduction in getattr(made.target, "tags", ())
        if is_reduction and isinstance(value, torch.Tensor) and value.is_floating_point():
            name = made.target.overloadpacket.__name__
            found[node.name] = SEVERAL[name][node.args[1]] if name in SEVERAL else name.removeprefix("linalg_")
    return found


def _called(node: str, reductions: dict[str, str]) -> str:
    """The name of a reduction, and its number among several of that name, in the order in which they are computed."""
    name = reductions[node]
    same = [other for other in reductions if reductions[other] == name]
    return name if len(same) == 1 else f"{name} {same.index(node) + 1} of {len(same)}"


class _Detaching(Interpreter):
    """Runs a graph, with the results of these nodes as constants."""

    def __init__(self, traced: GraphModule, constant: Collection[str]) -> None:
        super().__init__(traced)
        self.constant = constant

    def run_node(self, n: Node) -> Any:  # torch's name
        """As the base does."""
        result = super().run_node(n)
        return result.detach() if n.name in self.constant else result
