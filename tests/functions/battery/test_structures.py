"""check_function on lists, dicts, keyword arguments, modules and functions that work in place."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
import torch
from torch.autograd import Function

from nn_manual import check_function


def values(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


@pytest.mark.slow
def test_gradients_in_lists_and_dicts_have_names() -> None:
    """It alone has inputs in lists and dicts."""
    def right(several: list[torch.Tensor], table: dict[str, torch.Tensor]) -> torch.Tensor:
        return several[0] * several[1] + table["a"]

    def wrong(several: list[torch.Tensor], table: dict[str, torch.Tensor]) -> torch.Tensor:
        return several[0] * several[1].detach() + table["a"]

    given = [[values(3, 2), values(3, 2, seed=1)], {"a": values(2, seed=2)}]
    report = check_function(right, right, given)
    assert report.passed, report
    names = [c.name.partition(",")[0] for c in report.comparisons]
    assert names[:4] == ["output", "grad_several[0]", "grad_several[1]", "grad_table['a']"]
    failures = check_function(wrong, right, given).failures
    assert {failure.name.partition(",")[0] for failure in failures} == {"grad_several[1]"}


def test_outputs_in_dicts_have_names_and_a_structure() -> None:
    def right(x: torch.Tensor) -> dict[str, Any]:
        return {"sine": x.sin(), "both": [x.cos(), (x > 0)]}

    report = check_function(right, right, [values(3)])
    assert report.passed, report
    assert [c.name for c in report.comparisons][:3] == ["output['sine']", "output['both'][0]", "output['both'][1]"]
    other = check_function(lambda x: {"cosine": x.sin(), "both": [x.cos(), (x > 0)]}, right, [values(3)])
    assert other.problem == "<lambda>: returned output['cosine'] where the reference has output['sine']"


def test_a_list_of_one_tensor_is_no_tensor() -> None:
    def alone(x: torch.Tensor) -> torch.Tensor:
        return 2 * x

    def of_one(x: torch.Tensor) -> list[torch.Tensor]:
        return [2 * x]

    x = values(3)
    problem = check_function(of_one, alone, [x]).problem
    assert problem == "of_one: returned a list or tuple of one where the reference has a tensor"
    problem = check_function(alone, of_one, [x]).problem
    assert problem == "alone: returned a tensor where the reference has a list or tuple of one"
    report = check_function(lambda x: (2 * x,), of_one, [x])
    assert report.passed, report
    assert report.comparisons[0].name == "output 0"


def test_keyword_arguments() -> None:
    def right(x: torch.Tensor, *, scale: float = 1.0) -> torch.Tensor:
        return scale * x

    def wrong(x: torch.Tensor, *, scale: float = 1.0) -> torch.Tensor:
        return x * (1 + 0 * scale)

    given = {"x": values(3), "scale": 3.0}
    assert check_function(right, right, given).passed
    assert check_function(wrong, right, given).failures[0].name == "output"


class Affine(torch.nn.Module):
    def __init__(self, size: int = 2) -> None:
        super().__init__()
        self.inner = torch.nn.Linear(2, size, dtype=torch.float64)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.inner(x)  # type: ignore[no-any-return] # torch's modules return Any


class Untrained(Affine):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.linear(x, self.inner.weight.detach(), self.inner.bias)


@pytest.mark.slow
def test_a_module_gives_the_gradient_of_each_parameter_by_its_name() -> None:
    """It alone has a wrong gradient of a parameter inside a module."""
    module = Affine()
    before = {name: parameter.clone() for name, parameter in module.named_parameters()}
    report = check_function(module, Affine(), [values(3, 2)])
    assert report.passed, report
    assert {c.name.partition(",")[0] for c in report.comparisons} == {
        "output",
        "grad_x",
        "grad_inner.weight",
        "grad_inner.bias",
    }
    assert all(torch.equal(parameter, before[name]) for name, parameter in module.named_parameters())
    failures = check_function(Untrained(), Affine(), [values(3, 2)]).failures
    assert {failure.name.partition(",")[0] for failure in failures} == {"grad_inner.weight"}


class BatchNorm(torch.nn.Module):
    """torch.nn.BatchNorm1d without a weight. `skipped` is a buffer that it doesn't update."""

    def __init__(self, skipped: str = "", *, assigns: bool = False) -> None:
        super().__init__()
        self.skipped, self.assigns = skipped, assigns
        self.running_mean: torch.Tensor
        self.running_var: torch.Tensor
        self.register_buffer("running_mean", torch.zeros(3))
        self.register_buffer("running_var", torch.ones(3))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        mean, variance = (x.mean(0), x.var(0)) if self.training else (self.running_mean, self.running_var)
        for name, new in {"running_mean": mean, "running_var": variance}.items():
            if self.training and name != self.skipped:
                moved = 0.9 * getattr(self, name) + 0.1 * new.detach()
                setattr(self, name, moved) if self.assigns else getattr(self, name).copy_(moved)
        factor = (len(x) - 1) / len(x) if self.training else 1  # the running variance is unbiased
        return (x - mean) / (variance * factor + 1e-5).sqrt()


