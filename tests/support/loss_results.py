"""What the tests of losses share: losses to test, their results, and torch's."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np
import torch
from comparing import assert_equal, freeze, frozen

from nn_manual import CrossEntropyLoss, MSELoss, TraceLoss
from nn_manual.arrays import Array, Shape
from nn_manual.check.catalogue.input_kinds import draw
from nn_manual.defaults import defines
from nn_manual.losses import Loss

REGRESSION = [MSELoss(), MSELoss("sum"), TraceLoss()]

#: For up to six classes: what it takes of them.
WEIGHTS = [0.5, 2.0, 0.1, 1.0, 3.0, 0.25]
CLASSIFICATION = [CrossEntropyLoss(reduction, s) for reduction in ("mean", "sum") for s in (0.0, 0.1, 1.0)]


def with_weights(num_classes: int) -> list[CrossEntropyLoss]:
    """Losses with weights, with a class that is ignored, and with both, for a prediction of so many classes."""
    weight = WEIGHTS[:num_classes]
    return [
        CrossEntropyLoss(reduction, smoothing, classes, ignored)
        for reduction in ("mean", "sum")
        for smoothing in (0.0, 0.1, 1.0)
        for classes, ignored in [(weight, -100), (None, 1), (weight, 1), (weight, 255)]
    ]


def torch_results(loss: Loss, prediction: Array, target: Array) -> dict[str, Array]:
    """The value and the gradients that torch finds; of the definition where torch has no such loss."""
    tensors = [torch.from_numpy(array.copy()) for array in (prediction, target)]
    leaves = dict(zip(("prediction", "target"), tensors, strict=True))
    leaves["prediction"].requires_grad_()
    leaves["target"].requires_grad_(not isinstance(loss, CrossEntropyLoss))
    if isinstance(loss, TraceLoss):
        difference = leaves["prediction"] - leaves["target"]
        value = torch.trace(difference.T @ difference)
    else:
        options = {field.name: getattr(loss, field.name) for field in fields(loss)}  # type: ignore[arg-type]  # a dataclass
        if options.get("weight") is not None:
            options["weight"] = torch.tensor(options["weight"], dtype=leaves["prediction"].dtype)
        are_rows = isinstance(loss, CrossEntropyLoss) and prediction.ndim == 2 and target.dtype.kind == "i"
        torch_target = leaves["target"].reshape(-1) if are_rows else leaves["target"]
        value = getattr(torch.nn, type(loss).__name__)(**options)(leaves["prediction"], torch_target)
    value.backward()  # type: ignore[no-untyped-call]  # torch's, of a loss found by name
    gradients = {f"grad_{name}": leaf.grad.numpy() for name, leaf in leaves.items() if leaf.grad is not None}
    return {"loss": value.detach().numpy(), **gradients}


def our_results(loss: Any, prediction: Array, target: Array) -> dict[str, Array]:
    """The same of ours, which can write neither to its arguments nor to what it saves."""
    value, saved = loss.forward(frozen(prediction), frozen(target))
    gradients = {"grad_prediction": loss.backward(freeze(saved))}
    if defines(loss, "backward_target"):
        gradients["grad_target"] = loss.backward_target(saved)
    return {"loss": value, **gradients}


def assert_as_torch(loss: Loss, prediction: Array, target: Array) -> None:
    ours, reference = our_results(loss, prediction, target), torch_results(loss, prediction, target)
    assert ours.keys() == reference.keys()
    # Fully smoothed, the gradient is softmax - 1 / classes, the difference of nearly equal numbers where the logits are
    # nearly equal: torch's rounding and ours are of these numbers' size, and of their weights'.
    scale = 0.0
    if isinstance(loss, CrossEntropyLoss) and loss.label_smoothing == 1:
        scale = max(loss.weight or [1]) / prediction.shape[1]
        scale /= loss.denominator(target) if loss.reduction == "mean" else 1
    for name in ours:
        assert_equal(ours[name], reference[name], scale=scale if name == "grad_prediction" else 0)


def targets(loss: Loss, kind: str, shape: Shape, dtype: str, generator: np.random.Generator) -> Array:
    if isinstance(loss, CrossEntropyLoss):
        return generator.integers(0, shape[1], shape[0])
    return draw(kind, shape, dtype, generator)
