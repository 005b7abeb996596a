"""Losses and lookups: the denominator of the mean, ignored rows, repeated indices, and the upstream gradient."""

from typing import Any

import torch
from torch.autograd import Function
from torch.autograd.function import once_differentiable
from torch.nn import functional

from benchmarks.functions.subject import Subject, normal


def rows(generator: torch.Generator, N: int, C: int) -> list[torch.Tensor]:
    return [normal(generator, N, C)]


def rows_and_labels(generator: torch.Generator, N: int, C: int) -> list[torch.Tensor]:
    labels = torch.randint(C, (N,), generator=generator)
    labels[::3] = -100
    return [normal(generator, N, C), labels]


def rows_and_targets(generator: torch.Generator, N: int, C: int) -> list[torch.Tensor]:
    return [normal(generator, N, C), normal(generator, N, C)]


def table_and_indices(generator: torch.Generator, V: int, D: int, T: int) -> list[torch.Tensor]:
    return [normal(generator, V, D), torch.randint(V, (T,), generator=generator)]


def cross_entropy(logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """The sum over the rows that count, divided by their number; 0 if none counts."""
    total = functional.cross_entropy(logits, labels, reduction="sum", ignore_index=-100)
    return total / (labels != -100).sum().clamp(min=1)


class CrossEntropy(Function):
    """grad_logits = (softmax - one_hot) / count, 0 in rows that are ignored."""

    @staticmethod
    def forward(context: Any, logits: Any, labels: Any) -> Any:
        counted = labels != -100
        count = counted.sum().clamp(min=1)
        log_probability = logits.log_softmax(-1)
        label = labels.clamp(min=0)
        context.save_for_backward(log_probability, label, counted, count)
        return -(log_probability.gather(1, label[:, None])[:, 0] * counted).sum() / count

    @staticmethod
    @once_differentiable
    def backward(context: Any, grad_output: Any) -> Any:
        log_probability, label, counted, count = context.saved_tensors
        grad = log_probability.exp()
        grad[torch.arange(len(label)), label] -= 1
        return grad_output * grad * counted[:, None] / count, None


class CrossEntropyOverBatch(CrossEntropy):
    """Divides the gradient by the number of all rows, and the loss by the number of those that count."""

    @staticmethod
    @once_differentiable
    def backward(context: Any, grad_output: Any) -> Any:
        log_probability, label, counted, _ = context.saved_tensors
        grad = log_probability.exp()
        grad[torch.arange(len(label)), label] -= 1
        return grad_output * grad * counted[:, None] / len(label), None


class CrossEntropyUpstreamOne(CrossEntropy):
    """Computes the gradient in forward and forgets that the loss may be multiplied afterwards."""

    @staticmethod
    @once_differentiable
    def backward(context: Any, grad_output: Any) -> Any:
        return CrossEntropy.backward(context, torch.ones_like(grad_output))


def squared_errors(prediction: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    return (prediction - target).square().mean(-1)


class SquaredErrors(Function):
    """One loss a row: the mean of (prediction - target)^2."""

    @staticmethod
    def forward(context: Any, prediction: Any, target: Any) -> Any:
        context.save_for_backward(prediction, target)
        return (prediction - target).square().mean(-1)

    @staticmethod
    def backward(context: Any, grad_output: Any) -> Any:
        prediction, target = context.saved_tensors
        grad = grad_output[:, None] * 2 * (prediction - target) / prediction.shape[-1]
        return grad, -grad


class SquaredErrorsFirstUpstream(SquaredErrors):
    """Multiplies all rows by the first row's upstream gradient (Liger-Kernel 968)."""

    @staticmethod
    def backward(context: Any, grad_output: Any) -> Any:
        return SquaredErrors.backward(context, grad_output[:1].expand_as(grad_output))


def lookup(table: torch.Tensor, indices: torch.Tensor) -> torch.Tensor:
    return table[indices]


class Lookup(Function):
    """grad_table[v] is the sum of grad_output over the places where v stands."""

    @staticmethod
    def forward(context: Any, table: Any, indices: Any) -> Any:
        context.save_for_backward(indices)
        context.shape = table.shape
        return table[indices]

    @staticmethod
    def backward(context: Any, grad_output: Any) -> Any:
        (indices,) = context.saved_tensors
        return grad_output.new_zeros(context.shape).index_add(0, indices, grad_output), None


class LookupLastWins(Lookup):
    """`=` for `+=`: an index that repeats keeps one of its gradients."""

    @staticmethod
    def backward(context: Any, grad_output: Any) -> Any:
        (indices,) = context.saved_tensors
        grad = grad_output.new_zeros(context.shape)
        grad[indices] = grad_output
        return grad, None


def padded_lookup(table: torch.Tensor, indices: torch.Tensor) -> torch.Tensor:
    return functional.embedding(indices, table, padding_idx=0)


class PaddedLookup(Function):
    """Row 0 of the table is padding: its gradient is 0."""

    @staticmethod
    def forward(context: Any, table: Any, indices: Any) -> Any:
        context.save_for_backward(indices)
        context.shape = table.shape
        return table[indices]

    @staticmethod
    def backward(context: Any, grad_output: Any) -> Any:
        (indices,) = context.saved_tensors
        kept = grad_output * (indices != 0)[:, None]
        return grad_output.new_zeros(context.shape).index_add(0, indices, kept), None


class LookupTrainsPadding(PaddedLookup):
    @staticmethod
    def backward(context: Any, grad_output: Any) -> Any:
        return Lookup.backward(context, grad_output)


class LogSoftmax(Function):
    """grad_x = g - softmax(x) sum(g)."""

    @staticmethod
    def forward(context: Any, x: Any) -> Any:
        y = x - x.logsumexp(-1, keepdim=True)
        context.save_for_backward(y)
        return y

    @staticmethod
    def backward(context: Any, grad_output: Any) -> Any:
        (y,) = context.saved_tensors
        return grad_output - y.exp() * grad_output.sum(-1, keepdim=True)


class LogSoftmaxMean(LogSoftmax):
    """The mean of g instead of its sum."""

    @staticmethod
    def backward(context: Any, grad_output: Any) -> Any:
        (y,) = context.saved_tensors
        return grad_output - y.exp() * grad_output.mean(-1, keepdim=True)


def log_sum_exp(x: torch.Tensor) -> torch.Tensor:
    return x.logsumexp(-1)


class LogSumExp(Function):
    """grad_x = g exp(x - y)."""

    @staticmethod
    def forward(context: Any, x: Any) -> Any:
        y = x.logsumexp(-1)
        context.save_for_backward(x, y)
        return y

    @staticmethod
    def backward(context: Any, grad_output: Any) -> Any:
        x, y = context.saved_tensors
        return grad_output[..., None] * (x - y[..., None]).exp()


class LogSumExpOverflow(LogSumExp):
    """exp(x) / sum(exp(x)) without subtracting the largest: infinity over infinity if x is large."""

    @staticmethod
    def backward(context: Any, grad_output: Any) -> Any:
        x, _ = context.saved_tensors
        return grad_output[..., None] * x.exp() / x.exp().sum(-1, keepdim=True)


def log_softmax(x: torch.Tensor) -> torch.Tensor:
    return x.log_softmax(-1)


SIZES = {"N": 7, "C": 5}
TABLE = {"V": 5, "D": 3, "T": 8}
RIGHT = [
    Subject(CrossEntropy, cross_entropy, rows_and_labels, SIZES),
    Subject(SquaredErrors, squared_errors, rows_and_targets, SIZES),
    Subject(Lookup, lookup, table_and_indices, TABLE),
    Subject(PaddedLookup, padded_lookup, table_and_indices, TABLE),
    Subject(LogSoftmax, log_softmax, rows, SIZES),
    Subject(LogSumExp, log_sum_exp, rows, SIZES),
]
WRONG = [
    Subject(CrossEntropyOverBatch, cross_entropy, rows_and_labels, SIZES, "the batch for the count", ("grad_logits",)),
    Subject(CrossEntropyUpstreamOne, cross_entropy, rows_and_labels, SIZES, "upstream taken for 1", ("grad_logits",)),
    Subject(SquaredErrorsFirstUpstream, squared_errors, rows_and_targets, SIZES, "the first for all", ("grad_pred",)),
    Subject(LookupLastWins, lookup, table_and_indices, TABLE, "= for +=", ("grad_table",)),
    Subject(LookupTrainsPadding, padded_lookup, table_and_indices, TABLE, "padding is trained", ("grad_table",)),
    Subject(LogSoftmaxMean, log_softmax, rows, SIZES, "mean for sum", ("grad_x",)),
    Subject(LogSumExpOverflow, log_sum_exp, rows, SIZES, "overflows", ("large",)),
]
