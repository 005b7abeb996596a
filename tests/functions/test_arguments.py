"""check_function: arguments that don't fit are told in one sentence."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from nn_manual import check_function


def made(generator: torch.Generator, n: int) -> list[torch.Tensor]:
    return [torch.randn(n, generator=generator)]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"dtypes": [torch.float32]}, "dtypes must be names, such as 'float32', not torch.float32"),
        ({"dtypes": torch.float32}, "dtypes must be a list such as ['float32'], not torch.float32"),
        ({"dtypes": [("float32", torch.float32)]}, "dtypes must be names, such as 'float32', not torch.float32"),
        ({"skip": "twice"}, "skip must be a list of rows, as ['twice'], not 'twice'"),
        ({"kinds": "zero"}, "kinds must be a list, as ['zero'], not 'zero'"),
        ({"sizes": {"n": 4.0}}, "size n must be a whole number from 0 on, or several, not 4.0"),
        ({"sizes": {"n": [4, "5"]}}, "size n must be a whole number from 0 on, or several, not [4, '5']"),
        ({"sizes": [8]}, "sizes must be a dict of the dimensions, as {'N': 8}, not [8]"),
        ({"tolerance": "1e-4"}, "tolerance must be above 0 and below 0.5, not '1e-4'"),
        ({"dtypes": 5}, "dtypes must be a list such as ['float32'], not 5"),
        ({"dtypes": ["float64", ("float32", "float64")]}, "2 dtypes for 1 floating input: input_0"),
        ({"kinds": 5}, "kinds must be a list, as ['zero'], not 5"),
        ({"only": None}, "only must be a list of rows, as ['cost'], not None"),
        ({"skip": [5]}, "skip must be a list of rows, as ['cost'], not [5]"),
        ({"function": 3}, "function must be a function of tensors, not 3"),
        ({"function": (torch.sin, None)}, "backward must be a function of tensors, not None"),
        ({"function": (torch.sin,)}, "function must be one, or a pair (forward, backward), not a tuple of 1"),
        ({"reference": 3}, "reference must be a function of tensors, not 3"),
    ],
)
def test_an_argument_that_does_not_fit_is_one_sentence(options: dict[str, Any], words: str) -> None:
    given: dict[str, Any] = {"function": torch.sin, "reference": torch.sin, "inputs": made, "sizes": {"n": 4}}
    with pytest.raises((ValueError, TypeError)) as caught:
        check_function(**(given | options))
    assert str(caught.value) == words


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (np.ones(3, ">f8"), "x has another byte order than torch: pass x.astype('float64')"),
        (torch.ones(2, 2).to_sparse(), "x is sparse: pass its values, to a function that makes it of them"),
    ],
)
def test_an_input_that_torch_cannot_take(given: Any, words: str) -> None:
    with pytest.raises(TypeError) as caught:
        check_function(lambda x: x.to_dense(), lambda x: x.to_dense(), [given])
    assert str(caught.value) == words


@pytest.mark.parametrize("given", [np.array(["mean"]), np.array([[1], [2, 3]], dtype=object)])
def test_an_array_of_text_or_objects_is_passed_on_as_it_is(given: Any) -> None:
    def kept(x: Any, how: Any) -> Any:
        assert how.tolist() == given.tolist()
        return 2 * x

    pair = (lambda x, how: (kept(x, how), None), lambda grad_output, _: 2 * grad_output)
    report = check_function(pair, kept, [np.ones((4, 3)), given], skip=["cost"])
    assert report.passed, report


def test_a_tensor_of_inference_mode_is_an_input() -> None:
    with torch.inference_mode():
        x = torch.ones(3, 2)
    assert check_function(torch.sin, torch.sin, [x], only=["settings"]).passed


def test_a_size_may_be_any_whole_number() -> None:
    sizes: list[Any] = [np.int64(4), [np.int64(4), 5]]
    for size in sizes:
        assert check_function(torch.sin, torch.sin, made, sizes={"n": size}, only=["settings"]).passed


def test_numbers_that_differ_are_told_apart() -> None:
    """In float64 by less than six digits show."""

    def off(x: torch.Tensor) -> torch.Tensor:
        return x * (1 + 1e-9) if x.dtype == torch.float64 else x * 1

    inputs = [torch.full((1,), 20.5)]
    report = check_function(off, lambda x: x * 1, inputs, dtypes=["float32", "float64"], only=["dtype"])
    (row,) = report.wrong
    assert row.note.startswith("output[0] is 20.500000020500003, the reference has 20.5")


def test_what_a_function_writes_into_a_dict_of_settings_is_no_input() -> None:
    """As a normalization in a course does, which keeps its running mean there."""

    def forward(x: Any, settings: Any) -> Any:
        settings["mean"] = 0.9 * settings.get("mean", np.zeros(x.shape[1])) + 0.1 * x.mean(0)
        settings["inner"][0]["mean"] = x.mean(0)
        settings.setdefault("calls", []).append(x)
        return x - x.mean(0), x

    def backward(grad_output: Any, x: Any) -> Any:
        return grad_output - grad_output.sum(0) / len(x)

    given = [np.random.default_rng(0).standard_normal((4, 3)), {"mode": "train", "inner": [{}]}]
    def reference(x: Any, settings: Any) -> Any:  # noqa: ARG001 - it has forward's arguments
        return x - x.mean(0)

    report = check_function((forward, backward), reference, given, only=["kinds", "in place"])
    assert report.passed, report
    assert given[1] == {"mode": "train", "inner": [{}]}
