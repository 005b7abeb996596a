"""Plan: a training step as machine code. It runs many steps in one call."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from nn_manual.arrays import Array
from nn_manual.compile.blas import Blas
from nn_manual.compile.gathering import BATCH, Rows, gather_of, with_rows
from nn_manual.compile.nests import External
from nn_manual.compile.program import Address, KernelCall, Program
from nn_manual.compile.step_copies import COPY, Copies, with_copies
from nn_manual.compile.workspace import ALIGNMENT
from nn_manual.layers.composite import counter_names
from nn_manual.messages.text import counted
from nn_manual.model import Sequential
from nn_manual.optim import Optimizer
from nn_manual.trace.numpy_replay import run_operation
from nn_manual.trace.trace import View

#: A loop is cut into so many pieces for each thread: a thread that comes late leaves pieces to the others.
PIECES = 2


class Done(NamedTuple):
    """The losses of the steps that were made. If these are fewer than were asked for, the loss or the gradient of the
    next step isn't finite: that step has written its gradient, and moved nothing.
    """

    losses: Array
    num_steps: int


class Plan:
    """Runs steps of one shape on the model's own memory. See compile_step.

    `reasons` says, for each operation that NumPy runs, why it isn't compiled. Products are own loops or calls of
    `blas`. A large call is cut into as many pieces as there are `threads`, each of which a thread computes by itself.
    Long loops run on `loop_threads` threads.
    """

    def __init__(
        self, model: Sequential, optimizer: Optimizer, made: Program, kernels: Any, blas: Blas, threads: int,
        loop_threads: int = 1, gather: str = "",
    ) -> None:
        from nn_manual.compile import driver
        from nn_manual.compile.pool import helping

        self.model, self.optimizer, self.program, self.blas, self.threads = model, optimizer, made, blas, threads
        self.kernels, self._run, self.loop_threads = kernels, driver.run, loop_threads
        of_calls = [self._pieces(call) for call in made.calls if isinstance(call, KernelCall)]
        is_cut = any(size < extent for extent, size in of_calls)
        #: How many threads run it, and what lets them help.
        self._num_threads, self._helping = max(threads, loop_threads) if is_cut else 1, helping
        self.reasons = [f"{each.place}: {each.reason}" for each in made.external]
        self._workspace = _aligned(made.num_bytes)
        names = ["", *made.sizes, "losses", "f4_gemm", "f8_gemm", "workspace", *made.constants]
        #: The numbers of the table's entries, by name. Entry 0 is the address 0, for arguments that aren't addresses.
        self._numbers = {name: number for number, name in enumerate(names)}
        self._segments, arguments = self._linked(driver.text_of)
        addresses = [each if isinstance(each, Address) else Address("", each) for each in arguments]
        self._entries = np.array([self._numbers[each.entry] for each in addresses], np.int64)
        self._offsets = np.array([each.offset for each in addresses], np.int64)
        steps = np.array([each.step for each in addresses], np.int64)
        self._moving = np.flatnonzero(steps)
        self._steps = steps[self._moving]
        #: The arrays that each step is given anew: by name, the number of bytes for one step.
        self.of_steps = {name: made.sizes[name] for name in made.of_steps}
        #: The kernel that puts a step's batch together, the memory for the batch, and which moving arguments read it.
        self._gather, self._gather_address = gather, kernels.address(gather, BATCH) if gather else 0
        self._batch = _aligned(self.of_steps.get("input", 0))
        self._is_of_input = self._entries[self._moving] == self._numbers.get("input", -1)
        self._wanted = set(made.results.values())
        self._first_buffers = first_buffers(model)
        #: The plan's own memory by name, and the addresses of all entries of the table.
        self._own = {"workspace": self._workspace, **made.constants}
        self._bases = np.zeros(len(names), np.int64)
        self._bases[self._numbers["f4_gemm"]], self._bases[self._numbers["f8_gemm"]] = blas.sgemm, blas.dgemm
        #: The arrays at views, each with its address: most stay where they were in the step before.
        self._views: dict[View, tuple[int, Array]] = {}
        self._stays = {*self._own, *self._persistent()}
        self._addresses: dict[str, tuple[Array, int]] = {}

    def _linked(self, text_of: Callable[[str], str]) -> tuple[list[Array | External], list[Address | int]]:
        """The operations that NumPy runs, with the calls between them; and the arguments of all calls."""
        segments: list[Array | External] = []
        calls: list[tuple[int, int, int, int]] = []
        arguments: list[Address | int] = []
        for call in self.program.calls:
            if isinstance(call, External):
                if calls:
                    segments.append(np.array(calls, np.int64))
                segments.append(call)
                calls = []
                continue
            address = self.kernels.address(text_of(call.kernel), call.title)
            calls.append((address, len(arguments), *self._pieces(call)))
            arguments += call.arguments
        if calls:
            segments.append(np.array(calls, np.int64))
        return segments, arguments

    def _pieces(self, call: KernelCall) -> tuple[int, int]:
        """The extent of the call's loop, and the size of its pieces."""
        if call.apart is None:
            return 1, 1
        count = 1 if self.loop_threads == 1 else PIECES * self.loop_threads
        return call.apart.extent, call.apart.size(self.threads if call.apart.moves_bits else count)

    def run(
        self, inputs: Array | Rows, targets: Array, of_steps: Mapping[str, Array], copies: Copies | None = None
    ) -> Done:
        """Run steps on these batches; both arrays are (steps, ...). `of_steps` has the coefficients of the updates,
        (steps,), and the random numbers, (steps, ...), by their names in the trace. All arrays are contiguous. `copies`
        need a plan that `may_copy`, and Rows one that `may_gather`.
        """
        num_steps = len(inputs)
        losses = np.empty(num_steps)
        given = {"input": self._batch if isinstance(inputs, Rows) else inputs, "target": targets, **of_steps}
        for name, num_bytes in self.of_steps.items():
            wanted = num_bytes if given[name] is self._batch else num_steps * num_bytes
            if not given[name].flags.c_contiguous or given[name].nbytes != wanted:
                raise ValueError(f"{name} takes {wanted} contiguous bytes for {counted(num_steps, 'step')}")
        arrays = self._persistent() | self._own | given | {"losses": losses}
        for name, array in arrays.items():
            if name in self._numbers:
                self._bases[self._numbers[name]] = self._address(name, array)
        arguments = self._bases[self._entries] + self._offsets
        moving = np.stack([self._moving, arguments[self._moving], self._steps], axis=1)
        segments = self._segments
        if copies is not None:
            (own,) = segments
            assert not isinstance(own, External)
            calls, moving, arguments = with_copies(copies, self.kernels.address(COPY, "a copy"), own, moving, arguments)
            segments = [calls]
        if isinstance(inputs, Rows):
            (own,) = segments
            assert not isinstance(own, External)
            moving = moving[~self._is_of_input]
            calls, moving, arguments = with_rows(inputs, self._batch, self._gather_address, own, moving, arguments)
            segments = [calls]
        with self.blas.threads(1), self._helping(self._num_threads) as control:
            done = self._steps_of(segments, num_steps, moving, arguments, arrays, control)
        return Done(losses[:done], done)

    def may_copy(self, copies: Copies) -> bool:
        """Whether a run is one call, and each of these arrays lies in one piece in memory that stays from call to call.
        """
        own = [*self._own.values(), *self._persistent().values()]
        return len(self._segments) == 1 and all(
            array.flags.c_contiguous and any(np.may_share_memory(array, each) for each in own)
            for array, _ in (*copies.before, *copies.after)
        )

    def may_gather(self, examples: Array) -> bool:
        """Whether a run is one call, and each of these examples, which may overlap, lies in one piece."""
        is_whole = examples[0].flags.c_contiguous and examples.strides[0] % examples.itemsize == 0
        return is_whole and gather_of(examples[0]) == self._gather and len(self._segments) == 1

    def results(self, inputs: Array, targets: Array, of_steps: Mapping[str, Array]) -> dict[str, Array]:
        """The results of the last step, by name, as views. Call it after a `run` of these batches."""
        arrays = self._persistent() | self._own | {"input": inputs, "target": targets, **of_steps}
        views = {view: self._view(view, arrays, len(inputs) - 1) for view in self._wanted}
        return {name: views[view] for name, view in self.program.results.items()}  # names with one view share an array

    def _persistent(self) -> dict[str, Array]:
        """As `persistent`."""
        return persistent(self.model, self.optimizer, self._first_buffers)

    def _steps_of(
        self, segments: list[Array | External], num_steps: int, moving: Array, arguments: Array,
        arrays: Mapping[str, Array], control: int,
    ) -> int:
        def run(first: int, last: int, calls: Array) -> int:
            own = calls.ctypes.data, len(calls), moving.ctypes.data, len(moving), arguments.ctypes.data
            done: int = self._run(first, last, *own, control)
            return done

        if len(segments) == 1:
            (calls,) = segments
            assert not isinstance(calls, External)
            return run(0, num_steps, calls)
        for step in range(num_steps):
            for segment in segments:
                if isinstance(segment, External):
                    run_operation(segment.operation, lambda view: self._view(view, arrays, step))  # noqa: B023 - called at once
                elif run(step, step + 1, segment) == step:
                    return step
        return num_steps

    def _view(self, view: View, arrays: Mapping[str, Array], step: int) -> Array:
        """The array at a view of a storage."""
        where = self.program.where[view.storage]
        given, place = arrays[where.entry], where.offset + step * where.step
        if where.entry not in self._stays:  # the view keeps it alive, as long as somebody has the view
            return np.ndarray(view.shape, view.dtype, given, place + view.offset, view.strides)
        start = self._address(where.entry, given) + place
        before, array = self._views.get(view, (0, None))
        if array is None or start != before:
            memory: Any = (ctypes.c_uint8 * (view.offset + _extent(view))).from_address(start)
            array = np.ndarray(view.shape, view.dtype, memory, view.offset, view.strides)
            self._views[view] = start, array
        return array

    def _address(self, name: str, array: Array) -> int:
        """The address of an array. NumPy takes longer to say it than a small loop runs, so addresses that stay are
        kept.
        """
        before, address = self._addresses.get(name, (None, 0))
        if before is not array:
            address = array.ctypes.data
            if name in self._stays:
                self._addresses[name] = array, address
        return address


