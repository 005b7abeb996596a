"""torch's modes: autocast, and evaluation. What runs without gradients stands in test_rows.py."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.amp.autocast_mode import custom_bwd, custom_fwd
from torch.autograd import Function
from torch.nn import functional

from nn_manual import check_function
from nn_manual.functions.function_report import FunctionReport

GENERATOR = torch.Generator().manual_seed(0)
X, WEIGHT = (torch.randn(shape, generator=GENERATOR) for shape in ((6, 5), (5, 4)))


class Matmul(Function):
    """x @ weight, with no word about autocast: its backward meets bfloat16 and float32."""

    @staticmethod
    def forward(context: Any, x: Any, weight: Any) -> Any:
        context.save_for_backward(x, weight)
        return x @ weight

    @staticmethod
    def backward(context: Any, grad_output: Any) -> Any:
        x, weight = context.saved_tensors
        return grad_output @ weight.T, x.T @ grad_output


class Cast(Matmul):
    """The same in bfloat16."""

    @staticmethod
    @custom_fwd(device_type="cpu", cast_inputs=torch.bfloat16)  # type: ignore[untyped-decorator] # torch has no types here
    def forward(context: Any, x: Any, weight: Any) -> Any:
        return Matmul.forward(context, x, weight)

    @staticmethod
    @custom_bwd(device_type="cpu")  # type: ignore[untyped-decorator] # torch has no types here
    def backward(context: Any, grad_output: Any) -> Any:
        return Matmul.backward(context, grad_output)


class HalfCast(Matmul):
    """It says that it is made for autocast, and casts nothing."""

    @staticmethod
    @custom_fwd(device_type="cpu")  # type: ignore[untyped-decorator] # torch has no types here
    def forward(context: Any, x: Any, weight: Any) -> Any:
        return Matmul.forward(context, x, weight)


class InFloat32(Matmul):
    """The same in float32, whatever the mode."""

    @staticmethod
    @custom_fwd(device_type="cpu", cast_inputs=torch.float32)  # type: ignore[untyped-decorator] # torch has no types here
    def forward(context: Any, x: Any, weight: Any) -> Any:
        return Matmul.forward(context, x, weight)


def reads_bits(x: Any, weight: Any) -> Any:
    """Like a kernel that takes the memory of its product for float32."""
    product = x @ weight
    return product if product.dtype == torch.float32 else product * 2


def autocast(function: Any, reference: Any, given: Any, **options: Any) -> tuple[str, str]:
    report = check_function(function, reference, given, only=["autocast"], **options)
    assert report.agrees, report
    (row,) = [row for row in report.rows if row.family == "autocast"]
    return row.verdict, row.note


@pytest.mark.parametrize("function", [torch.matmul, Cast, InFloat32])
def test_what_keeps_to_autocast_is_right(function: Any) -> None:
    assert autocast(function, torch.matmul, [X, WEIGHT]) == ("right", "")


def test_other_numbers_under_autocast_are_wrong() -> None:
    verdict, note = autocast(reads_bits, torch.matmul, [X, WEIGHT])
    assert verdict == "WRONG"
    assert note.startswith("output is off by ")
    assert note.endswith("of its largest value; 0.062 is allowed")


def test_a_function_is_made_for_autocast_if_it_says_so() -> None:
    error = "a run under torch.autocast raised RuntimeError: expected m"
    verdict, note = autocast(Matmul, torch.matmul, [X, WEIGHT])
    assert verdict == "skipped"
    assert note.startswith(f"Matmul: {error}")
    assert note.endswith("; torch.amp.custom_fwd and custom_bwd make a Function fit for autocast")
    verdict, note = autocast(HalfCast, torch.matmul, [X, WEIGHT])
    assert verdict == "WRONG"
    assert note.startswith(f"HalfCast: {error}")


def test_16_bits_in_the_place_of_32_are_a_note() -> None:
    class Norm(Function):
        @staticmethod
        @custom_fwd(device_type="cpu", cast_inputs=torch.bfloat16)  # type: ignore[untyped-decorator] # torch has no types here
        def forward(context: Any, x: Any) -> Any:
            with torch.enable_grad():
                context.x = x.detach().requires_grad_()
                context.output = functional.layer_norm(context.x.float(), x.shape[-1:]).to(x.dtype)
            return context.output.detach()

        @staticmethod
        @custom_bwd(device_type="cpu")  # type: ignore[untyped-decorator] # torch has no types here
        def backward(context: Any, grad_output: Any) -> Any:
            return torch.autograd.grad(context.output, context.x, grad_output, retain_graph=True)

    found = autocast(Norm, lambda x: functional.layer_norm(x, x.shape[-1:]), [X])
    assert found == ("right", "output is bfloat16, the reference's float32")


def test_a_reference_that_autocast_ruins_says_nothing() -> None:
    def waves(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        return (1e4 * (x @ weight)).sin()

    found = autocast(lambda x, weight: waves(x, weight), waves, [X, WEIGHT])
    assert found == ("skipped", "under autocast the reference itself is too far off")


def test_a_gradient_that_is_all_rounding_in_bfloat16_is_left_out() -> None:
    def small(x: torch.Tensor, weight: torch.Tensor, offset: torch.Tensor) -> torch.Tensor:
        product = x @ weight
        return product + (1e-6 if product.dtype == torch.float32 else 3e-6) * offset

    found = autocast(small, lambda x, weight, offset: x @ weight + 1e-6 * offset, [X, WEIGHT, torch.ones(4)])
    assert found == ("right", "")


def test_only_float32_and_only_torch_are_cast() -> None:
    for given in ([X.double()], [X.bfloat16()]):
        report = check_function(torch.tanh, torch.tanh, given, only=["autocast"])
        assert not [row for row in report.rows if row.family == "autocast"]
    pair = (lambda x: (x**2, x), lambda grad, x: 2 * grad * x)
    report = check_function(pair, torch.square, [X.numpy()], only=["autocast"])
    assert not [row for row in report.rows if row.family == "autocast"]
    found = autocast(torch.matmul, torch.matmul, [X, WEIGHT], dtypes=["bfloat16", "float32"])
    assert found == ("right", "")


class Doubled(torch.nn.Module):
    """A linear map, which is scaled in one of both modes."""

    def __init__(self, in_training: float, in_evaluation: float) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(5, 4)
        self.in_training, self.in_evaluation = in_training, in_evaluation

    def forward(self, x: torch.Tensor) -> Any:
        return self.linear(x) * (self.in_training if self.training else self.in_evaluation)


def evaluation(function: Any, reference: Any, *, skip: Any = ()) -> FunctionReport:
    return check_function(function, reference, [X], only=["eval", "autocast"], skip=skip)


def test_a_module_is_also_compared_in_evaluation() -> None:
    function, reference = Doubled(1, 3), Doubled(1, 2)
    report = evaluation(function, reference)
    assert report.agrees
    (wrong,) = report.wrong
    assert wrong.name == "eval"
    assert wrong.note.startswith("output[")
    assert "1.5 times the reference" in wrong.note
    assert function.training
    assert function.linear.training
    assert reference.training
    assert evaluation(Doubled(1, 2), reference).passed
    rows = {row.name: row.verdict for row in evaluation(Doubled(1, 2), reference).rows}
    assert (rows["eval"], rows["autocast"]) == ("right", "right")


def test_a_module_in_evaluation_has_no_such_row() -> None:
    report = evaluation(Doubled(1, 2).eval(), Doubled(3, 2).eval())
    assert report.passed
    assert not [row for row in report.rows if row.family == "eval"]
    assert not [row for row in evaluation(torch.tanh, torch.tanh).rows if row.family == "eval"]


def test_evaluation_uses_buffers_that_a_forward_has_left() -> None:
    """Fresh buffers are a mean of 0 and a variance of 1: who forgets the mean is right on them."""

    class ForgetsMean(torch.nn.BatchNorm1d):
        def forward(self, input: torch.Tensor) -> torch.Tensor:
            if self.training:
                return super().forward(input)
            assert self.running_var is not None
            return input / (self.running_var + self.eps).sqrt() * self.weight + self.bias

    report = evaluation(ForgetsMean(5), torch.nn.BatchNorm1d(5))
    assert [row.name for row in report.wrong] == ["eval"]
    assert evaluation(torch.nn.BatchNorm1d(5), torch.nn.BatchNorm1d(5)).passed


def test_evaluation_in_float64_shows_what_float32_does_not() -> None:
    """Beside a variance of about 1, an eps of 1e-5 outside of the root is off by half of that."""

    class EpsOutside(torch.nn.BatchNorm1d):
        def forward(self, input: torch.Tensor) -> torch.Tensor:
            if self.training:
                return super().forward(input)
            assert self.running_var is not None
            assert self.running_mean is not None
            return (input - self.running_mean) / (self.running_var.sqrt() + self.eps) * self.weight + self.bias

    (wrong,) = evaluation(EpsOutside(5), torch.nn.BatchNorm1d(5)).wrong
    assert wrong.name == "eval"
    assert wrong.note.startswith("in float64, output[")


def test_a_reference_with_buffers_of_its_own_is_another_function_then() -> None:
    class Stateless(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight, self.bias = torch.nn.Parameter(torch.ones(5)), torch.nn.Parameter(torch.zeros(5))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return functional.batch_norm(x, None, None, self.weight, self.bias, training=True)

    (row,) = [row for row in evaluation(Stateless(), torch.nn.BatchNorm1d(5)).rows if row.family == "eval"]
    assert row.verdict == "skipped"
    assert row.note == (
        "the reference alone has buffers, which it may use: num_batches_tracked, running_mean, running_var"
    )
