"""Normalization over groups of channels, beside its definition, one group after the other."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from nn_manual import GroupNorm, InstanceNorm1d, InstanceNorm2d, InstanceNorm3d, LayerNorm, Sequential
from nn_manual.arrays import Array, Shape

OWNERS: list[Any] = [GroupNorm, InstanceNorm1d, InstanceNorm2d, InstanceNorm3d]


@pytest.mark.parametrize(("layer", "shape"), [each for owner in OWNERS for each in owner.examples()], ids=repr)
def test_each_group_is_normalized(layer: Any, shape: Shape) -> None:
    """The output by the definition; the gradients by LayerNorm's, which is derived by itself, of each group."""
    generator = np.random.default_rng(0)
    Sequential(layer, dtype="float64")
    for parameter in vars(layer.param).values():
        parameter[...] = generator.standard_normal(parameter.shape)
    given = vars(layer.param)
    weight, bias = given.get("weight", np.ones(shape[1])), given.get("bias", np.zeros(shape[1]))
    input, grad_output = generator.standard_normal((2, *shape))
    output, saved = layer.forward(input)
    grad_input, size = layer.backward(saved, grad_output), shape[1] // layer.num_rows
    normalized: Array = np.empty(shape)
    for n in range(shape[0]):
        for first in range(0, shape[1], size):
            group = input[n, first : first + size]
            normalized[n, first : first + size] = (group - group.mean()) / np.sqrt(group.var() + layer.eps)
            of_group = LayerNorm(list(group.shape), eps=layer.eps, elementwise_affine=False)
            grads = [grad_output[n, c] * weight[c] for c in range(first, first + size)]
            wanted = of_group.backward(of_group.forward(group)[1], np.array(grads))
            np.testing.assert_allclose(grad_input[n, first : first + size], wanted, rtol=0, atol=1e-13)
    for c in range(shape[1]):
        np.testing.assert_allclose(output[:, c], normalized[:, c] * weight[c] + bias[c], rtol=0, atol=1e-13)
        if layer.affine:
            assert layer.grad.weight[c] == pytest.approx((grad_output[:, c] * normalized[:, c]).sum(), abs=1e-13)
        if layer.affine and layer.bias:
            assert layer.grad.bias[c] == pytest.approx(grad_output[:, c].sum(), abs=1e-13)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: GroupNorm(0, 4), "num_groups must be at least 1, not 0"),
        (lambda: GroupNorm(2, 0), "num_channels must be at least 1, not 0"),
        (lambda: GroupNorm(2, 3), "num_groups must divide num_channels=3, 2 doesn't"),
        (lambda: GroupNorm(1, 3, eps=-1.0), "eps must be at least 0, not -1.0"),
        (lambda: InstanceNorm2d(0), "num_features must be at least 1, not 0"),
        (lambda: InstanceNorm2d(1, eps=0.0), "eps must be above 0, not 0.0"),
        (
            lambda: GroupNorm(1, 3).output_shape((2, 4)),
            "GroupNorm takes (batch, num_channels=3, ...), the input has shape (2, 4)",
        ),
        (
            lambda: InstanceNorm1d(3).output_shape((2, 3)),
            "InstanceNorm1d takes (batch, num_features=3, length), the input has shape (2, 3)",
        ),
        (
            lambda: InstanceNorm1d(3).output_shape((2, 4, 5)),
            "InstanceNorm1d has num_features=3, the input has shape (2, 4, 5)",
        ),
    ],
)
def test_what_is_refused(make: Any, message: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        make()