def _aligned(num_bytes: int) -> Array:
    """Memory of so many bytes, aligned so that vectors are read fastest."""
    memory = np.zeros(num_bytes + ALIGNMENT, np.uint8)
    return memory[-memory.ctypes.data % ALIGNMENT :][:num_bytes]


def _extent(view: View) -> int:
    """The number of bytes from the first element of a view to its end."""
    spans = ((extent - 1) * stride for extent, stride in zip(view.shape, view.strides, strict=True))
    return sum(max(0, span) for span in spans) + view.dtype.itemsize


def first_buffers(model: Sequential) -> dict[str, str]:
    """The first buffer of each kind, "buffer" and "counters": the others of its kind lie behind it."""
    counts, buffers = counter_names(model), list(vars(model.buffer))
    kinds = {"buffer": [name for name in buffers if name not in counts], "counters": list(counts)}
    return {kind: names[0] for kind, names in kinds.items() if names}


def persistent(model: Sequential, optimizer: Optimizer, first_buffers: Mapping[str, str]) -> dict[str, Array]:
    """The arrays that stay from step to step, by their names in a trace."""
    arrays = {"param": model.param_arena, "grad": model.grad_arena, **optimizer.vectors}
    arrays |= {f"{name}.grad of this use": grad for name, grad in model.ties.use_grads.items()}
    return arrays | {kind: vars(model.buffer)[name] for kind, name in first_buffers.items()}
