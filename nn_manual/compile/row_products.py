"""Products whose sums run along the rows of both factors, as an input with a weight's rows: a @ b.T, in own loops.

A BLAS copies both factors first, into the order in which its loops take them. Here that order is the one in which they
lie. So where the copies are much of the work, the loops are the faster ones: on an AMD EPYC, (64, 784) with (128, 784)
takes 0.7 of OpenBLAS's time.
"""

from __future__ import annotations

from nn_manual.compile.nests import Product
from nn_manual.compile.products import layout

#: Rows of a and rows of b whose sums run side by side: as vectors they fit into 16 registers.
ROWS_A, ROWS_B = 4, 3
#: Shorter sums are the BLAS's: adding up a vector at the end takes as long as the sum.
SHORTEST_SUM = 128
#: Copies take 1 / m + 1 / n of the time of a product (m, n), some constant times; above this they are worth avoiding.
LEAST_SHARE = 1 / 52

TEMPLATE = '''
@njit(error_model="numpy")
def kernel(a, row_a, b, row_b, c, row_c, m, n, k):
    no_overlap()
    for i in range(0, m, {rows_a}):
        i = min(i, m - {rows_a})  # some of the last rows twice
        for j in range(0, n, {rows_b}):
            j = min(j, n - {rows_b})
{begin}
            for l in range(k):
{add}
{end}


@cfunc("int64(CPointer(int64))", error_model="numpy", cache=True)
def entry(arguments):
    kernel(
        {dtype}_at(arguments[0]), arguments[1], {dtype}_at(arguments[2]), arguments[3],
        {dtype}_at(arguments[4]), arguments[5], arguments[6], arguments[7], arguments[8],
    )
    return 0
'''


def suits(leaf: Product) -> bool:
    """Whether a product is one of rows, and own loops are the faster ones."""
    a, b, c = (layout(access) for access in (*leaf.inputs, leaf.output))
    assert a is not None
    assert b is not None
    assert c is not None
    (m, _), (n, _) = leaf.output.span
    k = leaf.inputs[0].span[1][0]
    if a.is_transposed or not b.is_transposed or c.is_transposed or m < ROWS_A or n < ROWS_B:
        return False
    return k >= SHORTEST_SUM and 1 / m + 1 / n >= LEAST_SHARE


def text(dtype: str) -> str:
    """The kernel of these products: its arguments are a, its rows, b, its rows, c, its rows, m, n, k."""
    sums = [(r, s) for r in range(ROWS_A) for s in range(ROWS_B)]
    begin = [f"a_{r} = shifted(a, (i + {r}) * row_a)" for r in range(ROWS_A)]
    begin += [f"b_{s} = shifted(b, (j + {s}) * row_b)" for s in range(ROWS_B)]
    begin += [f"total_{r}_{s} = {dtype}(0.0)" for r, s in sums]
    add = [f"total_{r}_{s} = add_product_in_any_order(total_{r}_{s}, a_{r}[l], b_{s}[l])" for r, s in sums]
    end = [f"c[(i + {r}) * row_c + j + {s}] = total_{r}_{s}" for r, s in sums]
    return TEMPLATE.format(
        dtype=dtype, rows_a=ROWS_A, rows_b=ROWS_B,
        begin=_indented(begin, 12), add=_indented(add, 16), end=_indented(end, 12),
    )


def _indented(lines: list[str], width: int) -> str:
    return "\n".join(" " * width + line for line in lines)
