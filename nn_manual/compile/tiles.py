"""The innermost parts of a product in own loops, on vectors: a tile of rows and columns, and a transposed tile."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from nn_manual.compile.intrinsics import Generate
from nn_manual.compile.own_products import vector_bytes

_I32, _I64 = ir.IntType(32), ir.IntType(64)


class _Vectors:
    """Vectors of numbers of one type: reads, writes, multiplies them."""

    def __init__(self, builder: Any, real: Any) -> None:
        self._builder, self._size = builder, 4 if real == ir.FloatType() else 8
        self.width = vector_bytes() // self._size
        self.type = ir.VectorType(real, self.width)
        self.zero = ir.Constant(self.type, None)
        self._suffix = f"v{self.width}f{8 * self._size}"

    def mask(self, count: Any) -> Any:
        """A mask of the first `count` numbers of a vector; of all, if `count` is that large or larger."""
        indices = ir.VectorType(_I64, self.width)
        counts = self._repeated(count, indices)
        return self._builder.icmp_signed("<", ir.Constant(indices, list(range(self.width))), counts)

    def load(self, pointer: Any, mask: Any = None) -> Any:
        """The numbers at a pointer, 0 where the mask is false."""
        place = self._builder.bitcast(pointer, self.type.as_pointer())
        if mask is None:
            return self._builder.load(place, align=self._size)
        function = self._function("masked.load", ".p0", self.type, [place.type, _I32, mask.type, self.type])
        return self._builder.call(function, [place, _I32(self._size), mask, self.zero])

    def store(self, numbers: Any, pointer: Any, mask: Any = None) -> None:
        """Write numbers to a pointer, where the mask is true."""
        place = self._builder.bitcast(pointer, self.type.as_pointer())
        if mask is None:
            self._builder.store(numbers, place, align=self._size)
            return
        function = self._function("masked.store", ".p0", ir.VoidType(), [self.type, place.type, _I32, mask.type])
        self._builder.call(function, [numbers, place, _I32(self._size), mask])

    def one(self, pointer: Any) -> Any:
        """The number at a pointer, in every place of a vector."""
        return self._repeated(self._builder.load(pointer), self.type)

    def multiply_add(self, a: Any, b: Any, c: Any) -> Any:
        """a * b + c, rounded once."""
        return self._builder.call(self._function("fma", "", self.type, [self.type] * 3), [a, b, c])

    def chosen(self, a: Any, b: Any, indices: list[int]) -> Any:
        """Numbers of a and b, by their indices in the two vectors put together."""
        return self._builder.shuffle_vector(a, b, ir.Constant(ir.VectorType(_I32, self.width), indices))

    def _repeated(self, number: Any, vector: Any) -> Any:
        first = self._builder.insert_element(ir.Constant(vector, ir.Undefined), number, _I32(0))
        return self.chosen(first, first, [0] * self.width)

    def _function(self, name: str, end: str, returns: Any, arguments: list[Any]) -> Any:
        name = f"llvm.{name}.{self._suffix}{end}"
        found = self._builder.module.globals.get(name)
        return found or ir.Function(self._builder.module, ir.FunctionType(returns, arguments), name)


@intrinsic(prefer_literal=True)
def product_tile(
    typing: Any, num_rows: Any, num_vectors: Any, a: Any, row_a: Any, column_a: Any, b: Any, row_b: Any,  # noqa: ARG001
    c: Any, row_c: Any, k: Any, count: Any, goes_on: Any,  # noqa: ARG001
) -> tuple[Any, Generate]:
    """`num_rows` rows and `count` columns of c = a @ b, or of c += a @ b if it `goes_on`. `num_vectors` vectors hold
    the columns of a row. row_a and column_a are the distances of two rows and of two columns of a; k is 1 or more. If
    `count` is a literal number, all vectors are full.
    """
    is_full = isinstance(count, types.IntegerLiteral)
    rows, vectors = range(num_rows.literal_value), range(num_vectors.literal_value)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        _, _, a, row_a, column_a, b, row_b, c, row_c, k, count, goes_on = arguments
        these = _Vectors(builder, context.get_value_type(signature.args[2].dtype))
        width, masks = these.width, [None for _ in vectors]
        if not is_full:
            masks[-1] = these.mask(builder.sub(count, _I64(vectors[-1] * width)))
        tile = [(r, v) for r in rows for v in vectors]
        places = {
            (r, v): builder.gep(c, [builder.add(builder.mul(row_c, _I64(r)), _I64(v * width))]) for r, v in tile
        }
        starts = [builder.mul(row_a, _I64(r)) for r in rows]
        before, loop, after = builder.block, *(builder.append_basic_block(name) for name in ("columns", "stored"))
        builder.branch(loop)
        builder.position_at_end(loop)
        column, at_a, at_b = (builder.phi(each.type) for each in (k, a, b))
        totals = {place: builder.phi(these.type) for place in tile}
        of_b = [these.load(builder.gep(at_b, [_I64(v * width)]), masks[v]) for v in vectors]
        of_a = [these.one(builder.gep(at_a, [start])) for start in starts]
        sums = {(r, v): these.multiply_add(of_a[r], of_b[v], totals[r, v]) for r, v in tile}
        following = builder.add(column, _I64(1)), builder.gep(at_a, [column_a]), builder.gep(at_b, [row_b])
        first = _I64(0), a, b
        for phi, at_first, then in (
            *zip((column, at_a, at_b), first, following, strict=True),
            *((totals[place], these.zero, sums[place]) for place in tile),
        ):
            phi.add_incoming(at_first, before)
            phi.add_incoming(then, loop)
        builder.cbranch(builder.icmp_signed("<", following[0], k), loop, after)
        builder.position_at_end(after)
        for r, v in tile:
            before_these = builder.select(goes_on, these.load(places[r, v], masks[v]), these.zero)
            these.store(builder.fadd(before_these, sums[r, v]), places[r, v], masks[v])
        return context.get_dummy_value()

    i8 = types.int64
    counted = count if is_full else i8
    return types.none(num_rows, num_vectors, a, i8, i8, a, i8, a, i8, i8, counted, types.boolean), generate


@intrinsic
def transposed_tile(
    typing: Any, a: Any, row_a: Any, num_rows: Any, num_columns: Any, b: Any, row_b: Any  # noqa: ARG001
) -> tuple[Any, Generate]:
    """Write the transposed of a square of a to b. The square has as many rows as a vector has numbers. a may have fewer
    rows and columns, at least 1; then b gets other numbers in the missing places.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        a, row_a, num_rows, num_columns, b, row_b = arguments
        these = _Vectors(builder, context.get_value_type(signature.args[0].dtype))
        last, mask = builder.sub(num_rows, _I64(1)), these.mask(num_columns)
        vectors = []
        for r in range(these.width):
            row = builder.select(builder.icmp_signed("<", _I64(r), last), _I64(r), last)
            vectors.append(these.load(builder.gep(a, [builder.mul(row_a, row)]), mask))
        half = 1
        while half < these.width:  # in each square of 2 * half rows, the two quarters off the diagonal swap
            lanes = range(these.width)
            upper = [these.width + (i ^ half) if i & half else i for i in lanes]
            lower = [these.width + i if i & half else i | half for i in lanes]
            for r in lanes:
                if not r & half:
                    pair = vectors[r], vectors[r + half]
                    vectors[r], vectors[r + half] = these.chosen(*pair, upper), these.chosen(*pair, lower)
            half *= 2
        for r, vector in enumerate(vectors):
            these.store(vector, builder.gep(b, [builder.mul(row_b, _I64(r))]))
        return context.get_dummy_value()

    i8 = types.int64
    return types.none(a, i8, i8, i8, a, i8), generate


@intrinsic(prefer_literal=True)
def buffer(typing: Any, like: Any, count: Any) -> tuple[Any, Generate]:  # noqa: ARG001
    """Memory for `count` numbers of a pointer's type, until the function returns."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:  # noqa: ARG001
        real = context.get_value_type(like.dtype)
        with builder.goto_entry_block():
            memory = builder.alloca(ir.ArrayType(real, count.literal_value))
        memory.align = 64  # a cache line
        return builder.bitcast(memory, real.as_pointer())

    return like(like, count), generate
