"""The file that numba compiles: the kernels of a step, and the functions that call them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from nn_manual.compile.fusion import fused
from nn_manual.compile.kernels import Call, Kernel, Pointer
from nn_manual.compile.lowering import Lowering
from nn_manual.compile.nests import Access, External, Fence, Item, Leaf, Loop, Product, collapse, leaves_of
from nn_manual.compile.scalar import code
from nn_manual.compile.versions import with_versions, without_dead
from nn_manual.compile.workspace import ALIGNMENT, Life, offsets
from nn_manual.trace.operation import Operation, Trace, View

#: A kernel of more leaves takes longer to compile than two of half as many.
MOST_LEAVES = 40

HEADER = '''"""One training step, compiled: {summary}.

Written by nn_manual, for a BLAS whose integers have {integer_bits} bits.
"""

from numba import float32 as f4, float64 as f8, int8 as i1, int16 as i2, int32 as i4, int64 as i8
from numba import njit, uint8 as u1, uint16 as u2, uint32 as u4, uint64 as u8

from nn_manual.compile.elementary import *
from nn_manual.compile.intrinsics import *
from nn_manual.compile.intrinsics import f4_product_{integer_bits} as f4_product, f8_product_{integer_bits} as f8_product

INFINITY, NAN = float("inf"), float("nan")
'''


class Program(NamedTuple):
    """The text, and what its functions need.

    `entries` are what the table of addresses holds: the names of what the step is given, then "losses", "f4_gemm",
    "f8_gemm", "workspace", and the constants in their order. Of those in `of_steps` there is one for each step.
    `pieces` are the names of the functions, with operations that NumPy runs in their places.
    """

    text: str
    entries: list[str]
    of_steps: set[str]
    constants: list[Any]
    num_bytes: int
    pieces: list[str | Operation]
    #: Where in the workspace each storage lies, for NumPy's operations and for who looks.
    places: dict[int, int]
    storages: dict[int, str]
    #: What is left to NumPy, and why.
    external: list[External]
    views: dict[str, View]


def is_of_step(name: str) -> bool:
    """Whether a step is given another one than the step before."""
    return name in ("input", "target") or ".noise." in name or re.match(r"\d+\.", name) is not None and "grad of" not in name


def program(trace: Trace, integer_bits: int = 64) -> Program:
    """The source of a traced step, for a BLAS whose integers have so many bits."""
    trace = without_dead(with_versions(trace))
    lowering = Lowering(trace)
    before, after = _around_fence(trace)
    leaves: list[Leaf] = []
    for operation in before:
        leaves += lowering.leaves_of(operation)
    leaves.append(_fence(trace))
    for operation in after:
        leaves += lowering.leaves_of(operation)
    items = [collapse(item) for item in fused(leaves)]
    return _Writer(trace, lowering, items, integer_bits).program()


def _around_fence(trace: Trace) -> tuple[list[Operation], list[Operation]]:
    """The operations until the gradient is complete, and those that clip it and move what stays."""
    for i, operation in enumerate(trace.operations):
        name = trace.storages[operation.output.storage].name
        stays = name and name != "grad" and "grad of this use" not in name
        if stays or operation.place.file.endswith("optim/clipping.py"):
            return trace.operations[:i], trace.operations[i:]
    return trace.operations, []


def _fence(trace: Trace) -> Fence:
    size = np.dtype(np.uint8)
    reads = [
        Access(i, 0, (), size, ((storage.num_bytes, 1),))
        for i, storage in enumerate(trace.storages)
        if storage.name and storage.num_bytes and not is_of_step(storage.name)
    ]
    loss = trace.results["loss"]
    reads.append(Access(loss.storage, loss.offset, (), loss.dtype))
    return Fence(Access(-1, 0, (), size), tuple(reads), trace.operations[-1])


class _Writer:
    def __init__(self, trace: Trace, lowering: Lowering, items: list[Item], integer_bits: int) -> None:
        self.trace, self.lowering, self.items, self.integer_bits = trace, lowering, items, integer_bits
        self.storages = lowering.storages
        self.groups = _groups(items)
        #: What kernels call the storages.
        self.names = {i: _short(storage.name) for i, storage in enumerate(self.storages) if storage.name}
        self.names |= dict.fromkeys(lowering.constants, "constant")
        self.kernels: dict[str, str] = {}
        self.comments: dict[str, list[str]] = {}

    def program(self) -> Program:
        calls = self._calls()
        lives = self._lives()
        places, num_bytes = offsets(lives)
        self.entries = [storage.name for storage in self.storages if storage.name and storage.num_bytes]
        self.of_steps = {name for name in self.entries if is_of_step(name)}
        constants = list(self.lowering.constants)
        initials = [i for i, storage in enumerate(self.storages) if storage.initial is not None]
        self.address = {
            i: f"s{self.entries.index(storage.name)}"
            for i, storage in enumerate(self.storages) if storage.name and storage.num_bytes
        }
        self.entries += ["losses", "f4_gemm", "f8_gemm", "workspace"]
        for n, i in enumerate([*constants, *initials]):
            self.address[i] = f"c{n}"
            self.entries.append(f"constant {n}")
        for i, place in places.items():
            self.address.setdefault(i, f"workspace + {place}" if place else "workspace")
        pieces, bodies = self._pieces(calls)
        text = HEADER.format(summary=f"{len(self.trace.operations)} operations of NumPy", integer_bits=self.integer_bits)
        for kernel, name in self.kernels.items():
            places_of = "\n".join(f"    # {line}" for line in self.comments[name])
            head, *rest = kernel.split("\n")
            text += f'\n\n@njit(error_model="numpy")\ndef {name}{head}\n{places_of}\n' + "\n".join(rest) + "\n"
        text += "".join(bodies)
        storages = {i: address for i, address in self.address.items()}
        external = [leaf for item in self.items for leaf in leaves_of(item) if isinstance(leaf, External)]
        values = [self.lowering.constants[i] for i in constants] + [self.storages[i].initial for i in initials]
        return Program(
            text, self.entries, self.of_steps, values, num_bytes + ALIGNMENT, pieces, places, storages, external,
            self.trace.results,
        )

    def _calls(self) -> list[Call | Leaf]:
        """The kernels, of which none stores what nobody reads."""
        always = {view.storage for view in self.trace.results.values()}
        always |= {i for i, storage in enumerate(self.storages) if storage.name or storage.initial is not None}
        for item in self.items:
            if isinstance(item, Product | External | Fence):
                always |= {access.storage for access in item.inputs}
        loaded: set[int] = set()
        for group in self.groups:
            if not isinstance(group, Leaf):
                Kernel(group, self.names, set(), loaded).call()
        #: The storages that lie in memory.
        self.kept = loaded | always
        unread = set(range(len(self.storages))) - self.kept
        return [
            group if isinstance(group, Leaf) else Kernel(group, self.names, unread, set()).call()
            for group in self.groups
        ]

    def _lives(self) -> dict[int, Life]:
        lives: dict[int, Life] = {}
        for number, group in enumerate(self.groups):
            for item in [group] if isinstance(group, Leaf) else group:
                for leaf in leaves_of(item):
                    for access in leaf.accesses:
                        i = access.storage
                        written_unread = i not in self.kept and not isinstance(leaf, Product | External)
                        if i < 0 or self.storages[i].name or i in self.lowering.constants or written_unread:
                            continue
                        if self.storages[i].initial is not None:
                            continue
                        first = lives[i].first if i in lives else number
                        lives[i] = Life(self.storages[i].num_bytes, first, number)
        for view in self.trace.results.values():
            if view.storage in lives:
                lives[view.storage] = lives[view.storage]._replace(last=len(self.groups))
        return lives

    def _pieces(self, calls: Sequence[Call | Leaf]) -> tuple[list[str | Operation], list[str]]:
        pieces: list[str | Operation] = []
        bodies: list[str] = []
        lines: list[str] = []

        def close() -> None:
            if lines:
                pieces.append(f"piece_{len(bodies)}")
                bodies.append(self._piece(f"piece_{len(bodies)}", lines))
                lines.clear()

        for call in calls:
            if isinstance(call, External):
                close()
                pieces.append(call.operation)
            elif isinstance(call, Fence):
                lines.extend(self._check(call))
            elif isinstance(call, Product):
                lines.append(self._product(call))
            else:
                assert isinstance(call, Call)
                lines.append(self._kernel(call))
        close()
        return pieces, bodies

    def _piece(self, name: str, lines: list[str]) -> str:
        options = '"int64(int64, int64, int64)", error_model="numpy", cache=True'
        text = f"\n\n@njit({options})\ndef {name}(first, last, table):\n"
        text += "    addresses = i8_at(table)\n"
        used = "\n".join(lines)
        aliases = self._aliases()
        for alias, number, size in aliases:
            if not size and re.search(rf"\b{alias}\b", used):
                text += f"    {alias} = addresses[{number}]\n"
        text += "    for step in range(first, last):\n"
        for alias, number, size in aliases:
            if size and re.search(rf"\b{alias}\b", used):
                text += f"        {alias} = addresses[{number}] + step * {size}\n"
        text += "".join(f"        {line}\n" for line in lines)
        return text + "    return last\n"

    def _aliases(self) -> list[tuple[str, int, int]]:
        """The variables of addresses: name, number in the table, and the bytes between two steps."""
        sizes = {storage.name: storage.num_bytes for storage in self.storages if storage.name}
        aliases = []
        constant = 0
        for number, entry in enumerate(self.entries):
            if entry in sizes:
                aliases.append((f"s{number}", number, sizes[entry] if entry in self.of_steps else 0))
            elif entry.startswith("constant "):
                aliases.append((f"c{constant}", number, 0))
                constant += 1
            else:
                aliases.append((entry, number, 8 if entry == "losses" else 0))
        return aliases

    def _kernel(self, call: Call) -> str:
        if call.text not in self.kernels:
            name = f"kernel_{len(self.kernels)}"
            self.kernels[call.text] = name
            self.comments[name] = list(dict.fromkeys(str(leaf.place) for leaf in call.leaves))
        pointers = [f"{each.dtype}_at({self._place(each)})" for each in call.pointers]
        return f"{self.kernels[call.text]}({', '.join([*pointers, *map(str, call.integers), *call.products])})"

    def _place(self, pointer: Pointer) -> str:
        address = self.address[pointer.storage]
        return f"{address} + {pointer.offset}" if pointer.offset else address

    def _product(self, leaf: Product) -> str:
        """As in a kernel, with addresses in the place of pointers."""
        call = Kernel([leaf], self.names, set(), set()).call()
        line = call.text.split("\n")[-1].strip()
        head = re.match(r"\((.*)\):", call.text)
        assert head is not None
        values = [f"{each.dtype}_at({self._place(each)})" for each in call.pointers]
        values += [*map(str, call.integers), *call.products]
        for name, value in zip(head.group(1).split(", "), values, strict=True):
            line = re.sub(rf"\b{name}\b", value, line)
        return f"{line}  # {leaf.place}"

    def _check(self, fence: Fence) -> list[str]:
        lines = []
        loss = self.trace.results["loss"]
        dtype = code(loss.dtype)
        value = f"{dtype}_at({self._place(Pointer(loss.storage, loss.offset, dtype))})"
        lines.append(f"f8_at(losses)[0] = {value}[0]")
        conditions = [f"all_finite({value}, 1)"]
        for i, storage in enumerate(self.storages):
            if storage.name == "grad" and storage.num_bytes:
                conditions.append(f"all_finite({dtype}_at({self.address[i]}), {storage.num_bytes // loss.dtype.itemsize})")
        lines.append(f"if not ({' and '.join(conditions)}):")
        return [*lines, "    return step"]


def _short(name: str) -> str:
    """What kernels call an array that the step is given."""
    if "grad of this use" in name:
        return "grad"
    return re.sub(r"\W", "_", name.rsplit(".", 1)[-1])


def _groups(items: Sequence[Item]) -> list[list[Item] | Leaf]:
    """Items that one kernel may have, and leaves that stand alone."""
    groups: list[list[Item] | Leaf] = []
    count = 0
    for item in items:
        if isinstance(item, Product | External | Fence):
            groups.append(item)
            continue
        size = sum(1 for _ in leaves_of(item))
        if groups and isinstance(groups[-1], list) and count + size <= MOST_LEAVES:
            groups[-1].append(item)
            count += size
        else:
            groups.append([item])
            count = size
    return groups


__all__ = ["Loop", "Program", "program"]
