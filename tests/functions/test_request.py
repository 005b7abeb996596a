"""The rows that a command line names."""

from __future__ import annotations

import pytest

from nn_manual.cli.options import parse
from nn_manual.functions.request import request_of


@pytest.mark.parametrize(
    ("given", "rows"),
    [
        ([], ()),
        (["kinds"], ("kinds",)),
        (["kinds,sizes", "cost"], ("kinds", "sizes", "cost")),
        (["in place, kinds zero,"], ("in place", "kinds zero")),
        (["sizes N=129,D=131,kinds"], ("sizes N=129,D=131", "kinds")),
        (["full size bfloat16, float32,sizes N=1,D=1"], ("full size bfloat16, float32", "sizes N=1,D=1")),
    ],
)
@pytest.mark.parametrize("option", ["skip", "only"])
def test_commas_stand_between_rows_and_within_their_names(option: str, given: list[str], rows: tuple[str, ...]) -> None:
    words = [word for each in given for word in (f"--{option}", each)]
    command = ["check-function", "my_kernels:scale", "--shapes", "N", "--sizes", "N=4", *words]
    assert getattr(request_of(parse(command)), option) == rows
