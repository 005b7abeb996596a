"""References that don't do what a reference must."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from nets import Double, report_of

from nn_manual import Linear, Sequential
from nn_manual.arrays import Array
from nn_manual.check.catalogue.upstream import UpstreamLoss
from nn_manual.check.whole_step.gradients import check_gradients


class Here(Double):
    """Its forward stands in this file, which therefore is the user's."""

    def forward(self, input: Array) -> tuple[Array, Any]:
        return 2 * input, None


def raises(input: Any) -> Any:  # noqa: ARG001 - a reference's signature
    raise LookupError("no table")


def writes(input: Any) -> Any:
    return input.mul_(2)


REFERENCES: dict[str, tuple[Any, str]] = {
    "raises": (raises, "its own reference raised LookupError: no table"),
    "numpy": (lambda input: np.multiply(input, 2), "its own reference raised RuntimeError: Can't call numpy() on "),
    "array": (lambda input: input.detach().numpy() * 2, "its own reference returned ndarray, not a torch tensor"),
    "shape": (lambda input: 2 * input[:, :1], "a float64 tensor of shape (5, 1), forward a float64 tensor of shape"),
    "dtype": (lambda input: 2 * input.float(), "a float32 tensor of shape (5, 4), forward a float64 tensor"),
    "nothing": (lambda input: None, "its own reference returned NoneType"),  # noqa: ARG005 - a reference's signature
    "writes": (writes, "its own reference writes into its input"),
    "detached": (lambda input: 2 * input.detach(), "a tensor that autograd can't follow back to the input"),
}


@pytest.mark.parametrize("name", REFERENCES)
def test_a_reference_that_does_not_fit_is_reported_as_it_is(name: str) -> None:
    reference, words = REFERENCES[name]
    layer = type("Doubled", (Here,), {"reference": staticmethod(reference)})()
    problem = report_of(layer).problem
    assert problem is not None
    assert problem.startswith("2 (Doubled): its own reference ")
    assert words in problem
    assert (f" ({__file__}:" in problem) == ("raised" in words)


def test_a_reference_that_torch_cannot_differentiate_is_reported() -> None:
    class OneWay(torch.autograd.Function):
        @staticmethod
        def forward(context: Any, input: torch.Tensor) -> torch.Tensor:  # noqa: ARG004 - torch's signature
            return 2 * input

    layer = type("Doubled", (Double,), {"reference": lambda self, input: OneWay.apply(input)})()  # type: ignore[no-untyped-call]  # noqa: ARG005 - torch's lack of annotations
    problem = report_of(layer).problem
    assert problem is not None
    assert problem.startswith("torch can't differentiate a reference: NotImplementedError: ")


def test_a_reference_of_a_loss_is_one_tensor() -> None:
    class Loss(UpstreamLoss):
        def reference(self, prediction: Any, target: Any) -> Any:
            return prediction * target

    model = Sequential(Linear(3, 3), dtype="float64")
    report = check_gradients(model, Loss(), np.ones((2, 3)), np.ones((2, 3)))
    expected = "loss: its reference returned a float64 tensor of shape (2, 3), it must return a scalar tensor"
    assert report.problem == expected
