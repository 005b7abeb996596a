"""Matrix products in own loops. Several threads may have rows of their own: each number is computed in the same way.

A BLAS first copies both factors, and uses the same tiles for all sizes. Here the tile depends on the sizes, and only a
transposed b is copied, a part at a time. On an AMD EPYC with AVX-512, OpenBLAS takes 1.05 to 1.5 times as long for the
products of nets up to some hundred wide.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

from nn_manual.compile.nests import Product
from nn_manual.compile.products import layout
from nn_manual.compile.scalar import code

#: By the bytes of a vector: how many vectors a tile, a row of b and a number of a may take together. This is one or two
#: less than there are registers. With more, sums go to memory and back, and a product takes 1.5 times as long.
REGISTERS = {32: 15, 64: 30}
#: More rows need more addresses than the processor has registers for, and leave fewer vectors for a row of c.
MOST_ROWS = 8
#: With fewer sums side by side, additions wait: one takes four cycles, and two can begin in each cycle.
FEWEST_SUMS = 8
#: What a tile costs besides its products, in units of a product of vectors.
OVERHEAD = 0.8
#: So many columns of a are multiplied at once: their part of b stays in the cache, and longer sums, term by term, lose
#: more digits.
DEPTH = 256
#: The columns of c must fill at least this part of their vectors. Else the BLAS is faster: it may use vectors of rows.
LEAST_FILLED = 0.75
#: With fewer rows, transposing b takes longer than the product.
FEWEST_ROWS_OF_TRANSPOSED = 8
#: With more multiplications the factors don't fit into the cache, and a BLAS orders its work for that.
MOST_MULTIPLICATIONS = 2**28

#: A product as a function that a kernel calls.
FUNCTION = '''
@njit(error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)
def {name}(a, row_a, b, row_b, c, row_c, m, n, k):
    no_overlap()
{body}
'''

#: Some rows of a product as a kernel of its own, with the arguments of a BLAS's product.
KERNEL = '''
@cfunc("int64(CPointer(int64), int64, int64)", error_model="numpy", cache=True)
def entry(arguments, first_row, last_row):
    m, n, k = last_row - first_row, arguments[4], arguments[5]
    row_a, row_b, row_c = arguments[7], arguments[9], arguments[11]
    a, b = shifted({dtype}_apart(arguments[6]), first_row * {step_a}), {dtype}_apart(arguments[8])
    c = shifted({dtype}_apart(arguments[10]), first_row * row_c)
{body}
    return 0
'''


@functools.cache
def vector_bytes() -> int:
    """The number of bytes in the processor's vectors, if it has a fused multiply-add and masks; otherwise 0."""
    from llvmlite import binding

    features = binding.get_host_cpu_features()
    if features.get("avx512f"):
        return 64
    return 32 if features.get("avx2") and features.get("fma") else 0


class Factors(NamedTuple):
    """A kind of product: a, (m, k), times b, (k, n), each possibly transposed in memory; the code of the dtype."""

    dtype: str
    transposed_a: bool
    transposed_b: bool
    m: int
    n: int
    k: int

    @property
    def width(self) -> int:
        """How many numbers a vector has."""
        return vector_bytes() // int(self.dtype[1])


def factors_of(leaf: Product) -> Factors:
    """The factors of a product."""
    a, b = (layout(access) for access in leaf.inputs)
    assert a is not None
    assert b is not None
    ((m, _), (n, _)), k = leaf.output.span, leaf.inputs[0].span[1][0]
    return Factors(code(leaf.output.dtype), a.is_transposed, b.is_transposed, m, n, k)


