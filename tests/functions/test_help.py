"""The help of check_function."""

from __future__ import annotations

from nn_manual import check_function
from nn_manual.functions.battery.layouts_and_kinds import FUNCTION_KINDS


def test_the_help_names_each_kind_and_nothing_private() -> None:
    words = check_function.__doc__ or ""
    assert all(f'"{kind}"' in words for kind in FUNCTION_KINDS)
    assert "FUNCTION_KINDS" not in words
