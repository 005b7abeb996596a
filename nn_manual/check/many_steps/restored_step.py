"""A past step, restored from what a ring has kept of it: nothing runs again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import SimpleNamespace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from nn_manual.arrays import Array
from nn_manual.check.many_steps.ring import NOISE, Ring
from nn_manual.check.step.tree import Item
from nn_manual.check.twin.optimizers import state_of
from nn_manual.errors import GradientMismatch, NotFiniteError
from nn_manual.optim.scheduler_base import Scheduled

if TYPE_CHECKING:
    from nn_manual.check.whole_step.checker import GradientChecker


class Received(NamedTuple):
    """The names of what a layer gets: its input, which is the model's or the output of the layer before it, and its
    grad_output, which is the grad_input of the next layer, or that of the loss.
    """

    input: str
    grad_output: str


def received(chain: Sequence[Item], input: str, grad_output: str) -> Iterator[tuple[Item, Received]]:
    """What each layer of a chain gets, and each layer that it is made of. The chain gets `input` and `grad_output`."""
    for item, following in zip(chain, [*chain[1:], None], strict=True):
        yield item, Received(input, f"{following.name}.grad_input" if following else grad_output)
        for name, children in item.children.items():
            yield from received(children, f"{name}.input", f"{name}.grad_output")
        input = f"{item.name}.output"


class Past:
    """Goes back to the steps of a ring. It is made when the checker has recorded a step of their form: each past step
    is that recording, with its own arrays in place of that step's.
    """

    def __init__(self, checker: GradientChecker, ring: Ring) -> None:
        assert checker.optimizer is not None  # a trainer's checker has one
        self.checker, self.model, self.optimizer, self.ring = checker, checker.model, checker.optimizer, ring
        recorded, plan = checker.recorded, ring.plan
        self._calls = (*recorded.layers, recorded.loss)
        self._form = [dict(vars(calls)) for calls in self._calls]
        self._noisy = [calls for calls in recorded.layers if calls.noise]
        #: The names of what stands in each of the calls, by its attribute.
        self._places = {
            item.name: {**names._asdict(), "output": f"{item.name}.output", "grad_input": f"{item.name}.grad_input"}
            for item, names in received(plan.chain, "input", "loss.grad_prediction")
        }

    @contextmanager
    def restored(self, i: int) -> Iterator[None]:
        """The context in which the `i`-th step has just been made, and recorded. Where the ring doesn't keep what
        updates made, it is still to be updated. Everything ends where it is now, unless the step is wrong: then it
        stays as it was after that step.
        """
        model, optimizer, ring = self.model, self.optimizer, self.ring
        vectors = [model.param_arena, model.grad_arena, *optimizer.vectors.values(), *vars(model.buffer).values()]
        present = [vector.copy() for vector in vectors]
        numbers = model.num_steps, optimizer.num_steps, [member.scheduled for member in optimizer.members]
        noise = [calls.layer.noise for calls in self._noisy]
        attributes = [(watched, dict(vars(watched))) for watched in (*self._calls, self.checker.recorded)]
        is_wrong = False
        try:
            self._go_to(i)
            yield
        except (GradientMismatch, NotFiniteError) as error:
            is_wrong = True
            model.bind_noise(ring.given("input").shape[1:])  # the model has drawn those of a later step
            if not ring.with_updates:
                optimizer.num_steps = ring.num_updates[i]
                optimizer.step()  # once more, from where it began; a compiled step's, too, by the formulas
            if isinstance(error, GradientMismatch):
                input = self.checker.recorded.input
                assert input is not None  # the step is restored
                error.batch = input.copy(), ring.row("target", i).copy()
            raise
        finally:
            if not is_wrong:
                for vector, values in zip(vectors, present, strict=True):
                    vector[...] = values
                self._set_numbers(*numbers)
                for calls, namespace in zip(self._noisy, noise, strict=True):
                    calls.layer.noise = namespace
                for watched, before in attributes:
                    vars(watched).update(before)

    def _go_to(self, i: int) -> None:
        """To the end of the `i`-th step, or to before its update."""
        ring, model, checker = self.ring, self.model, self.checker
        assert checker.update is not None  # a trainer's checker has one
        before = ring.before.map(lambda rows: rows[i])
        checker.twin.anchor(before.param)
        for name, vector in before.vectors.items():
            checker.update.start.vectors[name][...] = vector
        checker.update.num_steps = ring.num_updates[i]
        for vector, rows in zip(state_of(self.optimizer).all, (ring.after or ring.before).all, strict=True):
            vector[...] = rows[i]
        model.grad_arena[...] = ring.grad[i]
        for name, buffer in vars(model.buffer).items():
            buffer[...] = ring.row(name, i)
        self._set_numbers(ring.numbers[i], ring.num_updates[i] + 1, ring.scheduled[i])
        self._record(i)

    def _record(self, i: int) -> None:
        """Make the `i`-th step the one that the checker has recorded."""
        ring, recorded, arrays = self.ring, self.checker.recorded, dict[str, Array]()
        for calls, form in zip(self._calls, self._form, strict=True):
            vars(calls).update(form)

        def then(name: str, like: Array) -> Array:
            """One array for each name: what a layer got is the very array that another one returned."""
            if name not in arrays:
                arrays[name] = np.empty_like(like)  # it lies in memory as that of the form does
                arrays[name][...] = ring.row(name, i)
            return arrays[name]

        for calls in recorded.layers:
            for attribute, name in self._places[calls.item.name].items():
                like = getattr(calls, attribute)
                if like is not None and ring.has(name):
                    setattr(calls, attribute, then(name, like))
            names = {key: f"{calls.item.name}.grad_{key}" for key in calls.grads}
            calls.grads = {
                key: grad if names[key] in ring.in_arena else then(names[key], grad)
                for key, grad in calls.grads.items()
            }
            calls.noise = {key: then(f"{calls.item.name}{NOISE}{key}", noise) for key, noise in calls.noise.items()}
        for calls in self._noisy:
            calls.layer.noise = SimpleNamespace(**calls.noise)
        loss, last = recorded.loss, self.ring.plan.chain[-1].name
        assert loss.target is not None  # the form is whole
        assert loss.grad_prediction is not None
        loss.value, loss.prediction = ring.row("loss", i).copy(), arrays[f"{last}.output"]
        loss.target = then("target", loss.target)
        loss.grad_prediction = then("loss.grad_prediction", loss.grad_prediction)
        recorded.buffers_before = {name: np.array(ring.given_before(name)[i]) for name in recorded.buffers}

    def _set_numbers(self, number: int, num_updates: int, scheduled: Sequence[Scheduled]) -> None:
        self.model.num_steps, self.optimizer.num_steps = number, num_updates
        for member, values in zip(self.optimizer.members, scheduled, strict=True):
            member.scheduled = values