def suits(factors: Factors) -> bool:
    """Whether own loops are faster than a BLAS."""
    m, n, k, width = *factors[3:], factors.width
    if not width or not k or (factors.transposed_b and m < FEWEST_ROWS_OF_TRANSPOSED):
        return False
    return m * n * k <= MOST_MULTIPLICATIONS and n >= LEAST_FILLED * -(-n // width) * width


class _Tiles(NamedTuple):
    """How c is cut into tiles: the rows of a tile, its columns in vectors, and the rows and vectors that are left over.
    """

    rows: int
    vectors: int
    rows_left: int
    vectors_left: int


@functools.cache
def _tiles(factors: Factors) -> _Tiles:
    """The cut whose tiles take the least time."""

    def cost(rows: int, vectors: int) -> float:
        return max(rows * vectors, FEWEST_SUMS, rows / 2 + vectors) + OVERHEAD if rows and vectors else 0

    best, least = _Tiles(1, 1, 0, 0), float("inf")
    most = REGISTERS[vector_bytes()] - 1
    for rows in range(1, min(MOST_ROWS, factors.m) + 1):
        for vectors in range(1, most // (rows + 1) + 1):
            num_rows, rows_left = divmod(factors.m, rows)
            num_columns, columns_left = divmod(factors.n, vectors * factors.width)
            vectors_left = -(-columns_left // factors.width)
            total = num_columns * (num_rows * cost(rows, vectors) + cost(rows_left, vectors))
            total += num_rows * cost(rows, vectors_left) + cost(rows_left, vectors_left)
            if total < least:
                best, least = _Tiles(rows, vectors if num_columns else 0, rows_left, vectors_left), total
    return best


def name(factors: Factors) -> str:
    """The name of the function for such a product. Products with the same cut share a function."""
    layouts = "".join("t" if transposed else "n" for transposed in factors[1:3])
    return f"{factors.dtype}_product_{layouts}_" + "_".join(map(str, _tiles(factors)))


def text(factors: Factors) -> str:
    """The text of the function. Its arguments are a, row_a, b, row_b, c, row_c, m, n, k; row_x is the distance of two
    rows.
    """
    return FUNCTION.format(name=name(factors), body=_body(factors))


def kernel(factors: Factors) -> str:
    """The text of the kernel."""
    step_a = "1" if factors.transposed_a else "row_a"
    return KERNEL.format(dtype=factors.dtype, step_a=step_a, body=_body(factors))


def grain(factors: Factors) -> int:
    """Threads get multiples of so many rows: then each row is in a tile like that in the whole product."""
    return _tiles(factors).rows


def _body(factors: Factors) -> str:
    tiles, width, lines = _tiles(factors), factors.width, list[str]()
    columns = tiles.vectors * width
    if tiles.vectors:
        lines += [f"for j in range(0, n - {columns - 1}, {columns}):"]
        lines += _indented(_panel(factors, tiles, tiles.vectors, str(columns)), 4)
    if tiles.vectors_left:
        lines += [f"j = n - n % {columns}" if columns else "j = 0"]
        lines += _panel(factors, tiles, tiles.vectors_left, "n - j")
    lines = [f"for first in range(0, k, {DEPTH}):", *_indented([f"depth = min({DEPTH}, k - first)", *lines], 4)]
    if factors.transposed_b:
        size = max(tiles.vectors, tiles.vectors_left) * width * (DEPTH + width)
        lines = [f"panel = buffer(b, {size})", *lines]
    return "\n".join(_indented(lines, 4))


def _panel(factors: Factors, tiles: _Tiles, vectors: int, count: str) -> list[str]:
    """The lines for `count` columns from column j on."""
    width, lines = factors.width, list[str]()
    b, row_b = "shifted(b, first * row_b + j)", "row_b"
    if factors.transposed_b:
        b, row_b = "panel", str(vectors * width)
        source, target = "shifted(b, (j + q) * row_b + first + p)", f"shifted(panel, p * {row_b} + q)"
        lines += [
            f"for p in range(0, depth, {width}):",
            f"    for q in range(0, {count}, {width}):",
            f"        transposed_tile({source}, row_b, {count} - q, depth - p, {target}, {row_b})",
        ]
    row_a, column_a = ("1", "row_a") if factors.transposed_a else ("row_a", "1")

    def tile(rows: int) -> str:
        a, c = f"shifted(a, i * {row_a} + first * {column_a})", "shifted(c, i * row_c + j)"
        return (
            f"product_tile({rows}, {vectors}, {a}, {row_a}, {column_a}, {b}, {row_b}, {c}, row_c, depth, {count}, "
            "first > 0)"
        )

    lines += [f"for i in range(0, m - {tiles.rows - 1}, {tiles.rows}):", f"    {tile(tiles.rows)}"]
    if tiles.rows_left:  # in the last of the rows
        lines += [f"if m % {tiles.rows}:", f"    i = m - {tiles.rows_left}", f"    {tile(tiles.rows_left)}"]
    return lines


def _indented(lines: list[str], width: int) -> list[str]:
    return [" " * width + line for line in lines]
