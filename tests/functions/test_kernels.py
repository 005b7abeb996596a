"""check_function on what authors of kernels write: right ones pass, wrong ones are caught and described."""

from __future__ import annotations

import pytest
import torch
from kernels import (
    KERNELS,
    Kernel,
    as_autograd,
    attention_backward,
    layer_norm_backward,
    mse_backward,
    rms_norm_backward,
    swiglu_backward,
)

from nn_manual import GradientReport, check_function
from nn_manual.functions.callables import Function


def gelu_by_tanh(x: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.gelu(x, approximate="tanh")


#: The kernel that is broken, what its backward gives then, from what it gave, and what the report says.
WRONG: dict[str, tuple[str, Function, str]] = {
    "upstream is ignored": ("cross_entropy", lambda saved, *_: saved[0], "the gradient of the output is ignored"),
    "sum for mean": (
        "cross_entropy",
        lambda saved, grad: saved[0] * grad * 4,
        "4 times the reference: the size of axis 0 or the batch size",
    ),
    "= for +=": (
        "embedding",
        lambda saved, grad: torch.zeros_like(saved[1]).index_copy_(0, saved[0].flatten(), grad.flatten(0, -2)),
        "an index that repeats counts once",
    ),
    "the other gelu": (
        "gelu",
        lambda saved, grad: torch.func.vjp(lambda x: torch.nn.functional.gelu(x, approximate="tanh"), *saved)[1](grad)[
            0
        ],
        "positions",
    ),
    "kink": ("relu in place", lambda saved, grad: grad * (saved >= 0), "positions"),
    "swapped": ("swiglu", lambda saved, grad: swiglu_backward(saved, grad)[::-1], "grad_gate and grad_up are swapped"),
    "mean over the batch": (
        "layer_norm",
        lambda saved, grad: [g / d for g, d in zip(layer_norm_backward(saved, grad), (1, 4, 1), strict=True)],
        "1/4 of the reference: divided by the batch size",
    ),
    "weight forgotten": (
        "rms_norm",
        lambda saved, grad: rms_norm_backward((*saved[:2], torch.ones_like(saved[2])), grad),
        "positions",
    ),
    "square root of d forgotten": (
        "attention",
        lambda saved, grad: [3 * g for g in attention_backward(saved, grad)],
        "3 times the reference: the size of axis 1",
    ),
    "all equal to the largest": (
        "largest",
        lambda saved, grad: grad[..., None] + 0 * saved[1],
        "constant along axis (1,)",
    ),
    "sign of the target": ("mse", lambda saved, grad: 2 * mse_backward(saved, grad)[:1], "the wrong sign"),
    "one number, half": (
        "scale",
        lambda saved, grad: (grad * saved[1], (grad * saved[0]).sum() / 2),
        "1/2 of the reference",
    ),
    "one number, anything": (
        "scale",
        lambda saved, grad: (grad * saved[1], 1.7 * (grad * saved[0]).sum()),
        "grad_scale, random upstream is",  # the two values stand below each other
    ),
    "second output forgotten": (
        "several outputs",
        lambda saved, grad, _: (grad * saved[1], grad * saved[0]),
        "the gradient of output 1 is left out",
    ),
}


def check(kernel: Kernel, form: str, dtype: torch.dtype, seed: int) -> GradientReport:
    generator = torch.Generator().manual_seed(seed)
    inputs = [torch.randn(shape, generator=generator, dtype=torch.float64).to(dtype) for shape in kernel.shapes]
    inputs = inputs if kernel.ids is None else [kernel.ids, *inputs]
    function = (kernel.forward, kernel.backward) if form == "pair" else as_autograd(kernel)
    return check_function(function, kernel.definition, inputs, seed=seed)


each_form = pytest.mark.parametrize("form", ["pair", "autograd.Function"])
each_dtype = pytest.mark.parametrize("dtype", [torch.float32, torch.float64])


@pytest.mark.slow
@each_form
@each_dtype
@pytest.mark.parametrize("name", KERNELS)
def test_a_right_kernel_passes(name: str, form: str, dtype: torch.dtype) -> None:
    """It alone has false alarms about other people's kinds of kernels."""
    report = check(KERNELS[name], form, dtype, seed=len(name) + len(form))
    assert report.passed, report


@pytest.mark.slow
@each_form
@each_dtype
@pytest.mark.parametrize("mistake", WRONG)
def test_a_wrong_kernel_is_caught_and_described(mistake: str, form: str, dtype: torch.dtype) -> None:
    """It alone has the description of each mistake in such a kernel."""
    name, backward, words = WRONG[mistake]
    report = check(KERNELS[name]._replace(backward=backward), form, dtype, seed=len(name) + len(form))
    assert report.failures, report
    assert words in " ".join(str(report).split())
