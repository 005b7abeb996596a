"""Program: a step as a list of calls, of kernels and of matrix products."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple, TypeAlias

import numpy as np

from nn_manual.arrays import Array
from nn_manual.compile import own_products
from nn_manual.compile.fusion import fused
from nn_manual.compile.kernels import Kernel
from nn_manual.compile.lowering import nests_of
from nn_manual.compile.nests import Access, External, Fence, Item, Product, collapse, leaves_of
from nn_manual.compile.operands import Operands
from nn_manual.compile.own_products import Factors, factors_of
from nn_manual.compile.parallel import Apart, apart, blas_apart, own_apart, product_name
from nn_manual.compile.products import layout
from nn_manual.compile.scalar import code
from nn_manual.compile.single_assignment import with_single_assignment, without_dead
from nn_manual.compile.workspace import ALIGNMENT, Life, offsets
from nn_manual.trace.trace import SourcePlace, Trace, TracedOperation, View


class Address(NamedTuple):
    """An address: `offset` bytes after the beginning of an entry of the table. It moves by `step` bytes from step to
    step.
    """

    entry: str
    offset: int = 0
    step: int = 0


Argument: TypeAlias = Address | int


class KernelCall(NamedTuple):
    """A call of a kernel: its text, or the name of one that all programs share (see driver.py), with the arguments.
    `is_product` says that it is one matrix product, and nothing else. `apart` says how its loop may be cut.
    """

    kernel: str
    arguments: tuple[Argument, ...]
    places: tuple[SourcePlace, ...]
    is_product: bool = False
    apart: Apart | None = None

    @property
    def title(self) -> str:
        """The formulas that the kernel was made of, one place per line."""
        return "\n".join(map(str, self.places))


class Program(NamedTuple):
    """What a plan runs. `calls` are calls of kernels, and operations that NumPy runs. The entries of the table are: the
    arrays that a step is given, "losses", "f4_gemm", "f8_gemm", "workspace" of `num_bytes`, and the `constants`.
    `sizes` has the bytes of each given array. `where` is the address of each storage. `results` are the views of the
    trace's results.
    """

    calls: list[KernelCall | External]
    constants: dict[str, Array]
    num_bytes: int
    sizes: dict[str, int]
    where: dict[int, Address]
    results: dict[str, View]

    @property
    def of_steps(self) -> set[str]:
        """The names of the arrays that each step is given anew."""
        return {name for name in self.sizes if is_of_step(name)}

    @property
    def kernels(self) -> dict[str, str]:
        """The texts of the kernels that must be compiled, each with the title of its first call."""
        calls = [call for call in self.calls if isinstance(call, KernelCall) and "\n" in call.kernel]
        return {call.kernel: call.title for call in reversed(calls)}

    @property
    def external(self) -> list[External]:
        """The operations that NumPy runs."""
        return [call for call in self.calls if isinstance(call, External)]


def is_of_step(name: str) -> bool:
    """Whether each step is given this array anew: its batch, its random numbers, its coefficients."""
    return name in ("input", "target") or ".noise." in name or bool(re.fullmatch(r"\d+\.\w+", name))


def program(trace: Trace) -> Program:
    """The program of a traced step in which a BLAS computes all products."""
    return lowered(trace).program()


def lowered(trace: Trace) -> Lowered:
    """A traced step as loops. A trace without a loss has no fence, so it never ends early."""
    trace = without_dead(with_single_assignment(trace))
    operands = Operands(trace)
    before, after = _around_fence(trace)
    leaves = [leaf for operation in before for leaf in nests_of(operands, operation)]
    if "loss" in trace.results:
        leaves.append(_fence(trace))
    leaves += [leaf for operation in after for leaf in nests_of(operands, operation)]
    items = [collapse(item) for item in fused(leaves)]
    return Lowered(trace, operands, items)


def _around_fence(trace: Trace) -> tuple[list[TracedOperation], list[TracedOperation]]:
    """The operations until the gradient is complete; and those that clip it and move parameters and states."""
    operations = trace.operations
    for i, operation in enumerate(operations):
        name = trace.storages[operation.output.storage].name
        stays = name and name != "grad" and "grad of this use" not in name
        if stays or operation.place.file.endswith("optim/clipping.py"):
            return operations[:i], operations[i:]
    return operations, []


def _fence(trace: Trace) -> Fence:
    byte = np.dtype(np.uint8)
    reads = [
        Access(i, 0, (), byte, ((storage.num_bytes, 1),))
        for i, storage in enumerate(trace.storages)
        if storage.name and storage.num_bytes and not is_of_step(storage.name)
    ]
    loss = trace.results["loss"]
    reads.append(Access(loss.storage, loss.offset, (), loss.dtype))
    return Fence(Access(-1, 0, (), byte), tuple(reads), trace.operations[-1])


class Lowered:
    """A step as loops. `program` makes calls of them."""

    def __init__(self, trace: Trace, operands: Operands, items: Sequence[Item]) -> None:
        self.trace, self.items, self.constants = trace, items, dict(operands.constants)
        self._own_products = False
        self.storages = operands.storages
        self.constants |= {i: each.initial for i, each in enumerate(self.storages) if each.initial is not None}
        #: The names of storages in kernels.
        self.names = {i: _short(storage.name) for i, storage in enumerate(self.storages) if storage.name}
        self.names |= dict.fromkeys(self.constants, "constant")
        self.unread = self._unread()

    def program(self, *, own_products: bool = False) -> Program:
        """The whole program. A BLAS computes products; with `own_products`, own loops do where they are faster."""
        self._own_products = own_products
        lives = self._lives()
        places, num_bytes = offsets(lives)
        self.where = {i: Address("workspace", place) for i, place in places.items()}
        self.where |= {i: Address(f"constant {i}") for i in self.constants}
        for i, storage in enumerate(self.storages):
            if storage.name:
                step = storage.num_bytes if is_of_step(storage.name) else 0
                self.where[i] = Address(storage.name, 0, step)
        calls = [self._call(item) for item in self.items]
        constants = {f"constant {i}": np.ascontiguousarray(value) for i, value in self.constants.items()}
        sizes = {each.name: each.num_bytes for each in self.storages if each.name and each.num_bytes}
        return Program(calls, constants, num_bytes + ALIGNMENT, sizes, self.where, self.trace.results)

    @cached_property
    def products(self) -> Counter[Factors]:
        """How often the step computes each kind of product."""
        products: Counter[Factors] = Counter()
        for leaf in (leaf for item in self.items for leaf in leaves_of(item)):
            if isinstance(leaf, Product):
                products[factors_of(leaf)] += math.prod(extent for extent, _ in leaf.output.dims)
        return products

    def _unread(self) -> set[int]:
        """The storages that nobody reads from memory: no kernel needs to write to them."""
        loaded = {view.storage for view in self.trace.results.values()} | self.constants.keys()
        loaded |= {i for i, storage in enumerate(self.storages) if storage.name}
        for item in self.items:
            if isinstance(item, External | Fence | Product):
                loaded |= {access.storage for access in (item.output, *item.inputs)}
            else:
                Kernel([item], self.names, set(), loaded).written()
        return set(range(len(self.storages))) - loaded

    def _lives(self) -> dict[int, Life]:
        """The life of each storage in the workspace: from the first item that uses it to the last."""
        lives: dict[int, Life] = {}
        for number, item in enumerate(self.items):
            used = {access.storage for leaf in leaves_of(item) for access in leaf.accesses}
            for i in used - self.unread - self.constants.keys() - {-1}:
                if not self.storages[i].name:
                    first = lives[i].first if i in lives else number
                    lives[i] = Life(self.storages[i].num_bytes, first, number)
        for view in self.trace.results.values():
            if view.storage in lives:
                lives[view.storage] = lives[view.storage]._replace(last=len(self.items))
        return lives

    def _call(self, item: Item) -> KernelCall | External:
        if isinstance(item, External):
            return item
        if isinstance(item, Fence):
            return self._check(item)
        places = tuple(dict.fromkeys(leaf.place for leaf in leaves_of(item)))
        if isinstance(item, Product):
            factors = factors_of(item)
            if self._own_products and own_products.suits(factors):
                return KernelCall(own_products.kernel(factors), self._product(item), places, True, own_apart(factors))
            return KernelCall(product_name(factors), self._product(item), places, True, blas_apart(factors))
        of_loop, is_own = apart(item), self._own_products
        kernel = Kernel([item], self.names, self.unread, set(), own_products=is_own, is_cut=bool(of_loop))
        written = kernel.written()
        pointers = (self._address(pointer.storage, pointer.offset) for pointer in written.pointers)
        arguments: list[Argument] = [*pointers, *written.integers, *map(Address, written.products)]
        return KernelCall(written.text, tuple(arguments), places, apart=of_loop)

    def _address(self, storage: int, offset: int) -> Address:
        where = self.where[storage]
        return where._replace(offset=where.offset + offset)

    def _product(self, leaf: Product) -> tuple[Argument, ...]:
        """The arguments: gemm, transposed a, transposed b, m, n, k, a, row_a, b, row_b, c, row_c."""
        a, b, c = (layout(access) for access in (*leaf.inputs, leaf.output))
        assert a is not None
        assert b is not None
        assert c is not None
        factors = factors_of(leaf)
        at_a, at_b, at_c = (self._address(each.storage, each.offset) for each in (*leaf.inputs, leaf.output))
        return (Address(f"{factors.dtype}_gemm"), *map(int, factors[1:]), at_a, a.row, at_b, b.row, at_c, c.row)

    def _check(self, fence: Fence) -> KernelCall:
        """The call that checks loss and gradient. Its arguments: losses, loss, gradient, size of the gradient."""
        loss = self.trace.results["loss"]
        gradient, size = Address("losses"), 0
        for storage in self.storages:
            if storage.name == "grad" and storage.num_bytes:
                gradient, size = Address("grad"), storage.num_bytes // loss.dtype.itemsize
        at_loss = self._address(loss.storage, loss.offset)
        arguments = Address("losses", 0, 8), at_loss, gradient, size
        return KernelCall(f"{code(loss.dtype)}_check", arguments, (fence.place,))


def _short(name: str) -> str:
    """The name in kernels of an array that the step is given."""
    if "grad of this use" in name:
        return "grad"
    return re.sub(r"\W", "_", name.rsplit(".", 1)[-1])
