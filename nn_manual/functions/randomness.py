"""Whether a function, or its reference, returns something else each time that it runs on the same inputs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import torch

from nn_manual.check.compare.comparison import CannotCompare, Pair
from nn_manual.check.compare.tolerances import MEANINGLESS
from nn_manual.functions.callables import by_autograd, is_array
from nn_manual.functions.exceptions import naming, raised_by_the_reference
from nn_manual.functions.function_case import FunctionCase
from nn_manual.functions.handwritten import run_function

#: A dropout of a tenth leaves all of a dozen numbers in a run once in four times; it does so in all of these once in
#: 500 times.
NUM_RUNS = 5
#: Stands for a difference of values that says nothing, since the function is random.
AT_RANDOM = "at random"
ADVICE = "if it is random by design, give it a seed or a mask"


class IsRandom(CannotCompare):
    """The function returns something else in each run. Where its outputs are all zero, only its gradients differ."""


def varying_output(runs: Iterable[Mapping[str, Any]], allowed: Mapping[str, float]) -> str | None:
    """The name of an output in which a later run differs from the first by more than is `allowed`, as a fraction of the
    largest value: half of it, where nothing is said.
    """
    first: dict[str, torch.Tensor] | None = None
    for outputs in runs:
        tensors = {name: out.detach() for name, out in outputs.items() if is_array(out) and out.is_floating_point()}
        for name, output in tensors.items():
            before = first.get(name) if first else None
            if before is None or before.shape != output.shape:
                continue
            most = float(before.nan_to_num().abs().max()) if before.numel() else 0.0
            atol = allowed.get(name, MEANINGLESS) * most
            if not torch.allclose(output.to_dense(), before.to_dense(), rtol=0, atol=atol, equal_nan=True):
                return name
        first = first or {name: tensor.clone() for name, tensor in tensors.items()}
    return None


def check_not_random(case: FunctionCase, compared: Sequence[Pair]) -> None:
    """Raise IsRandom if outputs of the function differ by more than their tolerance from run to run, ValueError if
    those of its reference do: then a difference says nothing about the formulas.
    """
    allowed = {pair.quantity.name: pair.quantity.tolerance for pair in compared}
    arguments, wants = case.arguments, case.wants()

    def of_function() -> Mapping[str, Any]:
        with naming(case.label, "forward"):
            return run_function(case.function, arguments, case.leaves(), wants).outputs

    def of_reference() -> Mapping[str, Any]:
        with raised_by_the_reference():
            return by_autograd(case.reference, arguments, case.leaves(), wants).outputs

    if name := varying_output((of_function() for _ in range(NUM_RUNS)), allowed):
        raise IsRandom(words(case.label, name))
    if name := varying_output((of_reference() for _ in range(NUM_RUNS)), allowed):
        raise ValueError(words("the reference", name))


def words(whose: str, output: str) -> str:
    """What is said of an output that differs."""
    return f"{whose}: {output} differs when forward runs twice on the same inputs; {ADVICE}"
