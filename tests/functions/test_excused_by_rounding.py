"""What rounding excuses in a function: a few roundings of what its reference and it compute, and nothing else."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from slow_cases import slow
from torch.autograd.function import once_differentiable

from nn_manual import check_function
from nn_manual.arrays import Array
from nn_manual.functions import excused, judged_case, sensitivity
from nn_manual.functions.arguments import arguments_of
from nn_manual.functions.function_case import FunctionCase
from nn_manual.functions.handwritten import handwritten_pair
from nn_manual.functions.pairs import pairs


def layer_norm(x: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.layer_norm(x, x.shape[-1:])


def norm(inside: torch.dtype | None) -> type[torch.autograd.Function]:
    """A layer norm that is centred in float32 or, for None, in the dtype of its input."""

    class Norm(torch.autograd.Function):
        @staticmethod
        def forward(context: Any, x: torch.Tensor) -> torch.Tensor:
            values = x.to(inside or x.dtype)
            centred = (values - values.mean(-1, keepdim=True)).float()
            inverse = (centred.pow(2).mean(-1, keepdim=True) + 1e-5).rsqrt()
            context.save_for_backward(centred * inverse, inverse)
            return (centred * inverse).to(x.dtype)

        @staticmethod
        @once_differentiable
        def backward(context: Any, grad_output: torch.Tensor) -> torch.Tensor:
            normalized, inverse = context.saved_tensors
            grad = grad_output.float()
            along = normalized * (grad * normalized).mean(-1, keepdim=True)
            result: torch.Tensor = inverse * (grad - grad.mean(-1, keepdim=True) - along)
            return result.to(grad_output.dtype)

    return Norm


@pytest.mark.parametrize("num_features", [16, 300])
@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_a_norm_that_centres_in_16_bits_is_wrong(dtype: str, num_features: int) -> None:
    """The inputs are as they are; float32 inside has no such rounding."""
    x = torch.randn(8, num_features, generator=torch.Generator().manual_seed(0))
    report = check_function(norm(torch.float32), layer_norm, [x], dtypes=[dtype], only=["kinds", "grad_output"])
    assert report.passed, report
    report = check_function(norm(None), layer_norm, [x], dtypes=[dtype], only=["kinds"])
    assert [row.name for row in report.wrong] == ["kinds shifted"]
    assert report.wrong[0].note.startswith("output[")


def test_in_float32_alone_a_lost_gradient_is_no_rounding() -> None:
    """Nor is one that is off by more than the terms can be, where the function is wrong in float64, too."""

    def kernel(factor: float, *, takes_float64: bool) -> type[torch.autograd.Function]:
        class Scaled(torch.autograd.Function):
            @staticmethod
            def forward(context: Any, x: torch.Tensor) -> torch.Tensor:
                if x.dtype == torch.float64 and not takes_float64:
                    raise TypeError("float32 alone")
                context.save_for_backward(x)
                return x * 1

            @staticmethod
            def backward(context: Any, grad_output: torch.Tensor) -> torch.Tensor:
                (x,) = context.saved_tensors
                return torch.where(x.abs() > 100, factor * grad_output, grad_output)

        return Scaled

    x = torch.randn(4, 5, generator=torch.Generator().manual_seed(0))
    for takes_float64 in (False, True):
        for factor in (0, 1 + 1e-4):
            function = kernel(factor, takes_float64=takes_float64)
            report = check_function(function, lambda x: x * 1, [x], only=["kinds"], kinds=["large"])
            assert [row.name for row in report.wrong] == ["kinds large"], (factor, takes_float64)


def test_upstream_gradients_are_other_numbers_than_inputs_from_the_same_seed() -> None:
    """Along its input, the gradient of x / norm(x) is 0: a wrong factor would show in nothing."""

    def forward(x: Array) -> tuple[Array, tuple[Array, Array]]:
        length = np.sqrt((x**2).sum())
        return x / length, (x / length, length)

    def backward(grad_output: Array, cache: tuple[Array, Array]) -> Array:
        unit, length = cache
        result: Array = 2 * (grad_output - unit * (grad_output * unit).sum()) / length
        return result

    def definition(x: torch.Tensor) -> torch.Tensor:
        return x / x.square().sum().sqrt()

    x = np.random.default_rng(0).standard_normal((4, 5))
    report = check_function((forward, backward), definition, [x], only=["kinds"])
    assert [failure.name for failure in report.failures] == ["grad_x, random upstream", "grad_x, negative upstream"]

    def wrong_if_tiny(grad_output: Array, cache: tuple[Array, Array]) -> Array:
        result: Array = backward(grad_output, cache) / (2 if cache[1] > 0.1 else 1)
        return result

    x = np.random.default_rng(1).standard_normal((4, 5))
    report = check_function((forward, wrong_if_tiny), definition, [x], only=["kinds"])
    assert "kinds tiny" in [row.name for row in report.wrong]


def test_the_terms_of_a_handwritten_function_are_measured() -> None:
    """1 - y * y, of a y that is nearly 1, is good to a rounding of 1. Its reference has other terms."""

    def forward(x: Array) -> tuple[Array, Array]:
        return np.tanh(x), np.tanh(x)

    def backward(grad_output: Array, saved: Array) -> Array:
        result: Array = grad_output * (1 - saved * saved)
        return result

    def reference(x: torch.Tensor) -> torch.Tensor:
        return 1 - 2 / ((2 * x).exp() + 1)

    x = np.full((3, 4), 12.0)
    pair = handwritten_pair(forward, lambda saved, grad_output: backward(grad_output, saved))
    case = FunctionCase(pair, reference, arguments_of(pair, reference, [x]), drawn=True)
    name = "grad_x, random upstream"
    own, its = sensitivity.own_sensitivities(case)[name], sensitivity.sensitivities(case)[1][name]
    assert 0.5 < own < 20
    assert its < 1e-6
    assert excused.beyond_by_rounding(case, [pair for pair in pairs(case) if "grad" in pair.quantity.name]).rounding


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_what_is_lost_in_a_rounding_of_the_functions_own_terms_is_no_lost_gradient(dtype: str) -> None:
    """p - 1 is 0 where p has become 1. The reference's gradient is 1e-77 there; 0 times it is no such rounding. It
    alone has such a function.
    """

    def probability(c: Array, x: Array) -> Array:
        result: Array = 1 / (1 + np.exp(-(c @ x)))
        return result

    def forward(c: Array, x: Array) -> tuple[Array, tuple[Array, Array]]:
        return np.logaddexp(0, -(c @ x)), (c, x)

    def backward(grad_output: Array, cache: tuple[Array, Array]) -> tuple[Array, Array]:
        slope = grad_output * (probability(*cache) - 1)
        return slope * cache[1], slope * cache[0]

    def masked(grad_output: Array, cache: tuple[Array, Array]) -> tuple[Array, Array]:
        (c, x), lost = cache, cache[0] @ cache[1] > 100
        return (0 * x, 0 * c) if lost else backward(grad_output, cache)

    def reference(c: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        return torch.logaddexp(-(c @ x), torch.zeros((), dtype=c.dtype))

    given = [np.random.default_rng(0).standard_normal(4) for _ in range(2)]
    of_kinds: Any = {"only": ["kinds"], "kinds": ["spread"]}
    report = check_function((forward, backward), reference, given, dtypes=[dtype], **of_kinds)
    assert report.passed, report
    wrong = check_function((forward, masked), reference, given, **of_kinds).wrong
    assert [row.name for row in wrong] == ["kinds spread"]


def rms_norm(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    """As the definitions in public code have it, also of float64."""
    wide = x.float()
    return (wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-6) * weight.float()).to(x.dtype)


@pytest.mark.parametrize("projects_one", [True, slow(False)])
def test_a_definition_that_makes_float32_of_float64(projects_one: bool) -> None:
    """Of one feature its gradient is the difference of two numbers that are nearly equal."""

    class Norm(torch.autograd.Function):
        @staticmethod
        def forward(context: Any, x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
            scale = torch.rsqrt(x.float().pow(2).mean(-1, keepdim=True) + 1e-6)
            context.save_for_backward(x, weight, scale)
            return (x.float() * scale * weight.float()).to(x.dtype)

        @staticmethod
        @torch.autograd.function.once_differentiable
        def backward(context: Any, grad_output: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            x, weight, scale = context.saved_tensors
            normalized, grad = x.float() * scale, grad_output.float() * weight.float()
            projection = normalized * (grad * normalized).mean(-1, keepdim=True)
            if not projects_one and x.shape[-1] == 1:
                projection = 0.9 * projection
            grad_weight = (grad_output.float() * normalized).reshape(-1, x.shape[-1]).sum(0)
            return (scale * (grad - projection)).to(x.dtype), grad_weight.to(weight.dtype)

    def inputs(generator: torch.Generator, B: int, D: int) -> list[torch.Tensor]:
        return [torch.randn(B, D, generator=generator), torch.randn(D, generator=generator)]

    report = check_function(Norm, rms_norm, inputs, sizes={"B": 2, "D": 64}, dtypes=["float32"], only=["sizes"])
    assert report.agrees
    assert {row.variant for row in report.wrong} == (set() if projects_one else {"D=1", "B=1,D=1"})


def test_terms_beside_a_mask_of_infinity_are_measured() -> None:
    """Each of many infinities is moved up or down at random: it stays what it is."""

    def masked(x: torch.Tensor) -> torch.Tensor:
        return x.masked_fill(torch.arange(20) > 1, -torch.inf).softmax(0)

    case = FunctionCase(masked, masked, arguments_of(masked, masked, [30 * torch.arange(20.0)]))
    for found in (sensitivity.sensitivities(case)[1], sensitivity.own_sensitivities(case)):
        assert found["grad_x, random upstream"] > 0.1


def test_a_tensor_that_cannot_be_judged_leaves_the_others() -> None:
    """Of x near 16, 1 - tanh(x)**2 is nothing but rounding in 16 bits."""

    def both(x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return x.tanh(), y * 1

    class Wrong(torch.autograd.Function):
        @staticmethod
        def forward(context: Any, x: Any, y: Any) -> Any:
            context.save_for_backward(x.tanh(), y)
            return both(x, y)

        @staticmethod
        def backward(context: Any, grad_first: Any, grad_second: Any) -> Any:
            output, y = context.saved_tensors
            return grad_first * (1 - output**2), grad_second * (1.5 if y.min() > 5 else 1)

    x = torch.randn(4, 5, generator=torch.Generator().manual_seed(0))
    report = check_function(Wrong, both, [x, x + 1], dtypes=["bfloat16"], only=["kinds"], kinds=["shifted"])
    assert [row.note[:6] for row in report.wrong] == ["grad_y"]
    report = check_function(both, both, [x, x + 1], dtypes=["bfloat16"], only=["kinds"], kinds=["shifted"])
    (note,) = (row.note for row in report.skipped if row.name == "kinds shifted")
    assert note.startswith("grad_x, random upstream: in so few bits the reference itself is off by")


@pytest.mark.parametrize("seed", range(3))
def test_a_kernel_that_makes_float32_of_float64(seed: int) -> None:
    """It is as near to the truth as torch in float32, and 1e-7 off in float64."""

    def kernel(factor: float) -> Any:
        class Norm32(torch.autograd.Function):
            @staticmethod
            def forward(context: Any, x: torch.Tensor) -> torch.Tensor:
                values = x.detach().float().numpy()
                centred = values - values.mean(-1, keepdims=True)
                inverse = 1 / np.sqrt((centred**2).mean(-1, keepdims=True) + np.float32(1e-6))
                context.saved, context.dtype = (centred, inverse), x.dtype
                return torch.from_numpy(centred * inverse).to(x.dtype)

            @staticmethod
            @once_differentiable
            def backward(context: Any, grad_output: torch.Tensor) -> torch.Tensor:
                (centred, inverse), grad = context.saved, grad_output.float().numpy()
                along = centred * inverse * (grad * centred * inverse).mean(-1, keepdims=True)
                result = np.float32(factor) * (grad - grad.mean(-1, keepdims=True) - along) * inverse
                return torch.from_numpy(result).to(context.dtype)

        return Norm32

    def definition(x: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.layer_norm(x, x.shape[-1:], eps=1e-6)

    x = torch.randn(4, 2, generator=torch.Generator().manual_seed(seed))
    assert check_function(kernel(1), definition, [x], only=["settings"], seed=seed).passed
    wide = torch.randn(4, 5, generator=torch.Generator().manual_seed(seed))
    assert check_function(kernel(1), definition, [wide], only=["settings"], seed=seed).passed
    assert not check_function(kernel(1.0001), definition, [wide], only=["settings"], seed=seed).passed


def test_kinks_excuse_nothing_where_an_output_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    """To look for them takes long."""
    monkeypatch.setattr(judged_case, "at_kinks", lambda *_: pytest.fail("looked for kinks"))
    x = torch.randn(4, 5, generator=torch.Generator().manual_seed(0))
    report = check_function(lambda x: (1.1 * x).relu(), torch.relu, [x], only=["settings"])
    assert [failure.name for failure in report.failures][:1] == ["output"]
