"""A gradient without its way through a mean, a variance, a norm or a sum: the reduction is named."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch.nn import functional

from nn_manual import check_function
from nn_manual.check.compare.comparison import compare
from nn_manual.functions.check_function import trial_of
from nn_manual.functions.constant_reductions import MOST_REDUCTIONS, describe_constant
from nn_manual.functions.pairs import pairs

GENERATOR = np.random.default_rng(0)
X, WEIGHT = GENERATOR.standard_normal((4, 3)), GENERATOR.standard_normal(3)


def said(forward: Any, backward: Any, reference: Any, *inputs: Any, dtype: str = "float64") -> str:
    case = trial_of((forward, backward), reference, list(inputs), dtypes=[dtype]).case
    return describe_constant(case, next(pair for pair in pairs(case) if not compare(*pair).passed))


def layer_norm(x: Any) -> Any:
    std = np.sqrt(x.var(-1, keepdims=True) + 1e-5)
    normalized = (x - x.mean(-1, keepdims=True)) / std
    return normalized, (normalized, std)


def by_hand(x: torch.Tensor) -> torch.Tensor:
    centred = x - x.mean(-1, keepdim=True)
    return centred / (centred.square().mean(-1, keepdim=True) + 1e-5).sqrt()


def both_constant(cache: Any, dout: Any) -> Any:
    return dout / cache[1]


def std_constant(cache: Any, dout: Any) -> Any:
    return (dout - dout.mean(-1, keepdims=True)) / cache[1]


def mean_constant(cache: Any, dout: Any) -> Any:
    normalized, std = cache
    return (dout - normalized * (dout * normalized).mean(-1, keepdims=True)) / std


NORMS: dict[str, Any] = {
    "fused": lambda x: functional.layer_norm(x, (3,)),
    "module": torch.nn.LayerNorm(3, elementwise_affine=False),
}


@pytest.mark.parametrize("reference", NORMS.values(), ids=NORMS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_of_a_layer_norm(reference: Any, dtype: str) -> None:
    assert said(layer_norm, both_constant, reference, X, dtype=dtype) == (
        "as if var and mean were constant: the gradient through them is left out"
    )
    assert said(layer_norm, std_constant, reference, X, dtype=dtype) == (
        "as if var were constant: the gradient through it is left out"
    )
    assert said(layer_norm, mean_constant, reference, X, dtype=dtype).startswith("as if mean were constant")


def test_of_several_with_one_name_the_number_is_given() -> None:
    assert said(layer_norm, std_constant, by_hand, X).startswith("as if mean 2 of 2 were constant")
    assert said(layer_norm, both_constant, by_hand, X).startswith("as if mean 1 of 2 and mean 2 of 2 were constant")


def test_beside_a_weight() -> None:
    def rms_norm(x: Any, weight: Any) -> Any:
        rms = np.sqrt((x * x).mean(-1, keepdims=True) + 1e-5)
        return x / rms * weight, (x / rms, rms, weight)

    def backward(cache: Any, dout: Any) -> Any:
        normalized, rms, weight = cache
        return dout * weight / rms, (dout * normalized).sum(0)

    found = said(rms_norm, backward, lambda x, weight: functional.rms_norm(x, (3,), weight, 1e-5), X, WEIGHT)
    assert found.startswith("as if mean were constant")


def test_a_norm_inside_of_a_function_of_torch() -> None:
    def normalize(x: Any) -> Any:
        norm = np.sqrt((x * x).sum(-1, keepdims=True))
        return x / norm, norm

    found = said(normalize, lambda norm, dout: dout / norm, functional.normalize, np.abs(X))
    assert found.startswith("as if vector_norm were constant")


def test_a_maximum_that_changes_nothing_is_not_named() -> None:
    def softmax(x: Any) -> Any:
        exp = np.exp(x)
        return exp / exp.sum(-1, keepdims=True), exp / exp.sum(-1, keepdims=True)

    found = said(softmax, lambda cache, dout: dout * cache, lambda x: x.softmax(-1), X)
    assert found == "as if sum were constant: the gradient through it is left out"


def test_what_is_wrong_otherwise_has_none() -> None:
    def backward(cache: Any, dout: Any) -> Any:
        return 1.3 * std_constant(cache, dout)

    assert said(layer_norm, backward, NORMS["fused"], X) == ""
    assert said(layer_norm, std_constant, None, X) == ""  # differences of forward can't be traced


def test_a_reference_that_cannot_be_traced() -> None:
    def reference(x: torch.Tensor) -> torch.Tensor:
        assert x.sum().item() < 1e9  # a number that a graph doesn't have
        return functional.layer_norm(x, (3,))

    assert said(layer_norm, std_constant, reference, X) == ""


def test_a_reference_whose_trace_has_another_gradient() -> None:
    def without_the_variance(x: torch.Tensor) -> torch.Tensor:
        return _Doubled.apply(functional.layer_norm(x, (3,)))  # type: ignore[no-any-return, no-untyped-call]

    assert said(layer_norm, std_constant, without_the_variance, X) == ""


class _Doubled(torch.autograd.Function):
    """Passes on its input, and twice its gradient: autograd doesn't find this in the operations alone."""

    @staticmethod
    def forward(_: Any, x: torch.Tensor) -> torch.Tensor:
        return x.clone()

    @staticmethod
    def backward(_: Any, grad_output: torch.Tensor) -> torch.Tensor:
        return 2 * grad_output


def test_a_reference_with_many_reductions() -> None:
    def reference(x: torch.Tensor) -> torch.Tensor:
        for _ in range(MOST_REDUCTIONS):
            x = x + 0 * x.mean()
        return functional.layer_norm(x, (3,))

    assert said(layer_norm, std_constant, reference, X) == ""


def test_the_report_has_it() -> None:
    report = check_function((layer_norm, std_constant), NORMS["fused"], [X], only=["retain_graph"])
    assert report.diagnosis == "as if var were constant: the gradient through it is left out"
