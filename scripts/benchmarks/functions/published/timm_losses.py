"""timm: losses of logits, made of torch's operations, beside their definitions."""

from __future__ import annotations

from typing import Any

import torch
from torch.nn import functional

from benchmarks.functions.published.timm_files import timm_file
from benchmarks.functions.subject import Published, normal

loss = timm_file("loss")


def soft_target(x: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    return (target * (torch.logsumexp(x, 1, keepdim=True) - x)).sum(1).mean()


def smoothed(x: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    return functional.cross_entropy(x, target, label_smoothing=0.1)


def binary(x: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    """Of one-hot targets, smoothed to 0.1 / D and 0.9 + 0.1 / D; log(1 + exp(x)) - target x."""
    num_classes = x.shape[1]
    soft = 0.1 / num_classes + 0.9 * functional.one_hot(target, num_classes).to(x.dtype)
    return (torch.logaddexp(x, torch.zeros_like(x)) - soft * x).mean()


def poly(x: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    """Cross entropy + 2 (1 - p)."""
    log_p = x.log_softmax(1).gather(1, target[:, None])
    return (2 * (1 - log_p.exp()) - log_p).mean()


def zlpr(x: torch.Tensor, is_positive: torch.Tensor) -> torch.Tensor:
    """log(1 + sum of exp(x) over negatives) + log(1 + sum of exp(-x) over positives)."""
    zero = x.new_zeros(len(x), 1)
    negatives = torch.cat([zero, torch.where(is_positive, -torch.inf, x)], 1)
    positives = torch.cat([zero, torch.where(is_positive, -x, -torch.inf)], 1)
    return (negatives.logsumexp(1) + positives.logsumexp(1)).mean()


def jsd(x: torch.Tensor, target: torch.Tensor) -> Any:
    """Smoothed cross entropy of the first third, and 12 times the mean KL of the thirds from their mixture."""
    thirds = x.view(3, -1, x.shape[1])
    p = thirds.softmax(2)
    log_mixture = p.mean(0).clamp(1e-7, 1).log()
    divergence = (torch.special.xlogy(p, p) - p * log_mixture).sum(2).mean()
    return smoothed(thirds[0], target[: len(thirds[0])]) + 12 * divergence


def classes(generator: torch.Generator, N: int, D: int) -> list[torch.Tensor]:
    return [2 * normal(generator, N, D), torch.randint(0, D, (N,), generator=generator)]


def thirds(generator: torch.Generator, N: int, D: int) -> list[torch.Tensor]:
    return classes(generator, 3 * N, D)


def shares(generator: torch.Generator, N: int, D: int) -> list[torch.Tensor]:
    return [2 * normal(generator, N, D), normal(generator, N, D).softmax(1)]


def positives(generator: torch.Generator, N: int, D: int) -> list[torch.Tensor]:
    return [2 * normal(generator, N, D), torch.rand(N, D, generator=generator) < 0.3]


def case(module: Any, definition: Any, inputs: Any, **options: Any) -> Published:
    """A loss has no parameters: its forward is a function."""
    return Published(type(module).__name__, lambda *given: module(*given), definition, inputs, AUTOGRAD, SIZES, options)


#: They compute in float32: `.float()`.
SINGLE = {"dtypes": ["float32"]}
SIZES = {"N": 4, "D": 10}
AUTOGRAD = "made of torch's operations; the definition of its paper, written down by hand"
RIGHT = [
    case(loss.SoftTargetCrossEntropy(), soft_target, shares),
    case(loss.LabelSmoothingCrossEntropy(), smoothed, classes),
    case(loss.BinaryCrossEntropy(), binary, classes),
    case(loss.PolyCrossEntropy(), poly, classes, **SINGLE),
    case(loss.ZlprLoss(), zlpr, positives, **SINGLE),
    case(loss.JsdCrossEntropy(), jsd, thirds),
]
