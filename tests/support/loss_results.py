"""What the tests of losses share: losses to test, their results, and torch's."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np
import torch
from comparing import assert_equal, frozen

from nn_manual import CrossEntropyLoss, MSELoss, TraceLoss
from nn_manual.arrays import Array, Shape
from nn_manual.check.catalogue.targets import draw_target
from nn_manual.defaults import defines
from nn_manual.exercises.kinds.frozen import freeze
from nn_manual.losses import (
    BCELoss,
    BCEWithLogitsLoss,
    CTCLoss,
    GaussianNLLLoss,
    HingeEmbeddingLoss,
    HuberLoss,
    KLDivLoss,
    L1Loss,
    Loss,
    MultiLabelMarginLoss,
    MultiLabelSoftMarginLoss,
    MultiMarginLoss,
    NLLLoss,
    PoissonNLLLoss,
    SmoothL1Loss,
    SoftMarginLoss,
)
from nn_manual.losses.binary import OfLogits
from nn_manual.losses.class_targets import OfClasses

#: Of equal shapes.
REGRESSION = [
    *(MSELoss(), MSELoss("sum"), TraceLoss(), L1Loss(), L1Loss("sum")),
    *(HuberLoss(), HuberLoss("sum", 0.3), SmoothL1Loss(), SmoothL1Loss("sum", 0.3)),
    *(GaussianNLLLoss(), GaussianNLLLoss("sum", 0.3), GaussianNLLLoss("mean", 2.0, full=True)),
    *(BCELoss(), BCELoss("sum"), BCEWithLogitsLoss(), BCEWithLogitsLoss("sum")),
    *(MultiLabelSoftMarginLoss(), MultiLabelSoftMarginLoss("sum"), MultiLabelMarginLoss(), MultiLabelMarginLoss("sum")),
    *(SoftMarginLoss(), SoftMarginLoss("sum"), HingeEmbeddingLoss(), HingeEmbeddingLoss("sum", 0.3)),
    *(KLDivLoss(), KLDivLoss("sum"), KLDivLoss("batchmean"), KLDivLoss("batchmean", log_target=True)),
    *(PoissonNLLLoss(), PoissonNLLLoss("sum", full=True), PoissonNLLLoss("mean", log_input=False, eps=1e-3)),
]

#: For up to six classes: what it takes of them.
WEIGHTS = [0.5, 2.0, 0.1, 1.0, 3.0, 0.25]
CROSS_ENTROPIES = [CrossEntropyLoss(reduction, s) for reduction in ("mean", "sum") for s in (0.0, 0.1, 1.0)]
MULTI_MARGINS = [MultiMarginLoss(reduction, p) for reduction in ("mean", "sum") for p in (1, 2)]
PATHS = [CTCLoss(), CTCLoss(reduction="sum"), CTCLoss(zero_infinity=True)]
CLASSIFICATION = [
    *(*CROSS_ENTROPIES, NLLLoss(), NLLLoss("sum"), *MULTI_MARGINS, MultiMarginLoss("mean", 2, 0.3)),
    *PATHS,
]


def with_weights(num_classes: int) -> list[Loss]:
    """Losses with weights, with a class that is ignored, and with both, for a prediction of so many classes."""
    weight = WEIGHTS[:num_classes]
    return [
        *(BCELoss("mean", weight), MultiLabelSoftMarginLoss("sum", weight), MultiLabelSoftMarginLoss("mean", weight)),
        *(BCEWithLogitsLoss("mean", weight), BCEWithLogitsLoss("sum", None, weight)),
        BCEWithLogitsLoss("mean", weight[::-1], weight),
        *cross_entropies_with_weights(weight),
        *likelihoods_with_weights(weight),
        *(MultiMarginLoss(reduction, p, 0.5, weight) for reduction in ("mean", "sum") for p in (1, 2)),
    ]


def likelihoods_with_weights(weight: list[float]) -> list[NLLLoss]:
    """Those of them that are likelihoods of classes."""
    return [
        NLLLoss(reduction, classes, ignored)
        for reduction in ("mean", "sum")
        for classes, ignored in [(weight, -100), (None, 1), (weight, 1)]
    ]


def cross_entropies_with_weights(weight: list[float]) -> list[CrossEntropyLoss]:
    """Those of them that are cross-entropies."""
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
    leaves["target"].requires_grad_(defines(loss, "backward_target"))
    options = {field.name: getattr(loss, field.name) for field in fields(loss)}  # type: ignore[arg-type]  # a dataclass
    if isinstance(loss, TraceLoss):  # written once more, since its own reference is what is to be trusted
        difference = leaves["prediction"] - leaves["target"]
        value = torch.trace(difference.T @ difference)
    elif not hasattr(torch.nn, type(loss).__name__):
        value = loss.reference(*leaves.values())
    elif isinstance(loss, GaussianNLLLoss):
        variance = torch.full_like(leaves["prediction"], options.pop("var"))
        value = torch.nn.GaussianNLLLoss(**options)(leaves["prediction"], leaves["target"], variance)
    elif isinstance(loss, SoftMarginLoss):  # the class overflows: tests/losses/test_margins.py has what it can
        value = loss.reference(*leaves.values())
    elif isinstance(loss, MultiMarginLoss | MultiLabelMarginLoss) and not prediction.size:
        # torch 2.13 returns what its memory held
        value = leaves["prediction"].sum()
    elif isinstance(loss, CTCLoss):
        value = of_paths(loss, leaves["prediction"], target)
    elif isinstance(loss, MultiLabelMarginLoss):  # its target is a list of classes, which -1 ends
        lists = torch.full(target.shape, -1)
        for row, labels in zip(lists.reshape(-1, target.shape[-1]), target.reshape(-1, target.shape[-1]), strict=True):
            (found,) = labels.nonzero()
            row[: len(found)] = torch.from_numpy(found)
        value = torch.nn.MultiLabelMarginLoss(**options)(leaves["prediction"], lists)
    elif isinstance(loss, KLDivLoss):  # the class warns of the mean
        terms = torch.nn.KLDivLoss(reduction="none", log_target=loss.log_target)(leaves["prediction"], leaves["target"])
        value = terms.mean() if loss.reduction == "mean" else torch.nn.KLDivLoss(**options)(*leaves.values())
    else:
        for name in ("weight", "pos_weight"):
            if options.get(name) is not None:
                options[name] = torch.tensor(options[name], dtype=leaves["prediction"].dtype)
        are_rows = isinstance(loss, OfClasses) and prediction.ndim == 2 and target.dtype.kind == "i"
        torch_target = leaves["target"].reshape(-1) if are_rows else leaves["target"]
        value = getattr(torch.nn, type(loss).__name__)(**options)(leaves["prediction"], torch_target)
    value.backward()  # type: ignore[no-untyped-call]  # torch's, of a loss found by name
    gradients = {f"grad_{name}": leaf.grad.numpy() for name, leaf in leaves.items() if leaf.grad is not None}
    return {"loss": value.detach().numpy(), **gradients}


def of_paths(loss: CTCLoss, prediction: torch.Tensor, target: Array) -> torch.Tensor:
    """torch's value, and the gradient of torch's loss behind a log_softmax, where it is that of the value, and of what
    log_softmax subtracts.
    """
    if not len(target):
        return prediction.sum() / (loss.reduction == "sum")
    costs = []
    for row, own in zip(prediction.reshape(*prediction.shape[:2], -1), target.reshape(len(target), -1), strict=True):
        labels = own[own != loss.blank]
        given = torch.tensor([[*labels, loss.blank]]), (row.shape[1],), (len(labels),)
        torchs = torch.nn.CTCLoss(loss.blank, "sum", zero_infinity=True)
        value = torchs(row.detach().T[:, None], *given)
        slopes = torchs(row.log_softmax(0).T[:, None], *given) - row.logsumexp(0).sum()
        needed = len(labels) + np.count_nonzero(labels[1:] == labels[:-1])
        cost = value + (slopes - slopes.detach()) if needed <= row.shape[1] else 0 * row.sum()
        costs.append(cost / max(1, len(labels)) if loss.reduction == "mean" else cost)
    return torch.stack(costs).mean() if loss.reduction == "mean" else torch.stack(costs).sum()


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
    scales = {}
    if isinstance(loss, CrossEntropyLoss) and loss.label_smoothing == 1:
        scale = max(loss.weight or [1]) / prediction.shape[1]
        scales["grad_prediction"] = scale / (loss.denominator(target) if loss.reduction == "mean" else 1)
    if isinstance(loss, OfLogits):  # torch subtracts 1 from a probability near 1, and log(2) from log(2)
        of_each = 1 / loss.num_terms(prediction.shape)
        scales = {"grad_prediction": of_each, "grad_target": of_each}
        scales["loss"] = np.abs(prediction).max(initial=0) * of_each
    if isinstance(loss, PoissonNLLLoss) and not loss.log_input:  # torch subtracts target / prediction from 1
        scales["grad_prediction"] = 1 / loss.num_terms(prediction.shape)
    for name in ours:
        assert_equal(ours[name], reference[name], scale=scales.get(name, 0))


def targets(loss: Loss, kind: str, shape: Shape, dtype: str, generator: np.random.Generator) -> Array:
    """A target of this kind."""
    return draw_target(loss, kind, shape, dtype, generator)
