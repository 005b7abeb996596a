"""Kernels: nests of loops as Python functions, which numba compiles.

Addresses and sizes, except small ones, are arguments of the function. So nests that differ only in these, as the blocks
of a GPT do, are one function. Each piece of memory has one name in it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from nn_manual.compile.kernel_arguments import INDICES, KernelArguments, Pointer
from nn_manual.compile.nests import Access, Compute, Item, Loop, Product, leaves_of
from nn_manual.compile.own_products import factors_of, suits
from nn_manual.compile.own_products import name as own_name
from nn_manual.compile.own_products import text as own_text
from nn_manual.compile.products import layout
from nn_manual.compile.scalar import BOOL, COMBINED, cast, expression, literal

#: The arguments of a call lie one behind the other, as integers. A loop that may be cut runs from `first` to before
#: `last`.
TEMPLATE = """
@cfunc("int64(CPointer(int64), int64, int64)", error_model="numpy", cache=True)
def entry(arguments, first, last):
{body}
    return 0
"""


class Written(NamedTuple):
    """A kernel's text, and its arguments in their order: pointers, integers, and the addresses of products."""

    text: str
    pointers: tuple[Pointer, ...]
    integers: tuple[int, ...]
    products: tuple[str, ...]


class Kernel:
    """Writes the function of some items. `names` says what the text calls a storage. `unread` are the storages that
    nobody reads from memory. `loaded` gains the storages that the function reads. Products are calls of a BLAS or, with
    `own_products`, own loops where these are faster. `is_cut` says that the outermost loop runs in pieces.
    """

    def __init__(
        self, items: Sequence[Item], names: dict[int, str], unread: set[int], loaded: set[int],
        *, own_products: bool = False, is_cut: bool = False,
    ) -> None:
        self.items, self.unread, self.loaded = items, unread, loaded
        self._own_products, self._is_cut = own_products, is_cut
        leaves = [leaf for item in items for leaf in leaves_of(item)]
        self._arguments = KernelArguments(leaves, names, loaded)
        self._products: list[str] = []
        #: The functions of own products by their names.
        self._own: dict[str, str] = {}
        self._lines: list[str] = []
        self._num_values = 0

    def written(self) -> Written:
        """The function and its arguments."""
        self._body(self.items, 0, {})
        pointers, integers = self._arguments.pointers, self._arguments.integers
        dtypes: dict[tuple[int, int], set[str]] = {}
        for pointer in pointers:
            dtypes.setdefault(pointer[:2], set()).add(pointer.dtype)
        names = [*pointers.values(), *integers.values(), *self._products]
        pointer_to = "apart" if all(len(each) == 1 for each in dtypes.values()) else "at"
        values = [f"{pointer.dtype}_{pointer_to}(arguments[{i}])" for i, pointer in enumerate(pointers)]
        values += [f"arguments[{i}]" for i in range(len(values), len(names))]
        arguments = [f"    {name} = {value}" for name, value in zip(names, values, strict=True)]
        text = "".join(self._own.values()) + TEMPLATE.format(body="\n".join([*arguments, *self._lines]))
        return Written(text, tuple(pointers), tuple(integers), tuple(self._products))

    def _emit(self, level: int, text: str) -> None:
        self._lines.append("    " * (level + 1) + text)

    def _body(self, items: Sequence[Item], level: int, values: dict[Any, str]) -> None:
        for item in items:
            if isinstance(item, Loop):
                self._loop(item, level, values)
            elif isinstance(item, Product):
                self._product(item, level)
                _forget(values, item.output)
            else:
                assert isinstance(item, Compute)
                self._compute(item, level, values)

    def _loop(self, loop: Loop, level: int, values: dict[Any, str]) -> None:
        own = [
            leaf for leaf in loop.body
            if isinstance(leaf, Compute) and leaf.reduction and not leaf.output.dims[level][1]
        ]
        written = [leaf.output for leaf in leaves_of(loop)]
        for leaf in leaves_of(loop):
            if isinstance(leaf, Compute) and leaf.reduction and leaf not in own and leaf.first_reduced == level:
                self._fill(leaf, level)
        totals = {id(leaf): self._total(leaf, level) for leaf in own}
        inner = dict(values)
        for access in written:
            _forget(inner, access)
        extent = "first, last" if self._is_cut and not level else self._arguments.integer(loop.extent)
        self._emit(level, f"for {INDICES[level]} in range({extent}):")
        for item in loop.body:
            if id(item) in totals:
                assert isinstance(item, Compute)
                self._accumulate(item, level, totals[id(item)], inner)
            else:
                self._body([item], level + 1, inner)
        for access in written:
            _forget(values, access)
        for leaf in own:
            self._store(leaf.output, totals[id(leaf)], level, values)

    def _fill(self, leaf: Compute, level: int) -> None:
        """Write the initial value of a reduction into memory."""
        access, depth = leaf.output, level
        for i in range(level, len(access.dims)):
            extent, stride = access.dims[i]
            if stride:
                self._emit(depth, f"for {INDICES[i]} in range({self._arguments.integer(extent)}):")
                depth += 1
        self._emit(depth, f"{self._arguments.at(access)} = {literal(leaf.initial, access.dtype)}")

    def _total(self, leaf: Compute, level: int) -> str:
        """Start a variable for a reduction with its initial value; returns its name."""
        name = self._new("largest_" if leaf.reduction.startswith("arg") else "total_")
        if leaf.reduction.startswith("arg"):
            lowest = literal(-np.inf if leaf.reduction == "argmax" else np.inf, leaf.inputs[0].dtype)
            self._emit(level, f"{name}, {name}_at = {lowest}, 0")
            return name + "_at"
        if leaf.first_reduced == level:
            self._emit(level, f"{name} = {literal(leaf.initial, leaf.output.dtype)}")
        else:
            self._emit(level, f"{name} = {self._load(leaf.output, {})}")
        return name

    def _accumulate(self, leaf: Compute, level: int, total: str, values: dict[Any, str]) -> None:
        value = self._value(leaf, values)
        if leaf.reduction.startswith("arg"):
            best, sign = total.removesuffix("_at"), ">" if leaf.reduction == "argmax" else "<"
            name = self._new("value_")
            self._emit(level + 1, f"{name} = {value}")
            self._emit(level + 1, f"if {name} {sign} {best} or ({name} != {name} and {best} == {best}):")
            self._emit(level + 2, f"{best}, {total} = {name}, {INDICES[level]}")
            return
        self._emit(level + 1, f"{total} = {COMBINED[leaf.reduction].format(total, value)}")

    def _compute(self, leaf: Compute, level: int, values: dict[Any, str]) -> None:
        name = self._new("value_")
        self._emit(level, f"{name} = {self._value(leaf, values)}")
        if leaf.reduction:
            combined = COMBINED[leaf.reduction].format(self._load(leaf.output, values), name)
            name = self._new("value_")
            self._emit(level, f"{name} = {combined}")
        self._store(leaf.output, name, level, values)

    def _value(self, leaf: Compute, values: dict[Any, str]) -> str:
        """The value of a leaf, in the dtype of its output; for argmax and argmin in the dtype of the input."""
        rest, literals, operands = iter(leaf.inputs), dict(leaf.literals), []
        for i, dtype in enumerate(leaf.dtypes[:-1]):
            if i in literals:
                operands.append(literal(literals[i], dtype))
            else:
                access = next(rest)
                operands.append(cast(self._load(access, values), access.dtype, dtype))
        text = expression(leaf.function, operands, leaf.dtypes)
        if leaf.reduction.startswith("arg"):
            return text
        return cast(text, leaf.dtypes[-1], leaf.output.dtype)

    def _load(self, access: Access, values: dict[Any, str]) -> str:
        if access.key in values:
            return values[access.key]
        return self._arguments.value(access)

    def _store(self, access: Access, value: str, level: int, values: dict[Any, str]) -> None:
        _forget(values, access)
        if access.index is None:
            values[access.key] = value
        if access.storage not in self.unread:
            stored = f"u1({value})" if access.dtype == BOOL else value
            self._emit(level, f"{self._arguments.at(access)} = {stored}")

    def _product(self, leaf: Product, level: int) -> None:
        """c = a @ b."""
        parts = []
        for access in leaf.inputs:
            self.loaded.add(access.storage)
            its_layout = layout(access)
            assert its_layout is not None
            place = self._arguments.pointer_to(access), self._arguments.integer(its_layout.row)
            parts.append((int(its_layout.is_transposed), *place))
        (transpose_a, a, row_a), (transpose_b, b, row_b) = parts
        factors, own = factors_of(leaf), layout(leaf.output)
        assert own is not None
        dtype = factors.dtype
        if self._own_products and suits(factors):
            function = own_name(factors)
            self._own[function] = own_text(factors)
            c, row_c = self._arguments.pointer_to(leaf.output), self._arguments.integer(own.row)
            sizes = ", ".join(map(self._arguments.integer, factors[3:]))
            self._emit(level, f"{function}({a}, {row_a}, {b}, {row_b}, {c}, {row_c}, {sizes})")
            return
        name = f"{dtype}_gemm"
        if name not in self._products:
            self._products.append(name)
        sizes = ", ".join(map(self._arguments.integer, factors[3:]))
        c, row_c = self._arguments.pointer_to(leaf.output), self._arguments.integer(own.row)
        self._emit(
            level,
            f"{dtype}_product({name}, {transpose_a}, {transpose_b}, {sizes}, {a}, {row_a}, {b}, {row_b}, {dtype}(0), "
            f"{c}, {row_c})",
        )

    def _new(self, prefix: str) -> str:
        self._num_values += 1
        return f"{prefix}{self._num_values}"


def _forget(values: dict[Any, str], access: Access) -> None:
    """Forget the values of a storage that an access writes to."""
    for key in [key for key in values if key[0] == access.storage]:
        del values[key]
