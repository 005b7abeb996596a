"""What a forward keeps in a global, of each kind of input, and what checks its inputs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from nn_manual import HandwrittenClass, check_function
from nn_manual.functions.function_report import FunctionReport

X = torch.randn(4, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
BOTH = {"two forwards first back first", "two forwards last back first"}


class Masked(torch.autograd.Function):
    @staticmethod
    def forward(context: Any, x: Any, mask: Any) -> Any:
        context.save_for_backward(mask)
        return x * mask

    @staticmethod
    def backward(context: Any, grad_output: Any) -> Any:
        return grad_output * context.saved_tensors[0], None


class MaskedByTheLast(Masked):
    mask: Any = None

    @staticmethod
    def forward(_: Any, x: Any, mask: Any) -> Any:
        MaskedByTheLast.mask = mask
        return x * mask

    @staticmethod
    def backward(_: Any, grad_output: Any) -> Any:
        return grad_output * MaskedByTheLast.mask, None


class Total(torch.autograd.Function):
    @staticmethod
    def forward(context: Any, x: Any) -> Any:
        context.shape = x.shape
        return x.sum()

    @staticmethod
    def backward(context: Any, grad_output: Any) -> Any:
        return grad_output.expand(context.shape)


class TotalOfTheLast(Total):
    shape: Any = None

    @staticmethod
    def forward(_: Any, x: Any) -> Any:
        TotalOfTheLast.shape = x.shape
        return x.sum()

    @staticmethod
    def backward(_: Any, grad_output: Any) -> Any:
        return grad_output.expand(TotalOfTheLast.shape)


def report_of(function: Any, reference: Any, given: Any, **options: Any) -> FunctionReport:
    return check_function(function, reference, given, only=["two forwards"], **options)


@pytest.mark.parametrize("mask", [X > 0, (X > 0).long(), torch.tensor(3)])
def test_a_mask_of_the_last_forward(mask: torch.Tensor) -> None:
    wrong = report_of(MaskedByTheLast, lambda x, mask: x * mask, [X, mask])
    assert {row.name for row in wrong.wrong} == BOTH
    assert "what backward needs must travel on the context; grad_x, random upstream[" in wrong.wrong[0].note
    assert report_of(Masked, lambda x, mask: x * mask, [X, mask]).passed


def made(generator: torch.Generator, N: int, D: int) -> list[torch.Tensor]:
    return [torch.randn(N, D, generator=generator)]


@pytest.mark.parametrize(
    ("given", "sizes"), [([X], None), (made, {"N": 8, "D": 8}), (made, {"N": (4, 8), "D": (2,)})]
)
def test_a_shape_of_the_last_forward(given: Any, sizes: Any) -> None:
    wrong = report_of(TotalOfTheLast, torch.sum, given, sizes=sizes)
    assert {row.name for row in wrong.wrong} == BOTH
    right = report_of(Total, torch.sum, given, sizes=sizes)
    assert right.passed, right
    assert {row.name for row in right.rows if row.verdict == "right"} == BOTH


def are_probabilities(p: Any) -> bool:
    return bool(abs(p.sum(-1) - 1).max() < 1e-9)


class NegativeEntropy(torch.autograd.Function):
    """It keeps the logarithm in a global, and takes probabilities alone."""

    log: Any = None

    @staticmethod
    def forward(_: Any, p: Any) -> Any:
        if not are_probabilities(p):
            raise ValueError("rows must sum to 1")
        NegativeEntropy.log = p.log()
        return (p * p.log()).sum(-1)

    @staticmethod
    def backward(_: Any, grad_output: Any) -> Any:
        return grad_output[..., None] * (NegativeEntropy.log + 1)


def negative_entropy(p: torch.Tensor) -> torch.Tensor:
    return (p * p.log()).sum(-1)


def test_who_checks_its_inputs_gets_others_that_it_takes() -> None:
    wrong = report_of(NegativeEntropy, negative_entropy, [X.softmax(-1)])
    assert {row.name for row in wrong.wrong} == BOTH


class Entropy:
    def forward(self, p: Any) -> Any:
        if not are_probabilities(p):
            raise ValueError("rows must sum to 1")
        self.p = p
        return (p * np.log(p)).sum(-1)

    def backward(self, dout: Any) -> Any:
        return dout[:, None] * (np.log(self.p) + 1)


class OneAlone(Entropy):
    """It takes no others."""

    def forward(self, p: Any) -> Any:
        if not np.array_equal(p, X.softmax(-1).numpy()):
            raise ValueError("others")
        return super().forward(p)


def test_a_class_that_checks_its_inputs_is_not_blamed() -> None:
    report = report_of(HandwrittenClass(Entropy, {}), negative_entropy, [X.softmax(-1).numpy()])
    assert report.passed, report
    notes = {row.variant: (row.verdict, row.note) for row in report.rows if row.family == "two forwards"}
    words = "one cache for all calls: backward belongs to the last forward of its object"
    assert notes["of one object"] == ("right", words)
    report = report_of(HandwrittenClass(OneAlone, {}), negative_entropy, [X.softmax(-1).numpy()])
    assert report.passed, report
    assert {row.note for row in report.rows if row.family == "two forwards"} == {"it takes no other inputs"}


class Rectified:
    def __init__(self) -> None:
        self.mask: Any = None
        self.out: Any = None

    def forward(self, x: Any) -> Any:
        self.mask = x > 0
        return np.maximum(x, 0)

    def backward(self, dout: Any) -> Any:
        return dout * self.mask


class WithTheFirstMask(Rectified):
    def forward(self, x: Any) -> Any:
        first = self.mask
        out = super().forward(x)
        self.mask = self.mask if first is None or first.shape != x.shape else first
        return out


class IntoTheSameOutput(Rectified):
    def forward(self, x: Any) -> Any:
        if self.out is None or self.out.shape != x.shape:
            self.out = np.empty_like(x)
        self.out[...] = super().forward(x)
        return self.out


class WithAState(Rectified):
    """As the hidden state of a recurrent net that goes on from batch to batch."""

    def forward(self, x: Any) -> Any:
        before = 0 if self.out is None else self.out
        self.out = super().forward(x)
        return self.out + before


@pytest.mark.parametrize(
    ("owner", "verdict", "words"),
    [
        (Rectified, "right", "one cache for all calls"),
        (WithTheFirstMask, "WRONG", "backward is wrong after the object's second forward: it keeps something of"),
        (IntoTheSameOutput, "WRONG", "the object's second forward overwrites the output of its first"),
        (WithAState, "right", "its output depends on the forward that ran before"),
    ],
)
def test_an_object_that_runs_forward_twice(owner: type, verdict: str, words: str) -> None:
    report = check_function(HandwrittenClass(owner, {}), torch.relu, [X.numpy()], only=["two forwards"])
    rows = {row.name: row for row in report.rows}
    row = rows["two forwards of one object"]
    assert (row.verdict, row.note.startswith(words)) == (verdict, True), row.note
    assert {name for name in BOTH if rows[name].verdict != "right"} == set()