def torch_batch_norm() -> torch.nn.Module:
    return torch.nn.BatchNorm1d(3, affine=False)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_the_buffers_of_a_module_are_compared_by_their_names(dtype: str) -> None:
    """It alone compares the buffers of modules."""
    for assigns in (False, True):
        module = BatchNorm(assigns=assigns)
        report = check_function(module, torch_batch_norm(), [values(4, 3).float()], dtypes=[dtype])
        assert report.passed, report
        assert not module.running_mean.any()
        assert [c.name for c in report.comparisons][:3] == ["output", "buffer running_mean", "buffer running_var"]
    failures = check_function(BatchNorm("running_mean"), torch_batch_norm(), [values(4, 3).float()]).failures
    assert [failure.name for failure in failures] == ["buffer running_mean"]


def test_the_reference_starts_from_the_modules_buffers() -> None:
    module = BatchNorm().eval()
    module.running_mean.add_(2)
    report = check_function(module, torch_batch_norm().eval(), [values(4, 3).float()])
    assert report.passed, report
    assert not any(c.name.startswith("buffer") for c in report.comparisons)  # none was changed


def test_buffers_of_the_reference_alone_are_named() -> None:
    class Stateless(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return (x - x.mean(0)) / (x.var(0, correction=0) + 1e-5).sqrt()

    report = check_function(Stateless(), torch_batch_norm(), [values(4, 3)], skip=["kinds", "cost"])
    assert report.passed, report
    assert "not compared, of the reference: buffer running_mean, running_var, num_batches_tracked; Stateless has" in (
        " ".join(str(report).split())
    )
    assert "not compared" not in str(check_function(Affine(), Affine(), [values(3, 2)], skip=["kinds", "cost"]))


def test_a_dataclass_of_tensors_is_refused_with_the_reason() -> None:
    @dataclass
    class Batch:
        x: torch.Tensor
        length: int = 3

    def doubled(batch: Batch, y: torch.Tensor) -> torch.Tensor:
        return 2 * batch.x * y

    with pytest.raises(TypeError) as caught:
        check_function(doubled, doubled, [Batch(values(3)), values(3)])
    assert str(caught.value) == (
        "batch is a dataclass, Batch: pass its tensors alone, to a function that makes Batch(x, length)"
    )


@pytest.mark.parametrize(
    ("reference", "words"),
    [
        (torch.tanh, "Affine is a module: its reference must be one"),
        (torch.nn.Tanh(), "Tanh has no parameter inner.bias"),
        (Affine(3), "parameter inner.weight of Affine has shape (2, 2), the reference's (3, 2)"),
    ],
)
def test_a_module_needs_a_reference_with_its_parameters(reference: Any, words: str) -> None:
    with pytest.raises(ValueError, match="parameter") as caught:
        check_function(Affine(), reference, [values(3, 2)])
    assert str(caught.value).startswith(words)


class Doubled(Function):
    @staticmethod
    def forward(context: Any, x: Any) -> Any:
        context.mark_dirty(x)
        return x.mul_(2)

    @staticmethod
    def backward(_: Any, grad_output: Any) -> Any:
        return 2 * grad_output


class Undeclared(Doubled):
    @staticmethod
    def forward(_: Any, x: Any) -> Any:
        return x.mul_(2)


def test_a_function_that_works_in_place_says_so() -> None:
    x = values(4, 3)
    report = check_function(Doubled, lambda x: 2 * x, [x])
    assert report.passed, report
    assert torch.equal(x, values(4, 3))
    wrong = check_function(Undeclared, lambda x: 2 * x, [x]).wrong
    assert "writes inputs" in [row.name for row in wrong]
    assert "forward wrote into x; an autograd.Function that works in place returns its input" in str(wrong)


def test_inputs_that_a_reference_declares_constant() -> None:
    """A stop-gradient: the reference detaches."""

    class Scaled(Function):
        @staticmethod
        def forward(context: Any, x: Any, scale: Any) -> Any:
            context.save_for_backward(scale)
            return x * scale

        @staticmethod
        def backward(context: Any, grad_output: Any) -> Any:
            (scale,) = context.saved_tensors
            return grad_output * scale, None

    assert check_function(Scaled, lambda x, scale: x * scale.detach(), [values(3), values(3, seed=1)]).passed
    failure = check_function(Scaled, lambda x, scale: x * scale, [values(3), values(3, seed=1)]).failures[0]
    assert failure.name.startswith("grad_scale")


@pytest.mark.parametrize(
    ("function", "reference"),
    [
        (torch.sin, lambda x: {"y": x.sin()}),
        (lambda x: {"y": x.sin()}, torch.sin),
        (lambda x: (x.sin(), x.cos()), torch.sin),
    ],
)
def test_another_structure_is_told_once(function: Any, reference: Any) -> None:
    report = check_function(function, reference, [values(3)])
    assert report.problem
    assert not report.wrong
    assert not [row for row in report.rows if "KeyError" in row.note]
    assert {"absent", ""} == {row.variant for row in report.rows if row.name in ("grad_output absent", "cost")}
