"""check_function: what a function sets for everybody, and what is set around the check."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager

import pytest
import torch

from nn_manual import check_function
from nn_manual.check.functions.battery.families import FAMILIES
from nn_manual.check.functions.settings import SETTINGS

OTHERS = [family for family in FAMILIES if family != "settings"]


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
    report = check_function(product, torch.sin, [torch.ones(3)], skip=OTHERS)
    assert {name: read() for name, (read, _) in SETTINGS.items()} == before
    assert [row.name for row in report.wrong] == ["settings"]
    assert words in report.wrong[0].note


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
