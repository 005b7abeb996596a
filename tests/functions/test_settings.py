"""check_function: what a function sets for everybody, and what is set around the check."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any

import pytest
import torch

from nn_manual import check_function
from nn_manual.functions.settings import PRECISIONS, SETTINGS


@pytest.mark.parametrize(
    ("mess", "words"),
    [
        (lambda: torch.set_autocast_enabled("cpu", True), 'torch.is_autocast_enabled("cpu"), which was False and '),
        (lambda: torch.set_autocast_enabled("cuda", True), 'torch.is_autocast_enabled("cuda"), which was False and '),
        (lambda: torch.set_flush_denormal(True), "what torch.set_flush_denormal() sets, which was False and became"),
        (lambda: torch.set_float32_matmul_precision("medium"), "torch.get_float32_matmul_precision(), which was high"),
    ],
)
def test_what_stays_changed_is_named_and_changed_back(mess: Callable[[], object], words: str) -> None:
    def product(x: torch.Tensor) -> torch.Tensor:
        mess()
        return x.sin()

    before = {name: read() for name, (read, _) in SETTINGS.items()}
    report = check_function(product, torch.sin, [torch.ones(3)], only=["settings"])
    assert {name: read() for name, (read, _) in SETTINGS.items()} == before
    assert [row.name for row in report.wrong] == ["settings"]
    assert words in report.wrong[0].note


def test_what_is_changed_at_the_first_call_alone_is_named() -> None:
    """In whichever part of the check that call is; and not if the reference makes it."""
    ready: list[bool] = []

    def product(x: Any) -> Any:
        if not ready:
            torch.set_float32_matmul_precision("medium")
            ready.append(True)
        return 2 * x

    def inputs(generator: torch.Generator, N: int) -> list[torch.Tensor]:
        return [torch.randn(N, generator=generator).double()]

    pair = (lambda x: (product(x), None), lambda grad_output, _: 2 * grad_output)
    for function, definition in ((product, lambda x: 2 * x), (product, None), (pair, None)):
        ready.clear()
        report = check_function(function, definition, inputs, sizes={"N": 40}, only=["settings"])
        assert [row.name for row in report.wrong] == ["settings"]
        assert "torch.get_float32_matmul_precision(), which was high" in report.wrong[0].note
    ready.clear()
    assert check_function(lambda x: 2 * x, product, inputs, sizes={"N": 40}, only=["settings"]).passed


@pytest.mark.parametrize(
    ("around", "words"),
    [
        (torch.no_grad(), "gradients are switched off here"),
        (torch.inference_mode(), "gradients are switched off here"),
        (torch.autocast("cpu"), "torch.autocast is on here, for cpu"),
    ],
)
def test_what_is_set_around_the_check_is_said(around: AbstractContextManager[object], words: str) -> None:
    with around, pytest.raises(ValueError, match=words):
        check_function(torch.sin, torch.sin, [torch.ones(3)])


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:The .grad attribute")  # which torch.compile reads
def test_what_is_compiled_stays_compiled() -> None:
    """Behind its limit of recompilations torch.compile runs the function as it is, which is a wrong one here.
    It alone checks what torch.compile compiles.
    """

    def sine(x: torch.Tensor) -> torch.Tensor:
        return x.sin() if torch.compiler.is_compiling() else x.cos()

    def inputs(generator: torch.Generator, N: int, D: int) -> list[torch.Tensor]:
        return [torch.randn(N, D, generator=generator)]

    compiled, dynamo = torch.compile(sine, backend="eager", dynamic=False), sys.modules["torch._dynamo"]
    limit = dynamo.config.recompile_limit
    report = check_function(compiled, torch.sin, inputs, sizes={"N": 4, "D": 5}, skip=["twice", "cost"])
    assert report.passed, report
    assert dynamo.config.recompile_limit == limit


def test_an_interrupt_names_the_row_that_hangs() -> None:
    def hangs(x: torch.Tensor) -> torch.Tensor:
        if len(x) == 13:
            signal.raise_signal(signal.SIGINT)
        return x.sin()

    def inputs(generator: torch.Generator, N: int) -> list[torch.Tensor]:
        return [torch.randn(N, generator=generator)]

    with pytest.raises(KeyboardInterrupt) as interrupted:
        check_function(hangs, torch.sin, inputs, sizes={"N": 4})
    assert interrupted.value.__notes__ == ["in row sizes N=13 of hangs"]


PRODUCTS = {
    "the general one": lambda: torch.set_float32_matmul_precision("medium"),
    "one backend's": lambda: setattr(torch.backends.cuda.matmul, "fp32_precision", "tf32"),
    "another backend's": lambda: setattr(torch.backends.mkldnn.conv, "fp32_precision", "bf16"),  # type: ignore[attr-defined] # torch has no types here
    "every backend's": lambda: setattr(torch.backends, "fp32_precision", "tf32"),
}


@pytest.fixture
def of_backends() -> Iterator[None]:
    """torch's default after a test: what is set for every backend, and then for each."""
    names = ["torch.backends.fp32_precision", *PRECISIONS]
    before = {name: SETTINGS[name][0]() for name in names}
    yield
    for name in names:
        SETTINGS[name][1](before[name])


@pytest.mark.usefixtures("of_backends")
@pytest.mark.parametrize("chosen", PRODUCTS)
def test_products_are_rounded_to_float32_alone(chosen: str) -> None:
    """Whatever is set around the check: TF32 has ten bits."""
    PRODUCTS[chosen]()
    names = [*PRECISIONS, "torch.backends.fp32_precision"]
    before, seen = [SETTINGS[name][0]() for name in names], set[tuple[str, ...]]()

    def sine(x: torch.Tensor) -> torch.Tensor:
        seen.add(tuple(SETTINGS[name][0]() for name in names))
        return x.sin()

    assert check_function(sine, torch.sin, [torch.ones(3)], only=["settings"]).passed
    assert seen == {("highest", *["ieee"] * 7)}
    assert [SETTINGS[name][0]() for name in names] == before


@pytest.mark.usefixtures("of_backends")
@pytest.mark.parametrize("chosen", PRODUCTS)
def test_rounded_products_are_named(chosen: str) -> None:
    def sine(x: torch.Tensor) -> torch.Tensor:
        PRODUCTS[chosen]()
        return x.sin()

    report = check_function(sine, torch.sin, [torch.ones(3)], only=["settings"])
    assert [row.name for row in report.wrong] == ["settings"]
    assert "precision" in report.wrong[0].note


def test_the_check_runs_where_torchs_own_tests_are_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    """They forbid to set torch.backends."""
    monkeypatch.setitem(torch.backends.flags_frozen.__globals__, "__allow_nonbracketed_mutation_flag", False)
    with pytest.raises(RuntimeError, match="not allowed to set"):
        setattr(torch.backends, "fp32_precision", "ieee")  # noqa: B010 - torch has no types here
    assert check_function(torch.sin, torch.sin, [torch.ones(3)], only=["settings"]).passed
