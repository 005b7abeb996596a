"""Products of rows in own loops: the same sums, for any number of rows; and which products are worth them."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

from nn_manual.arrays import Array
from nn_manual.compile import row_products
from nn_manual.compile.cache import Folder, Kernels
from nn_manual.compile.nests import Access, Product
from nn_manual.trace.operation import Operation, Place, View


def product(a: Array, b: Array, c: Array, k: int) -> None:
    """c = a[:, :k] @ b[:, :k].T"""
    dtype = f"{a.dtype.kind}{a.dtype.itemsize}"
    address = Kernels(64, Folder(print)).address(row_products.text(dtype), "")
    arguments = []
    for array in (a, b, c):
        arguments += [array.ctypes.data, array.strides[0] // array.itemsize]
    arguments += [*c.shape, k]
    entry = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p)(address)
    assert entry((ctypes.c_int64 * len(arguments))(*arguments)) == 0


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    ("m", "n", "k"), [(4, 3, 128), (64, 10, 784), (5, 4, 129), (7, 5, 1), (6, 8, 0), (33, 17, 300)]
)
def test_it_is_the_product(m: int, n: int, k: int, dtype: type) -> None:
    """Of parts of larger matrices, too, and for numbers of rows that aren't multiples of those of a tile."""
    draw = np.random.default_rng(0).standard_normal
    a: Array = draw((m, k + 3)).astype(dtype)
    b: Array = draw((n, k + 5)).astype(dtype)
    c: Array = np.full((m, n + 2), 7, dtype)
    product(a, b, c[:, :n], k)
    expected = a[:, :k].astype(np.float64) @ b[:, :k].T.astype(np.float64)
    np.testing.assert_allclose(c[:, :n], expected, rtol=0, atol=20 * np.finfo(dtype).eps * max(1, k) ** 0.5)
    np.testing.assert_array_equal(c[:, n:], 7)


def test_what_is_no_number_stays() -> None:
    a, b, c = np.ones((4, 128), np.float32), np.ones((3, 128), np.float32), np.empty((4, 3), np.float32)
    a[1, 100], a[2, 3], a[3, 127], a[3, 0] = np.nan, np.inf, np.inf, -np.inf
    product(a, b, c, 128)
    np.testing.assert_array_equal(c, np.repeat([[128], [np.nan], [np.inf], [np.nan]], 3, axis=1).astype(np.float32))


OPERATION = Operation("matmul", np.matmul, (), {}, View(2, 0, (), (), np.dtype(np.float32)), Place("", "", "", 0))


def leaf(m: int, n: int, k: int, *, b_is_transposed: bool = True) -> Product:
    """a (m, k) @ b (k, n), where the transposed of b lies in memory or b itself."""
    float32 = np.dtype(np.float32)
    of_b = ((k, 4), (n, 4 * k)) if b_is_transposed else ((k, 4 * n), (n, 4))
    a, b, c = (
        Access(i, 0, (), float32, span) for i, span in enumerate([((m, 4 * k), (k, 4)), of_b, ((m, 4 * n), (n, 4))])
    )
    return Product(c, (a, b), OPERATION)


@pytest.mark.parametrize(
    ("m", "n", "k", "is_worth_it"),
    [
        (64, 128, 784, True),
        (64, 64, 64, False),  # short sums
        (128, 512, 784, False),  # copies are little of the work
        (1000, 32, 784, True),
        (3, 64, 784, False),  # fewer rows than a tile has
        (64, 2, 784, False),
    ],
)
def test_which_products(m: int, n: int, k: int, *, is_worth_it: bool) -> None:
    assert row_products.suits(leaf(m, n, k)) == is_worth_it
    assert not row_products.suits(leaf(m, n, k, b_is_transposed=False))
