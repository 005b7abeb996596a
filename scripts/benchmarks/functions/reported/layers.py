"""Recurrence, convolution, pooling, attention and normalization, with mistakes that libraries had."""

import math
from typing import Any

import torch
from torch.autograd import Function
from torch.autograd.function import once_differentiable
from torch.nn import functional

from benchmarks.functions.subject import Subject, normal


def sequence(generator: torch.Generator, T: int, D: int) -> list[torch.Tensor]:
    return [normal(generator, T, D), 0.5 * normal(generator, D, D)]


def recurrence(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    state, states = torch.zeros_like(x[:1]), [x[:0]]
    for step in range(len(x)):
        state = torch.tanh(x[step : step + 1] + state @ weight)
        states.append(state)
    return torch.cat(states)


class Recurrence(Function):
    """h_t = tanh(x_t + h_{t-1} W); the gradient of h_t is grad_output_t plus what comes back from h_{t+1}."""

    later = 1.0

    @classmethod
    def back(cls, context: Any, grad_output: Any) -> Any:
        states, weight = context.saved_tensors
        carried, grad_x = torch.zeros_like(states[:1]), torch.zeros_like(states)
        grad_weight = torch.zeros_like(weight)
        for step in reversed(range(len(states))):
            grad = (grad_output[step : step + 1] + carried) * (1 - states[step : step + 1] ** 2)
            before = states[step - 1 : step] if step else torch.zeros_like(grad)
            grad_x[step] = grad[0]
            grad_weight += before.T @ grad
            carried = cls.later * grad @ weight.T
        return grad_x, grad_weight

    @staticmethod
    def forward(context: Any, x: Any, weight: Any) -> Any:
        states = recurrence(x, weight)
        context.save_for_backward(states, weight)
        return states

    @staticmethod
    @once_differentiable
    def backward(context: Any, grad_output: Any) -> Any:
        return Recurrence.back(context, grad_output)


class RecurrenceForgetsLaterSteps(Recurrence):
    """The gradient of each step comes from its own output alone (a scratch library's recurrent layer)."""

    later = 0.0

    @staticmethod
    @once_differentiable
    def backward(context: Any, grad_output: Any) -> Any:
        return RecurrenceForgetsLaterSteps.back(context, grad_output)


def signal(generator: torch.Generator, N: int, L: int) -> list[torch.Tensor]:
    """Three samples longer than L, so that there is a window."""
    return [normal(generator, N, L + 3)]


def windows(x: torch.Tensor) -> torch.Tensor:
    """The largest number of each window of three neighbours."""
    return x.unfold(-1, 3, 1).max(-1).values


class MaxPool(Function):
    """Windows overlap: a value that is the largest of several gets the sum of their gradients."""

    @staticmethod
    def forward(context: Any, x: Any) -> Any:
        value, place = x.unfold(-1, 3, 1).max(-1)
        context.save_for_backward(place + torch.arange(place.shape[-1]))
        context.shape = x.shape
        return value

    @staticmethod
    def backward(context: Any, grad_output: Any) -> Any:
        (place,) = context.saved_tensors
        return grad_output.new_zeros(context.shape).scatter_add(-1, place, grad_output)


class MaxPoolLastWins(MaxPool):
    """`=` for `+=` where windows overlap (NNlib.jl 205)."""

    @staticmethod
    def backward(context: Any, grad_output: Any) -> Any:
        (place,) = context.saved_tensors
        return grad_output.new_zeros(context.shape).scatter(-1, place, grad_output)


def signal_and_filter(generator: torch.Generator, N: int, L: int) -> list[torch.Tensor]:
    return [normal(generator, N, 1, L + 3), normal(generator, 1, 1, 3)]


def convolution(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    return functional.conv1d(x, weight)


class Convolution(Function):
    """grad_x is grad_output, padded, correlated with the filter turned around."""

    @staticmethod
    def forward(context: Any, x: Any, weight: Any) -> Any:
        context.save_for_backward(x, weight)
        return (x.unfold(-1, 3, 1) * weight).sum(-1)

    @staticmethod
    def backward(context: Any, grad_output: Any) -> Any:
        x, weight = context.saved_tensors
        grad_x = (functional.pad(grad_output, (2, 2)).unfold(-1, 3, 1) * weight.flip(-1)).sum(-1)
        return grad_x, (grad_output[..., None] * x.unfold(-1, 3, 1)).sum((0, 1, 2)).reshape(1, 1, 3)


class ConvolutionUnflipped(Convolution):
    """Only the filter's gradient had been tested (mlpack 1923)."""

    @staticmethod
    def backward(context: Any, grad_output: Any) -> Any:
        _, weight = context.saved_tensors
        grad_x = (functional.pad(grad_output, (2, 2)).unfold(-1, 3, 1) * weight).sum(-1)
        return grad_x, Convolution.backward(context, grad_output)[1]


def gates(generator: torch.Generator, N: int, D: int) -> list[torch.Tensor]:
    return [normal(generator, N, D) for _ in range(3)] + [normal(generator, D)]


def candidate(x: torch.Tensor, hidden: torch.Tensor, reset: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    """The candidate of a GRU: tanh(x + sigmoid(reset) (hidden + bias))."""
    return torch.tanh(x + torch.sigmoid(reset) * (hidden + bias))


class Candidate(Function):
    @staticmethod
    def forward(context: Any, x: Any, hidden: Any, reset: Any, bias: Any) -> Any:
        output = candidate(x, hidden, reset, bias)
        context.save_for_backward(output, hidden, reset, bias)
        return output

    @staticmethod
    def backward(context: Any, grad_output: Any) -> Any:
        output, hidden, reset, bias = context.saved_tensors
        grad, gate = grad_output * (1 - output * output), torch.sigmoid(reset)
        grad_hidden = grad * gate
        return grad, grad_hidden, grad * (hidden + bias) * gate * (1 - gate), grad_hidden.sum(0)


class CandidateBiasUngated(Candidate):
    """Takes the two biases of a GRU for redundant."""

    @staticmethod
    def backward(context: Any, grad_output: Any) -> Any:
        grads = Candidate.backward(context, grad_output)
        return *grads[:3], grads[0].sum(0)


def heads(generator: torch.Generator, T: int, D: int) -> list[torch.Tensor]:
    """Four heads of queries share two of keys."""
    return [normal(generator, 4, T, D), normal(generator, 2, T, D)]


def scores(query: torch.Tensor, key: torch.Tensor) -> torch.Tensor:
    return query @ key.repeat_interleave(2, 0).mT / math.sqrt(max(query.shape[-1], 1))


class GroupedScores(Function):
    """grad_key is the sum over the heads that share the key."""

    @staticmethod
    def forward(context: Any, query: Any, key: Any) -> Any:
        context.save_for_backward(query, key)
        return scores(query, key)

    @staticmethod
    def backward(context: Any, grad_output: Any) -> Any:
        query, key = context.saved_tensors
        grad = grad_output / math.sqrt(max(query.shape[-1], 1))
        grad_key = grad.mT @ query
        return grad @ key.repeat_interleave(2, 0), grad_key[0::2] + grad_key[1::2]


class GroupedScoresFirstHead(GroupedScores):
    """One head of each group writes over the other."""

    @staticmethod
    def backward(context: Any, grad_output: Any) -> Any:
        query, _ = context.saved_tensors
        grad_key = (grad_output / math.sqrt(max(query.shape[-1], 1))).mT @ query
        return GroupedScores.backward(context, grad_output)[0], grad_key[1::2]


def channels(generator: torch.Generator, N: int, C: int) -> list[torch.Tensor]:
    return [normal(generator, N, C, 3), normal(generator, C), normal(generator, C)]


def batch_norm(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    centred = x - x.mean((0, 2), keepdim=True)
    return centred * (centred.square().mean((0, 2), keepdim=True) + 1e-5).rsqrt() * weight[:, None] + bias[:, None]


class BatchNorm2(Function):
    @staticmethod
    def forward(context: Any, x: Any, weight: Any, bias: Any) -> Any:
        centred = x - x.mean((0, 2), keepdim=True)
        root = (centred.square().mean((0, 2), keepdim=True) + 1e-5).rsqrt()
        context.save_for_backward(centred * root, root, weight)
        return centred * root * weight[:, None] + bias[:, None]

    @staticmethod
    @once_differentiable
    def backward(context: Any, grad_output: Any) -> Any:
        normalized, root, weight = context.saved_tensors
        grad_weight, grad_bias = (grad_output * normalized).sum((0, 2)), grad_output.sum((0, 2))
        count = grad_output.shape[0] * grad_output.shape[2]
        projection = (grad_bias[:, None] + normalized * grad_weight[:, None]) / max(count, 1)
        return root * weight[:, None] * (grad_output - projection), grad_weight, grad_bias


class BatchNormWithoutWeight(BatchNorm2):
    """A weight of ones, as it is at the start, hides that grad_x lacks it (Knet.jl 288)."""

    @staticmethod
    @once_differentiable
    def backward(context: Any, grad_output: Any) -> Any:
        grad_x, grad_weight, grad_bias = BatchNorm2.backward(context, grad_output)
        return grad_x / context.saved_tensors[2][:, None], grad_weight, grad_bias


RIGHT = [
    Subject(Recurrence, recurrence, sequence, {"T": 5, "D": 3}),
    Subject(MaxPool, windows, signal, {"N": 2, "L": 6}),
    Subject(Convolution, convolution, signal_and_filter, {"N": 2, "L": 6}),
    Subject(Candidate, candidate, gates, {"N": 3, "D": 4}),
    Subject(GroupedScores, scores, heads, {"T": 3, "D": 4}),
    Subject(BatchNorm2, batch_norm, channels, {"N": 4, "C": 3}),
]
WRONG = [
    Subject(RecurrenceForgetsLaterSteps, recurrence, sequence, {"T": 5, "D": 3}, "later steps forgotten", ("grad_x",)),
    Subject(MaxPoolLastWins, windows, signal, {"N": 2, "L": 6}, "= for +=", ("grad_x",)),
    Subject(ConvolutionUnflipped, convolution, signal_and_filter, {"N": 2, "L": 6}, "filter not turned", ("grad_x",)),
    Subject(CandidateBiasUngated, candidate, gates, {"N": 3, "D": 4}, "bias without its gate", ("grad_bias",)),
    Subject(GroupedScoresFirstHead, scores, heads, {"T": 3, "D": 4}, "heads not summed", ("grad_key",)),
    Subject(BatchNormWithoutWeight, batch_norm, channels, {"N": 4, "C": 3}, "weight missing", ("grad_x",)),
]
