"""check_function, where large terms cancel: rounding is excused, and nothing else is."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from slow_cases import crossed
from torch.autograd.function import once_differentiable

from nn_manual import check_function
from nn_manual.arrays import Array
from nn_manual.functions import excused
from nn_manual.functions.function_case import FunctionCase


def normalize(factor: float = 1.0, only: torch.dtype | None = None) -> type[torch.autograd.Function]:
    """layer_norm over the last axis, its gradient times `factor`; for tensors of one dtype `only`, if given."""

    class Normalize(torch.autograd.Function):
        @staticmethod
        def forward(context: Any, x: torch.Tensor) -> torch.Tensor:
            if only is not None and x.dtype != only:
                raise TypeError(f"this kernel takes {only}")
            deviation = (x.var(-1, correction=0, keepdim=True) + 1e-5).sqrt()
            normalized = (x - x.mean(-1, keepdim=True)) / deviation
            context.save_for_backward(normalized, deviation)
            return normalized

        @staticmethod
        @once_differentiable
        def backward(context: Any, grad: torch.Tensor) -> torch.Tensor:
            normalized, deviation = context.saved_tensors
            along = normalized * (grad * normalized).mean(-1, keepdim=True)
            result: torch.Tensor = factor * (grad - grad.mean(-1, keepdim=True) - along) / deviation
            return result

    return Normalize


def definition_of_normalize(x: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.layer_norm(x, x.shape[-1:])


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("seed", range(10))
def test_a_gradient_of_which_cancellation_leaves_few_digits_is_rounding(dtype: torch.dtype, seed: int) -> None:
    """Two features normalised are 1 and -1 but for eps: their gradient is what the differences of large terms leave."""
    x = torch.randn(4, 2, dtype=dtype, generator=torch.Generator().manual_seed(seed))
    assert check_function(normalize(), definition_of_normalize, [x], seed=seed).passed
    for factor in (-1, 2, 1.0001):
        report = check_function(normalize(factor), definition_of_normalize, [x], seed=seed)
        assert report.failures[0].name.startswith("grad_x")


@pytest.mark.slow
def test_what_takes_float32_alone_is_judged_by_its_distance_to_float64() -> None:
    """The reference's gradient of two features is 60% off in float32: three times that is all that can be asked.
    It alone refuses float64.
    """
    x = torch.randn(4, 2, generator=torch.Generator().manual_seed(0))
    assert check_function(normalize(only=torch.float32), definition_of_normalize, [x]).passed
    wide = torch.randn(4, 5, generator=torch.Generator().manual_seed(0))
    assert check_function(normalize(only=torch.float32), definition_of_normalize, [wide]).passed
    assert not check_function(normalize(1.0001, only=torch.float32), definition_of_normalize, [wide]).passed


@pytest.mark.slow
def test_what_is_wrong_in_float64_is_not_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    """No terms of its own excuse it, and to measure them takes longer than all else.
    It alone counts the measurements of a wrong formula.
    """
    measured = []

    def own_sensitivities(case: FunctionCase) -> dict[str, float]:
        measured.append(case.label)
        return {}

    monkeypatch.setattr(excused, "own_sensitivities", own_sensitivities)

    def inputs(generator: torch.Generator, N: int) -> list[torch.Tensor]:
        return [torch.randn(N, 3, generator=generator)]

    def wrong(x: torch.Tensor) -> torch.Tensor:
        return x.softmax(-1) if len(x) < 127 else x.softmax(-1) * 1.1

    report = check_function(wrong, lambda x: x.softmax(-1), inputs, sizes={"N": 4}, skip=["cost", "kinds"])
    assert {row.name for row in report.wrong} >= {"sizes N=127", "sizes N=1025"}
    assert not measured


def test_rounding_is_said_to_be_rounding() -> None:
    x = torch.randn(4, 2, generator=torch.Generator().manual_seed(0))
    report = check_function(normalize(), definition_of_normalize, [x])
    assert "grad_x, random upstream" in report.rounding
    assert "rounding" in str(report)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_wrong_formula_for_ties_is_no_rounding(dtype: str) -> None:
    """It alone is wrong at ties by as little as rounding."""
    def forward(x: Array) -> tuple[Array, Array]:
        output = x.max(axis=-1, keepdims=True)
        return output, x == output

    def right(saved: Array, grad_output: Array) -> Array:
        grad: Array = (grad_output * saved / saved.sum(axis=-1, keepdims=True)).astype(grad_output.dtype)
        return grad

    def wrong(saved: Array, grad_output: Array) -> Array:
        grad: Array = grad_output * saved
        return grad

    x = np.random.default_rng(0).standard_normal((4, 3)).astype(dtype)
    x[:, 1] = x[:, 0] = 3

    def definition(x: torch.Tensor) -> torch.Tensor:
        return x.amax(dim=-1, keepdim=True)

    assert check_function((forward, right), definition, [x]).passed
    assert not check_function((forward, wrong), definition, [x]).passed


ERRORS = {"float64": 1e-6, "float32": 0.001, "bfloat16": 0.05}


@pytest.mark.parametrize(("dtype", "sign", "only"), crossed(list(ERRORS), [1, -1], [False, True]))
def test_large_values_are_judged(dtype: str, sign: int, *, only: bool) -> None:
    """A kernel that is wrong beyond 100 alone, whether it computes in other dtypes, too, or in its own alone."""
    error = ERRORS[dtype]

    class Kernel(torch.autograd.Function):
        @staticmethod
        def forward(context: Any, x: Any) -> Any:
            if only and x.dtype != getattr(torch, dtype):
                raise TypeError(dtype)
            context.save_for_backward(x)
            return x * 1

        @staticmethod
        @once_differentiable
        def backward(context: Any, grad_output: Any) -> Any:
            (x,) = context.saved_tensors
            return torch.where(sign * x > 100, grad_output * (1 + error), grad_output)

    x = torch.randn(4, 5, generator=torch.Generator().manual_seed(0))
    rows = {row.name: row.note for row in check_function(Kernel, lambda x: x * 1, [x], dtypes=[dtype]).wrong}
    assert "grad_x" in rows["kinds large"]
    assert rows.keys() <= {"kinds large", "kinds scattered"}


@pytest.mark.slow
@pytest.mark.parametrize("only", [None, "float32"])
def test_what_is_rounding_of_large_values_is_not_blamed(only: str | None) -> None:
    """Of a softmax that has become 1 the terms cancel; exp(x - log(sum(exp(x)))) rounds what it takes exp of.
    It alone has large values that are right.
    """

    class Softmax(torch.autograd.Function):
        @staticmethod
        def forward(context: Any, x: Any) -> Any:
            if only is not None and x.dtype != getattr(torch, only):
                raise TypeError(only)
            context.save_for_backward(x, x.logsumexp(-1, keepdim=True))
            return x.softmax(-1)

        @staticmethod
        @once_differentiable
        def backward(context: Any, grad_output: Any) -> Any:
            x, normalizer = context.saved_tensors
            probability = (x - normalizer).exp()
            return probability * (grad_output - (probability * grad_output).sum(-1, keepdim=True))

    for seed in range(3):
        x = torch.randn(4, 5, generator=torch.Generator().manual_seed(seed))
        report = check_function(Softmax, lambda x: x.softmax(-1), [x], seed=seed)
        assert report.passed, report


@pytest.mark.slow
def test_what_is_rounding_beside_what_is_no_number() -> None:
    """exp(x - the largest of all) is 0 in the other groups: 0 / 0 in the reference, where groups are judged by none.
    It alone has rounding beside infinities.
    """

    def by_largest(x: torch.Tensor, group: torch.Tensor) -> torch.Tensor:
        terms = (x - x.max().detach()).exp()
        return terms / torch.zeros(3, dtype=x.dtype).index_add(0, group, terms)[group]

    class ByGroup(torch.autograd.Function):
        @staticmethod
        def forward(context: Any, x: Any, group: Any) -> Any:
            terms = (x - x.new_full((3,), -torch.inf).scatter_reduce(0, group, x, "amax")[group]).exp()
            output = terms / x.new_zeros(3).index_add(0, group, terms)[group]
            context.save_for_backward(output, group)
            return output

        @staticmethod
        @once_differentiable
        def backward(context: Any, grad_output: Any) -> Any:
            output, group = context.saved_tensors
            sums = grad_output.new_zeros(3).index_add(0, group, grad_output * output)
            return output * (grad_output - sums[group]), None

    for seed in range(5):
        x = torch.randn(9, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
        report = check_function(ByGroup, by_largest, [x, torch.arange(9) % 3], seed=seed)
        assert report.passed, report


class Attention(torch.autograd.Function):
    """A backward that keeps one number a row: exp(score - logsumexp) is good to as many roundings as the score is."""

    @staticmethod
    def forward(context: Any, query: Any, key: Any, value: Any) -> Any:
        scores = query @ key.mT
        logsumexp = scores.logsumexp(-1, keepdim=True)
        output = (scores - logsumexp).exp() @ value
        context.save_for_backward(query, key, value, output, logsumexp)
        return output

    @staticmethod
    @once_differentiable
    def backward(context: Any, grad_output: Any) -> Any:
        query, key, value, output, logsumexp = context.saved_tensors
        weights = (query @ key.mT - logsumexp).exp()
        grad_scores = weights * (grad_output @ value.mT - (grad_output * output).sum(-1, keepdim=True))
        return grad_scores @ key, grad_scores.mT @ query, weights.mT @ grad_output


def by_softmax(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
    return (query @ key.mT).softmax(-1) @ value


def by_hand(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
    scores = query @ key.mT
    weights = (scores - scores.amax(-1, keepdim=True)).exp()
    return weights / weights.sum(-1, keepdim=True) @ value


@pytest.mark.slow
@pytest.mark.parametrize("reference", [by_softmax, by_hand])
@pytest.mark.parametrize("seed", range(4))
def test_probabilities_of_large_scores_are_as_good_as_the_scores(seed: int, reference: Any) -> None:
    """It alone has the rounding of large scores blamed."""
    generator = torch.Generator().manual_seed(seed)
    inputs = [torch.randn(7, 6, generator=generator) for _ in range(3)]
    report = check_function(Attention, reference, inputs, kinds=["spread"], seed=seed, only=["kinds"])
    assert report.passed, report


def convolved(x: torch.Tensor, kernel: torch.Tensor) -> torch.Tensor:
    """A causal convolution, by Fourier transforms."""
    size = 2 * x.shape[-1]
    spectrum = torch.fft.rfft(x, size) * torch.fft.rfft(kernel, size)
    found: torch.Tensor = torch.fft.irfft(spectrum, size)
    return found[..., : x.shape[-1]]


def directly(x: torch.Tensor, kernel: torch.Tensor) -> torch.Tensor:
    """The same by its definition."""
    lag = torch.arange(x.shape[-1])[:, None] - torch.arange(x.shape[-1])
    matrix = torch.where(lag >= 0, kernel[lag.clamp(min=0)], 0.0)
    return x @ matrix.T


def powers(base: torch.Tensor, factor: torch.Tensor, length: int) -> torch.Tensor:
    """The sum of factor * base ** t, for each t."""
    return (factor[:, None] * base[:, None] ** torch.arange(length, dtype=base.dtype)).sum(0)


@pytest.mark.slow
def test_terms_that_are_complex_are_rounded_too() -> None:
    """The gradient of a base is 0 where the upstream gradient stands at t = 0 alone: a transform leaves rounding.
    It alone has complex terms.
    """
    generator = torch.Generator().manual_seed(0)
    base = 0.1 + 0.8 * torch.rand(4, generator=generator, dtype=torch.float64)
    factor, x = (torch.randn(*shape, generator=generator, dtype=torch.float64) for shape in ((4,), (2, 6)))

    def of_powers(convolve: Any) -> Any:
        return lambda base, factor, x: convolve(x, powers(base, factor, x.shape[-1]))

    options: dict[str, Any] = {"domain": {"base": (0.1, 0.9)}, "only": ["grad_output"]}
    report = check_function(of_powers(convolved), of_powers(directly), [base, factor, x], **options)
    assert report.passed, report
    wrong = of_powers(lambda x, kernel: (1 + 1e-10) * convolved(x, kernel))
    assert not check_function(wrong, of_powers(directly), [base, factor, x], **options).agrees


@pytest.mark.slow
@pytest.mark.parametrize("error", [0.0, 1e-10])
def test_numpys_transforms_are_rounded_too(error: float) -> None:
    """It alone has NumPy's Fourier transforms."""
    def forward(x: Array, kernel: Array) -> Any:
        size = 2 * x.shape[-1]
        found = np.fft.irfft(np.fft.rfft(x, size) * np.fft.rfft(kernel, size), size)
        return found[:, : x.shape[-1]], (x, kernel)

    def backward(saved: Any, grad_output: Array) -> Any:
        x, kernel = saved
        size, length = 2 * x.shape[-1], x.shape[-1]
        spectrum = (1 + error) * np.fft.rfft(grad_output, size)
        grad_x = np.fft.irfft(spectrum * np.fft.rfft(kernel, size).conj(), size)
        grad_kernel = np.fft.irfft(spectrum * np.fft.rfft(x, size).conj(), size)
        return grad_x[:, :length], grad_kernel[:, :length].sum(0)

    generator = np.random.default_rng(0)
    given = [generator.standard_normal((3, 6)), generator.standard_normal(6)]
    report = check_function((forward, backward), directly, given, only=["kinds"])
    assert report.passed == (error == 0), report
