"""The memory in which checked steps wait until they are proven together.

A step is kept whole: what it started from, its batch and random numbers, each tensor that is compared, the gradient
that the optimizer got, what the optimizer made. Arrays of one name lie one behind the other, (steps, ...), as torch
takes them.

The file is long because a step comes in as it is recorded, or copied while a plan runs, and all agree on one layout.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from nn_manual.arrays import Array, Shape, size_of
from nn_manual.check.many_steps.ring_memory import LARGEST_STEP, RingMemory
from nn_manual.check.step.plan import Plan, gradient_names
from nn_manual.check.step.proof import ours_of, sources_of
from nn_manual.check.step.recording import Recording
from nn_manual.check.twin.optimizers import State, state_of
from nn_manual.model import Sequential
from nn_manual.optim import Optimizer
from nn_manual.optim.scheduler_base import Scheduled

#: More aren't faster. On the smallest net a step takes 22 microseconds among 64 steps, and 18 among 256.
MOST_STEPS = 256
#: Fewer aren't worth their copies.
FEWEST_STEPS = 4

#: How many elements torch's loops over an array take at once. The rest at its end is computed by other functions, whose
#: last bits differ. So steps are proven in multiples that leave no rest: what is found of one then doesn't depend on
#: the others.
TOGETHER = 32
#: Never one step alone: for one, torch's batch normalization has a loop of its own.
FEWEST_ROWS = 2

#: torch's run of a step takes so many times the memory of the tensors that are compared: its values, what it keeps for
#: its backward, and what it adds up. Measured: 1.9 in the 64-64-10 net, 2.5 in 784-128-10, 1.8 in a net of ten layers.
OF_TORCH = 2.5

#: Arrays begin at multiples of so many bytes, a line of the processor's cache. A BLAS's last bits may differ with the
#: place in a line at which a product begins. So in each multiple of steps, a matrix's gradients fill whole lines, too.
ALIGNMENT = 64


class RowForm(NamedTuple):
    """The shape and dtype of one of the arrays that lie one behind the other."""

    shape: Shape
    dtype: np.dtype[Any]

    @property
    def num_bytes(self) -> int:
        """The bytes of one, up to where the next may begin."""
        size = size_of(self.shape) * self.dtype.itemsize
        return -(-size // ALIGNMENT) * ALIGNMENT


class Copy(NamedTuple):
    """An array that is copied, and a row for the copy of each step."""

    array: Array
    rows: Array


class Ring:
    """Room for up to `num_steps` steps of one plan, carved from `memory`, whose limit has room for torch's versions of
    these steps, too. There is none for a step that is too large, or where fewer steps fit than FEWEST_STEPS or than
    torch computes at once. There are rows for no more steps than wait at once.

    `tensors` has by name each tensor that forward and backward computed, (num_steps, ...). `before` is where the
    updates start from, (num_steps, parameters), and `grad` the gradient that they use. Where `with_updates` says that
    updates are to be proven, too, `after` is where they ended.
    """

    def __init__(
        self,
        plan: Plan,
        recorded: Recording,
        model: Sequential,
        optimizer: Optimizer,
        memory: RingMemory,
        *,
        with_updates: bool,
    ) -> None:
        self.plan, self._limit, self._model, self._optimizer = plan, memory.limit, model, optimizer
        self.with_updates = with_updates
        ours = ours_of(plan, recorded)
        arena = model.grad_arena
        of_parameters = {name for item in plan.items for name in gradient_names(item)[:-1]} | plan.sums.keys()
        #: The tensors that are views of the gradient arena, and where they lie in it.
        self.in_arena: dict[str, int] = {}
        self._packed: list[str] = []
        for quantity in (*plan.forward, *plan.backward):
            if quantity.name in of_parameters and np.may_share_memory(ours[quantity.name], arena):
                self.in_arena[quantity.name] = _offset(ours[quantity.name], arena)
            else:
                self._packed.append(quantity.name)
        sources = sources_of(plan, recorded)
        self._sources = [sources[name] for name in self._packed]
        self._shapes = [ours[name].shape for name in self._packed]
        forms = self._forms(recorded, sum(ours[name].size for name in self._packed))
        copied = sum(form.num_bytes for form in forms.values())
        #: The bytes that a step takes, with torch's versions of it: its tensors, and the update's state.
        self.num_bytes = copied + round(OF_TORCH * sum(ours[name].nbytes for name in (*self._packed, *self.in_arena)))
        self.num_bytes += sum(vector.nbytes for vector in state_of(optimizer).all) if with_updates else 0
        #: torch computes multiples of so many steps.
        outputs = (size_of(output_shape) for _, output_shape in plan.shapes.values())
        grads = (ours[quantity.name] for quantity in plan.backward)
        products = (grad.nbytes for grad in grads if grad.ndim > 1)
        self.multiple = max(
            FEWEST_ROWS, TOGETHER // math.gcd(TOGETHER, *outputs), ALIGNMENT // math.gcd(ALIGNMENT, *products)
        )
        num_fitting = memory.limit // self.num_bytes
        self.num_steps = min(MOST_STEPS, num_fitting - num_fitting % self.multiple)
        self._copied = copied
        if self.num_steps < FEWEST_STEPS or copied > LARGEST_STEP:
            self.num_steps = 0
        #: The rows, with those that torch computes beside the last steps.
        most = self.num_steps if memory.most is None else min(self.num_steps, memory.most)
        self.num_rows = most + -most % self.multiple
        self._arrays = self._carved(forms, memory.taken(self.num_rows * copied))
        self.tensors = self._views({name: ours[name].shape for name in self.in_arena})
        self.before = self._state("before")
        self.after = self._state("after") if with_updates else None
        self.grad = self._arrays["grad"]
        #: What a schedule may move, of the optimizer and its groups, in each step; how many steps it had made before;
        #: and the number of the model's step.
        self.scheduled: list[tuple[Scheduled, ...]] = [()] * self.num_rows
        self.num_updates, self.numbers = [0] * self.num_rows, [0] * self.num_rows

    def _forms(self, recorded: Recording, num_packed: int) -> dict[str, RowForm]:
        names = [f"{name} before" for name in ("param", *self._optimizer.vectors)]
        if self.with_updates:
            names += [f"{name} after" for name in ("param", *self._optimizer.vectors)]
        names.append("grad")
        forms = {"packed": RowForm((num_packed,), self.plan.dtype)}
        forms |= dict.fromkeys(names, RowForm(self._model.param_arena.shape, self.plan.dtype))
        return forms | {name: RowForm(array.shape, array.dtype) for name, array in _given(recorded).items()}

    def _state(self, when: str) -> State:
        vectors = {name: self._arrays[f"{name} {when}"] for name in self._optimizer.vectors}
        return State(self._arrays[f"param {when}"], vectors)

    def _carved(self, forms: dict[str, RowForm], memory: Array) -> dict[str, Array]:
        arrays, start = {}, 0
        for name, form in forms.items():
            stop = start + self.num_rows * form.num_bytes
            rows = memory[start:stop].reshape(self.num_rows, form.num_bytes)
            size = size_of(form.shape) * form.dtype.itemsize
            arrays[name] = rows[:, :size].view(form.dtype).reshape(self.num_rows, *form.shape)
            start = stop
        return arrays

    def _views(self, shapes: dict[str, Shape]) -> dict[str, Array]:
        views, start = {}, 0
        for name, shape in zip(self._packed, self._shapes, strict=True):
            views[name], start = self._part("packed", start, shape)
        for name, start in self.in_arena.items():
            views[name], _ = self._part("grad", start, shapes[name])
        return views

    def _part(self, name: str, start: int, shape: Shape) -> tuple[Array, int]:
        stop = start + size_of(shape)
        return self._arrays[name][:, start:stop].reshape(self.num_rows, *shape), stop

    @property
    def reason(self) -> str:
        """Why there is no room, where there is none."""
        step, memory = self.num_bytes / 1e6, self._limit / 1e6
        if self._copied > LARGEST_STEP:
            copied, most = self._copied / 1e6, LARGEST_STEP / 1e6
            return f"a step takes copies of {copied:,.1f} MB, and above {most:,.1f} MB that is faster"
        return f"fewer than {max(FEWEST_STEPS, self.multiple)} steps, of {step:.3g} MB each, fit into {memory:.3g} MB"

    def start(self, i: int, state: State, num_updates: int) -> None:
        """Keep what the `i`-th step starts from, and how many were made before it."""
        for rows, vector in zip(self.before.all, state.all, strict=True):
            rows[i] = vector
        self.num_updates[i] = num_updates

    def end(self, i: int, recorded: Recording) -> bool:
        """Keep what the `i`-th step computed, unless it has another form than the plan says."""
        given, packed = _given(recorded), [source() for source in self._sources]
        if [array.shape for array in packed] != self._shapes:
            return False
        for name, array in given.items():
            rows = self._arrays[name]
            if rows.shape[1:] != array.shape or rows.dtype != array.dtype:
                return False
            rows[i] = array
        np.concatenate(packed, axis=None, out=self._arrays["packed"][i])
        self.grad[i] = self._model.grad_arena
        if self.after is not None:
            for rows, vector in zip(self.after.all, state_of(self._optimizer).all, strict=True):
                rows[i] = vector
        if self._optimizer.num_steps != self.num_updates[i] + 1:
            return False
        self.scheduled[i] = tuple(member.scheduled for member in self._optimizer.members)
        self.numbers[i] = self._model.num_steps
        return True

    def copies(self, i: int, recorded: Recording) -> tuple[list[Copy], list[Copy]]:
        """What must be copied before and after each step that runs unwatched from the `i`-th on, in the memory of the
        one that is recorded: all but what it is given, and the loss.
        """
        assert self.after is not None  # updates are proven
        state = state_of(self._optimizer).all
        before = list(zip(state, self.before.all, strict=True))
        before += [(buffer, self.given_before(name)) for name, buffer in recorded.buffers.items()]
        after = list(zip(state, self.after.all, strict=True))
        sources = zip(self._packed, self._sources, strict=True)
        after += [(source(), self.tensors[name]) for name, source in sources if name != "loss"]
        after.append((self._model.grad_arena, self.grad))
        return [Copy(array, rows[i:]) for array, rows in before], [Copy(array, rows[i:]) for array, rows in after]

    def keep(self, i: int, given: Mapping[str, Array], losses: Array) -> None:
        """Keep the rest of steps that have just run from the `i`-th on, and of which `copies` were made."""
        rows = slice(i, i + len(losses))
        for name in self.given_names():
            if not name.endswith(BEFORE):
                self._arrays[name][rows] = given[name][: len(losses)]
        self.tensors["loss"][rows] = losses
        model, optimizer, count = self._model, self._optimizer, len(losses)
        self.scheduled[rows] = [tuple(member.scheduled for member in optimizer.members)] * count
        self.num_updates[rows] = range(optimizer.num_steps - count, optimizer.num_steps)
        self.numbers[rows] = range(model.num_steps - count + 1, model.num_steps + 1)

    def padded(self, start: int, stop: int) -> slice:
        """The rows that torch computes for the steps in these: they begin and end at multiples of as many as it takes
        at once. Beside the steps they repeat the first and the last of them.
        """
        first, end = start - start % self.multiple, stop + -stop % self.multiple
        for beside, own in ((slice(first, start), start), (slice(stop, end), stop - 1)):
            for rows in self._arrays.values():
                rows[beside] = rows[own]
            count = beside.stop - beside.start
            self.scheduled[beside] = [self.scheduled[own]] * count
            self.num_updates[beside] = [self.num_updates[own]] * count
        return slice(first, end)

    def given(self, name: str) -> Array:
        """What every step was given under this name: "input", "target", "0.noise.mask", "1.running_mean before"."""
        return self._arrays[name]

    def has(self, name: str) -> bool:
        """Whether a step has been given this, or has computed it."""
        return name in self.tensors or name in self._arrays

    def row(self, name: str, i: int) -> Array:
        """What the `i`-th step was given under this name, or has computed."""
        row: Array = (self.tensors[name] if name in self.tensors else self._arrays[name])[i, ...]
        return row

    def given_before(self, buffer: str) -> Array:
        """The values of a buffer before every step."""
        return self._arrays[f"{buffer}{BEFORE}"]

    def given_names(self) -> list[str]:
        """All names of `given`."""
        return [name for name in self._arrays if name in ("input", "target") or NOISE in name or name.endswith(BEFORE)]


NOISE, BEFORE = ".noise.", " before the step"


def _given(recorded: Recording) -> dict[str, Array]:
    """What a step was given beside the parameters: its batch, its random numbers, the buffers."""
    input, target = recorded.first.input, recorded.loss.target
    assert input is not None  # check_structure has seen them
    assert target is not None
    given = {"input": input, "target": target}
    for calls in recorded.layers:
        given |= {f"{calls.item.name}{NOISE}{name}": array for name, array in calls.noise.items()}
    return given | {f"{name}{BEFORE}": buffer for name, buffer in recorded.buffers_before.items()}


def _offset(view: Array, arena: Array) -> int:
    """Where a view of a flat vector begins in it."""
    address = view.__array_interface__["data"][0] - arena.__array_interface__["data"][0]
    offset: int = address // arena.itemsize
    return offset
