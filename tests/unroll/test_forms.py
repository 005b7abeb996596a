"""The text behind an array's name gives the right view."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from nn_manual.arrays import Array
from nn_manual.trace.trace import View
from nn_manual.unroll.forms import suffix
from nn_manual.unroll.views import is_same, num_steps

BASE = np.zeros((6, 4, 12), np.float32)
FLAT = np.zeros(50, np.float32)


def view_of(array: Array, base: Array) -> View:
    offset = array.__array_interface__["data"][0] - base.__array_interface__["data"][0]
    return View(0, offset, array.shape, array.strides, array.dtype)


@pytest.mark.parametrize(
    ("base", "made", "text"),
    [
        (BASE, lambda x: x, ""),
        (BASE, lambda x: x[1:3], "[1:3]"),
        (BASE, lambda x: x[2, :, ::3], "[2, :, 0:10:3]"),
        (BASE, lambda x: x[::-1], "[::-1]"),
        (BASE, lambda x: x[4, ::-2, 7:2:-2], "[4, ::-2, 7:2:-2]"),
        (BASE, lambda x: x[:, 2::-1, 9::-4], "[:, 2::-1, 9::-4]"),
        (BASE, lambda x: x[..., np.newaxis], "[:, :, :, np.newaxis]"),
        (BASE, lambda x: x.mT, ".mT"),
        (BASE, lambda x: x.swapaxes(0, 1), ".swapaxes(0, 1)"),
        (BASE, lambda x: x.transpose(1, 2, 0), ".transpose(1, 2, 0)"),
        (BASE, lambda x: x.ravel(), ".ravel()"),
        (BASE, lambda x: x.reshape(-1, 12), ".reshape(-1, 12)"),
        (BASE, lambda x: x.reshape(6, -1), ".reshape(6, -1)"),
        (BASE, lambda x: x.reshape(-1, 12).T, ".reshape(-1, 12).T"),
        (BASE, lambda x: x[1:].reshape(-1, 12).T, "[1:6].reshape(-1, 12).T"),
        (BASE, lambda x: x.reshape(6, 4, 3, 4)[:, :, 1].swapaxes(1, 2), "[:, :, 4:8].mT"),
        (BASE, lambda x: x.reshape(6, 4, 3, 2, 2).swapaxes(1, 2), ".reshape(-1, 4, 3, 2, 2).swapaxes(1, 2)"),
        (BASE, lambda x: x.reshape(6, 4, 6, 2)[:, :, :5], ".reshape(-1, 4, 6, 2)[:, :, 0:5]"),
        (BASE, lambda x: x.reshape(6, 4, 3, 2, 2)[:, :, 1:, 1], ".reshape(-1, 4, 3, 2, 2)[:, :, 1:3, 1]"),
        (BASE, lambda x: x.reshape(6, 4, 3, 4)[::-1], ".reshape(-1, 4, 3, 4)[::-1]"),
        (BASE, lambda x: x.reshape(6, 4, 3, 4)[:, :, ::-1], ".reshape(-1, 4, 3, 4)[:, :, ::-1]"),
        (BASE, lambda x: x.view(np.int32), ".view(np.int32)"),
        (FLAT, lambda x: x[6:18].reshape(3, 4), "[6:18].reshape(3, 4)"),
        (FLAT[7:8], lambda x: x.reshape(()), ".reshape(())"),
    ],
)  # fmt: skip
def test_each_form(base: Array, made: Callable[[Array], Array], text: str) -> None:
    view = view_of(made(base), base)
    assert suffix(view_of(base, base), view) == text
    assert is_same(view, view_of(eval(f"base{text}", {"base": base, "np": np}), base))


def test_rows_of_an_array_that_begins_behind_the_storage() -> None:
    """Rows are counted from its own beginning."""
    base, view = BASE[1:], BASE[2].reshape(-1, 2)
    assert suffix(view_of(base, BASE), view_of(view, BASE)) == "[1].reshape(-1, 2)"


def test_what_lies_elsewhere_has_none() -> None:
    assert suffix(view_of(BASE[:3], BASE), view_of(BASE[2:4], BASE)) is None
    assert suffix(view_of(BASE, BASE), view_of(BASE, BASE)._replace(storage=1)) is None


@pytest.mark.parametrize(("text", "count"), [("", 0), ("[1:2]", 1), (".T", 1), ("[0].reshape(-1, 2)[:, 0].T", 4)])
def test_steps(text: str, count: int) -> None:
    assert num_steps(text) == count
