"""Matrix products in own loops: right sums for all sizes and layouts, and used only where they are faster."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

from nn_manual import SGD, CausalSelfAttention, MSELoss, Sequential
from nn_manual.arrays import Array
from nn_manual.compile import own_products, parallel
from nn_manual.compile.cache import Folder, Kernels
from nn_manual.compile.own_products import DEPTH, Factors, kernel, suits, vector_bytes
from nn_manual.compile.parallel import own_apart
from nn_manual.compile.program import KernelCall, lowered
from nn_manual.trace.step import trace_step

pytestmark = pytest.mark.skipif(not vector_bytes(), reason="own loops are for processors with AVX2")


def product(factors: Factors, a: Array, b: Array, c: Array, pieces: int = 0) -> None:
    """c = a @ b, in so many pieces or whole; a and b are given as they lie in memory."""
    address = Kernels(64, Folder(print)).address(kernel(factors), "")
    arguments = [0, factors.transposed_a, factors.transposed_b, *factors[3:]]
    for array in (a, b, c):
        arguments += [array.ctypes.data, array.strides[0] // array.itemsize]
    entry = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)(address)
    size = pieces and own_apart(factors).size(pieces)
    for first in range(0, factors.m, size or factors.m):
        last = min(factors.m, first + (size or factors.m))
        assert entry((ctypes.c_int64 * len(arguments))(*arguments), first, last) == 0


SIZES = [
    (8, 16, 3),
    (64, 64, 64),
    (64, 128, 784),  # several parts of the sums
    (13, 100, 2 * DEPTH + 5),  # tiles of fewer rows, vectors that aren't full
    (29, 75, 1),
    (1, 16, DEPTH),
    (8, 5, 17),
]


@pytest.mark.slow
@pytest.mark.parametrize("layouts", ["nn", "nt", "tn", "tt"])
@pytest.mark.parametrize(("m", "n", "k"), SIZES)
def test_it_is_the_product(m: int, n: int, k: int, layouts: str) -> None:
    """Also for parts of larger matrices: nothing beside the parts is read or written."""
    of_a, of_b = ((rows, columns) for rows, columns in ((m, k), (k, n)))
    of_a, of_b = (shape[::-1] if each == "t" else shape for shape, each in zip((of_a, of_b), layouts, strict=True))
    for dtype in (np.float32, np.float64) if m * n * k < 64**3 else (np.float32,):
        draw = np.random.default_rng(0).standard_normal
        a, b = np.full((of_a[0], of_a[1] + 3), np.nan, dtype), np.full((of_b[0], of_b[1] + 5), np.nan, dtype)
        a[:, :-3], b[:, :-5] = draw(of_a), draw(of_b)
        c = np.full((m, n + 2), 7, dtype)
        factors = Factors(f"f{c.itemsize}", layouts[0] == "t", layouts[1] == "t", m, n, k)
        product(factors, a[:, :-3], b[:, :-5], c[:, :n])
        first, second = a[:, :-3].astype(np.float64), b[:, :-5].astype(np.float64)
        expected = (first.T if layouts[0] == "t" else first) @ (second.T if layouts[1] == "t" else second)
        # Sums are rounded at each term of a part; the partial sums grow as the root of the number of terms.
        atol = 3 * np.finfo(dtype).eps * (k * min(k, DEPTH)) ** 0.5
        np.testing.assert_allclose(c[:, :n], expected, rtol=0, atol=atol)
        np.testing.assert_array_equal(c[:, n:], 7)


@pytest.mark.parametrize(
    ("num_bytes", "m", "num_vectors", "tile"), [(32, 6, 2, (6, 2)), (32, 1, 12, (1, 6)), (64, 8, 3, (8, 3))]
)
def test_a_tile_takes_the_registers_that_there_are(
    num_bytes: int, m: int, num_vectors: int, tile: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """With b's row and a number of a: (6 + 1) * 2 of 15 at most, (1 + 1) * 6, and (8 + 1) * 3 of 30."""
    monkeypatch.setattr(own_products, "vector_bytes", lambda: num_bytes)
    factors = Factors("f4", False, False, m, num_vectors * num_bytes // 4, 64)
    cut = own_products._tiles.__wrapped__(factors)
    assert (cut.rows, cut.vectors) == tile


@pytest.mark.parametrize("layouts", ["nn", "tt"])
@pytest.mark.parametrize(("m", "n", "k"), [(300, 70, 90), (131, 128, 300), (64, 64, 512)])
@pytest.mark.parametrize("pieces", [2, 3, 7])
def test_pieces_give_the_same_bits(
    m: int, n: int, k: int, layouts: str, pieces: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parallel, "LEAST_WORK", 1)
    draw = np.random.default_rng(0).standard_normal
    a, b = draw((m, k), np.float32), draw((k, n), np.float32)
    a, b = (np.ascontiguousarray(each.T) if which == "t" else each for each, which in zip((a, b), layouts, strict=True))
    factors = Factors("f4", layouts[0] == "t", layouts[1] == "t", m, n, k)
    whole, cut = np.full((2, m, n), np.nan, np.float32)
    product(factors, a, b, whole)
    product(factors, a, b, cut, pieces)
    assert own_apart(factors).size(pieces) < m
    assert whole.tobytes() == cut.tobytes()


@pytest.mark.parametrize("is_transposed", [False, True])
def test_what_is_no_number_stays(*, is_transposed: bool) -> None:
    a, b = np.ones((8, 300), np.float32), np.ones((16, 300) if is_transposed else (300, 16), np.float32)
    c = np.full((8, 16), np.nan, np.float32)  # old values aren't read
    a[1, 100], a[2, 3], a[3, 127], a[3, 0] = np.nan, np.inf, np.inf, -np.inf
    product(Factors("f4", False, is_transposed, 8, 16, 300), a, b, c)
    expected = np.array([300, np.nan, np.inf, np.nan, 300, 300, 300, 300], np.float32)
    np.testing.assert_array_equal(c, np.repeat(expected[:, np.newaxis], 16, axis=1))


@pytest.mark.parametrize(("m", "n", "k"), [(64, 64, 64), (30, 33, 300)])
def test_where_a_matrix_lies_decides_no_bit(m: int, n: int, k: int) -> None:
    draw = np.random.default_rng(0).standard_normal
    a, b = draw((m, k)).astype(np.float32), draw((n, k)).astype(np.float32)
    results = []
    for offset in range(0, 64, 4):
        memory = np.zeros(a.nbytes + 128, np.uint8)
        start = -memory.ctypes.data % 64 + offset
        moved = memory[start : start + a.nbytes].view(np.float32).reshape(m, k)
        moved[...] = a
        c = np.empty((m, n), np.float32)
        product(Factors("f4", False, True, m, n, k), moved, b, c)
        results.append(c.tobytes())
    assert len(set(results)) == 1


@pytest.mark.parametrize(
    ("factors", "is_worth_it"),
    [
        (Factors("f4", False, True, 64, 64, 64), True),
        (Factors("f4", False, False, 128, 512, 512), True),
        (Factors("f4", False, False, 256, 2048, 2048), False),  # larger than a cache
        (Factors("f4", True, False, 64, 2, 64), False),  # most of a vector would be empty
        (Factors("f4", False, True, 4, 64, 64), False),  # little work for a factor that is copied
        (Factors("f4", False, False, 4, 64, 64), True),
        (Factors("f4", False, False, 64, 64, 0), False),  # zeros
    ],
)
def test_which_products(factors: Factors, *, is_worth_it: bool) -> None:
    assert suits(factors) == is_worth_it


def test_no_processor_without_such_vectors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(own_products, "vector_bytes", lambda: 0)
    assert not suits(Factors("f4", False, True, 64, 64, 64))


def test_a_step_may_have_them() -> None:
    """Alone and in the loops of attention. By default a BLAS computes all products."""
    model = Sequential(CausalSelfAttention(embed_dim=64, num_heads=2), seed=0)
    batch = np.ones((2, 32, 64), np.float32), np.zeros((2, 32, 64), np.float32)
    step = lowered(trace_step(model, MSELoss(), SGD(model, lr=0.1), *batch))
    assert all(map(suits, step.products))
    made = step.program(own_products=True)
    assert not any("f4_gemm" in text for text in made.kernels)
    whole = {call.kernel for call in made.calls if isinstance(call, KernelCall) and call.is_product}
    assert whole
    assert whole < set(map(kernel, step.products))
    assert not any("product_tile" in text for text in step.program().kernels)
