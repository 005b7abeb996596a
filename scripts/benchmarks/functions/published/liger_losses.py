"""liger-kernel: losses of logits and probabilities, in Triton's interpreter. They take float32 and 16 bits."""

from __future__ import annotations

from typing import Any

import torch
from torch.nn import functional

from benchmarks.functions.published.triton_on_cpu import liger
from benchmarks.functions.subject import Published, normal


def kl(log_q: torch.Tensor, p: torch.Tensor) -> torch.Tensor:
    return (torch.xlogy(p, p) - p * log_q).sum() / len(p)


def jsd(log_q: torch.Tensor, log_p: torch.Tensor) -> torch.Tensor:
    """0.3 KL(p | m) + 0.7 KL(q | m), m = 0.3 p + 0.7 q; the mean over the rows. The target takes no gradient."""
    log_p = log_p.detach()
    p, q = log_p.exp(), log_q.exp()
    log_m = (0.3 * p + 0.7 * q).log()
    return (0.3 * p * (log_p - log_m) + 0.7 * q * (log_q - log_m)).sum() / len(p)


def tvd(p: torch.Tensor, q: torch.Tensor) -> torch.Tensor:
    return (p - q.detach()).abs().sum() / 2 / len(p)


def scores(generator: torch.Generator, N: int, V: int) -> list[torch.Tensor]:
    return [normal(generator, N, V), torch.randint(0, V, (N,), generator=generator)]


def shares(generator: torch.Generator, N: int, V: int) -> list[torch.Tensor]:
    return [normal(generator, N, V).softmax(1), normal(generator, N, V).softmax(1)]


def shares_of_logarithms(generator: torch.Generator, N: int, V: int) -> list[torch.Tensor]:
    return [normal(generator, N, V).log_softmax(1), normal(generator, N, V).softmax(1)]


def logarithms(generator: torch.Generator, N: int, V: int) -> list[torch.Tensor]:
    return [normal(generator, N, V).log_softmax(1), normal(generator, N, V).log_softmax(1)]


def constant_target(function: Any) -> Any:
    """The target takes no gradient."""
    return lambda x, target: function(x, target.detach())


def hidden(generator: torch.Generator, N: int, D: int, V: int) -> list[torch.Tensor]:
    return [normal(generator, N, D), normal(generator, V, D), torch.randint(0, V, (N,), generator=generator)]


def linear(x: torch.Tensor, weight: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    return functional.cross_entropy(x @ weight.T, target)


def each_linear(x: torch.Tensor, weight: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    return functional.cross_entropy(x @ weight.T, target, reduction="none")


def two_models(generator: torch.Generator, N: int, D: int, V: int) -> list[torch.Tensor]:
    return [normal(generator, *shape) for shape in ((N, D), (V, D), (N, D), (V, D))]


def linear_jsd(x: torch.Tensor, weight: torch.Tensor, teacher: torch.Tensor, teacher_weight: torch.Tensor) -> Any:
    """The halves of KL(p | m) and KL(q | m), m = (p + q) / 2. The teacher takes no gradient."""
    log_q, log_p = (x @ weight.T).log_softmax(1), (teacher @ teacher_weight.T).log_softmax(1).detach()
    log_m = ((log_p.exp() + log_q.exp()) / 2).log()
    return (log_p.exp() * (log_p - log_m) + log_q.exp() * (log_q - log_m)).sum() / 2 / len(x)


def liger_linear_jsd(x: Any, weight: Any, teacher: Any, teacher_weight: Any) -> Any:
    return liger.liger_fused_linear_jsd(x, weight, teacher.detach(), teacher_weight.detach())


#: Few sizes: a row of the interpreter takes a second. A dimension past a block is among them.
SIZES = {"N": (1, 5), "V": (3, 8, 33)}
HIDDEN = {"N": (1, 5), "D": (2, 16), "V": (3, 33)}
SINGLE = {"dtypes": ["float32"]}
#: A multiplication by torch is differentiated, and what the kernel has computed isn't.
ONCE = SINGLE | {"skip": ["twice"]}
POSITIVE = SINGLE | {"domain": "positive"}
#: The gradient takes the place of the logits, to save memory: its documentation says so.
OVERWRITES = SINGLE | {"skip": ["writes inputs", "writes saved"]}
DEFINITION = "the formula in its documentation, by hand; the target takes no gradient"
RIGHT = [
    Published(
        "liger_kl_div",
        constant_target(lambda log_q, p: liger.liger_kl_div(log_q, p, reduction="batchmean")),
        constant_target(kl), shares_of_logarithms, DEFINITION, SIZES, POSITIVE,
    ),
    Published(
        "liger_jsd", constant_target(lambda q, p: liger.liger_jsd(q, p, beta=0.3)), jsd, logarithms, DEFINITION, SIZES,
        ONCE,
    ),
    Published(
        "liger_tvd", constant_target(lambda p, q: liger.liger_tvd(p, q, reduction="batchmean")), tvd, shares,
        DEFINITION, SIZES, SINGLE,
    ),
    Published(
        "liger_fused_linear_cross_entropy, each",
        lambda x, weight, target: liger.liger_fused_linear_cross_entropy(x, weight, target, reduction="none"),
        each_linear, hidden, DEFINITION, HIDDEN, ONCE,
    ),
]
WRONG = [
    Published(
        "liger_cross_entropy",
        lambda x, target: liger.liger_cross_entropy(x, target),
        functional.cross_entropy,
        scores,
        "`.contiguous()` in forward returns a copy that needs no gradient, and the kernel asks the copy",
        SIZES,
        OVERWRITES,
        "transposed logits get themselves for their gradient",
        ("inputs transposed", "inputs strided"),
    ),
    Published(
        "liger_fused_linear_cross_entropy",
        lambda x, weight, target: liger.liger_fused_linear_cross_entropy(x, weight, target),
        linear,
        hidden,
        "the gradient of the weight is computed where the input needs one",
        HIDDEN,
        OVERWRITES,
        "without a gradient of the input, the weight has none",
        ("requires_grad", "retain_graph"),
    ),
    Published(
        "liger_fused_linear_jsd",
        liger_linear_jsd,
        linear_jsd,
        two_models,
        "the gradient has the transposed layout of the input, and the kernel that multiplies it goes along rows",
        HIDDEN,
        OVERWRITES,
        "of a transposed input, only a part is multiplied by the gradient of the loss",
        ("inputs transposed",),
    ),
]
