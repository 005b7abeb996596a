"""Kernels as their authors write them: each a forward, a backward and a definition on tensors."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import torch
from torch.autograd.function import once_differentiable

from nn_manual.functions.callables import Function

functional = torch.nn.functional


class Kernel(NamedTuple):
    """A forward and its backward, their definition, and the shapes of the floating inputs; `ids` is what comes first,
    where the kernel takes integers.
    """

    forward: Function
    backward: Function
    definition: Function
    shapes: list[tuple[int, ...]]
    ids: torch.Tensor | None = None


def cross_entropy(target: Any, logits: Any) -> Any:
    grad_logits = (logits.softmax(-1) - functional.one_hot(target, logits.shape[-1])) / len(logits)
    return functional.nll_loss(logits.log_softmax(-1), target), (grad_logits,)


def embedding_backward(saved: Any, grad_output: Any) -> Any:
    ids, weight = saved
    return torch.zeros_like(weight).index_add_(0, ids.flatten(), grad_output.flatten(0, -2))


def gelu_backward(saved: Any, grad_output: Any) -> Any:
    (x,) = saved
    cdf, pdf = 0.5 * (1 + torch.erf(x / math.sqrt(2))), torch.exp(-x * x / 2) / math.sqrt(2 * math.pi)
    return grad_output * (cdf + x * pdf)


def swiglu(gate: Any, up: Any) -> Any:
    sigmoid = torch.sigmoid(gate)
    return gate * sigmoid * up, (gate, up, sigmoid)


def swiglu_backward(saved: Any, grad_output: Any) -> Any:
    gate, up, sigmoid = saved
    return grad_output * up * sigmoid * (1 + gate * (1 - sigmoid)), grad_output * gate * sigmoid


def layer_norm(x: Any, weight: Any, bias: Any) -> Any:
    scale = (x.var(-1, correction=0, keepdim=True) + 1e-5).rsqrt()
    normalized = (x - x.mean(-1, keepdim=True)) * scale
    return normalized * weight + bias, (normalized, scale, weight)


def layer_norm_backward(saved: Any, grad_output: Any) -> Any:
    normalized, scale, weight = saved
    grad = grad_output * weight
    along = normalized * (grad * normalized).mean(-1, keepdim=True)
    grad_x = scale * (grad - grad.mean(-1, keepdim=True) - along)
    return grad_x, (grad_output * normalized).sum(0), grad_output.sum(0)


def rms_norm(x: Any, weight: Any) -> Any:
    scale = (x.square().mean(-1, keepdim=True) + 1e-6).rsqrt()
    return x * scale * weight, (x, scale, weight)


def rms_norm_backward(saved: Any, grad_output: Any) -> Any:
    x, scale, weight = saved
    grad = grad_output * weight
    return scale * (grad - x * scale**2 * (grad * x).mean(-1, keepdim=True)), (grad_output * x * scale).sum(0)


def attention(q: Any, k: Any, v: Any) -> Any:
    probability = (q @ k.mT / math.sqrt(q.shape[-1])).softmax(-1)
    return probability @ v, (q, k, v, probability)


def attention_backward(saved: Any, grad_output: Any) -> Any:
    q, k, v, probability = saved
    grad = grad_output @ v.mT
    grad = probability * (grad - (grad * probability).sum(-1, keepdim=True)) / math.sqrt(q.shape[-1])
    return grad @ k, grad.mT @ q, probability.mT @ grad_output


def largest(x: Any) -> Any:
    values, indices = x.max(-1)
    return (values, indices), (indices, x)


def largest_backward(saved: Any, grad_values: Any) -> Any:
    indices, x = saved
    return torch.zeros_like(x).scatter(-1, indices[..., None], grad_values[..., None])


def mse_backward(saved: Any, grad_output: Any) -> Any:
    (difference,) = saved
    grad = 2 * difference / difference.numel() * grad_output
    return grad, -grad


KERNELS = {
    "cross_entropy": Kernel(
        cross_entropy,
        lambda saved, grad_output: saved[0] * grad_output,
        lambda target, logits: functional.cross_entropy(logits, target),
        [(4, 5)],
        torch.tensor([0, 3, 1, 3]),
    ),
    "embedding": Kernel(
        lambda ids, weight: (weight[ids], (ids, weight)),
        embedding_backward,
        functional.embedding,
        [(6, 3)],
        torch.tensor([[0, 3], [3, 1]]),
    ),
    "gelu": Kernel(lambda x: (functional.gelu(x), (x,)), gelu_backward, lambda x: functional.gelu(x), [(4, 3)]),
    "relu in place": Kernel(
        lambda x: 2 * (x.clone().relu_(),),
        lambda saved, grad_output: grad_output * (saved > 0),
        lambda x: functional.relu(x),
        [(4, 3)],
    ),
    "swiglu": Kernel(swiglu, swiglu_backward, lambda gate, up: functional.silu(gate) * up, [(4, 3), (4, 3)]),
    "layer_norm": Kernel(
        layer_norm,
        layer_norm_backward,
        lambda x, weight, bias: functional.layer_norm(x, (6,), weight, bias),
        [(4, 6), (6,), (6,)],
    ),
    "rms_norm": Kernel(
        rms_norm, rms_norm_backward, lambda x, weight: functional.rms_norm(x, (6,), weight, 1e-6), [(4, 6), (6,)]
    ),
    "attention": Kernel(
        attention, attention_backward, functional.scaled_dot_product_attention, [(2, 3, 9), (2, 3, 9), (2, 3, 9)]
    ),
    "largest": Kernel(largest, largest_backward, lambda x: tuple(x.max(-1)), [(4, 5)]),
    "mse": Kernel(
        lambda prediction, target: ((prediction - target).square().mean(), (prediction - target,)),
        mse_backward,
        functional.mse_loss,
        [(4, 3), (4, 3)],
    ),
    "scale": Kernel(
        lambda x, scale: (x * scale, (x, scale)),
        lambda saved, grad_output: (grad_output * saved[1], (grad_output * saved[0]).sum()),
        lambda x, scale: x * scale,
        [(4, 3), ()],
    ),
    "several outputs": Kernel(
        lambda x, y: ((x * y, x + y.exp()), (x, y)),
        lambda saved, grad, other: (grad * saved[1] + other, grad * saved[0] + other * saved[1].exp()),
        lambda x, y: (x * y, x + y.exp()),
        [(4, 3), (4, 3)],
    ),
}


def as_autograd(kernel: Kernel) -> type[torch.autograd.Function]:
    """The kernel as its author would pass it to torch."""

    class Wrapped(torch.autograd.Function):
        @staticmethod
        def forward(context: Any, *inputs: torch.Tensor) -> Any:
            outputs, saved = kernel.forward(*inputs)
            context.is_several = isinstance(saved, tuple)
            context.save_for_backward(*(saved if context.is_several else [saved]))
            every = outputs if isinstance(outputs, tuple) else (outputs,)
            context.mark_non_differentiable(*(output for output in every if not output.is_floating_point()))
            context.num_gradients = sum(output.is_floating_point() for output in every)
            return outputs

        @staticmethod
        @once_differentiable
        def backward(context: Any, *grad_outputs: torch.Tensor) -> Any:
            saved = context.saved_tensors if context.is_several else context.saved_tensors[0]
            grads = kernel.backward(saved, *grad_outputs[: context.num_gradients])
            grads = (grads,) if isinstance(grads, torch.Tensor) else tuple(grads)
            return grads if kernel.ids is None else (None, *grads)

    return Wrapped
