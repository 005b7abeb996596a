"""The trace of a training step: forward, loss, backward, buffers, clipping, update; or of a part of it."""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any, TypeAlias

import numpy as np

from nn_manual.arrays import Array
from nn_manual.errors import raise_if_nobodys_fault, words_of
from nn_manual.layers.base import Layer
from nn_manual.losses import Loss
from nn_manual.model import Sequential
from nn_manual.optim import Optimizer
from nn_manual.step.train_step import differentiate, update
from nn_manual.trace.comparing import check_same
from nn_manual.trace.proving import Recorded, check_replay, check_state, fingerprint
from nn_manual.trace.substitution import others
from nn_manual.trace.trace import CannotTrace, Trace
from nn_manual.trace.tracer import Tracer

#: See trace_step.
Observe: TypeAlias = Callable[
    [Sequential, Loss], AbstractContextManager[Callable[[Sequence[Any]], Mapping[str, Array]]]
]


def trace_step(
    model: Sequential,
    loss: Loss,
    optimizer: Optimizer,
    input: Array,
    target: Array,
    max_norm: float | None = None,
    observe: Observe | None = None,
) -> Trace:
    """The step that the optimizer makes next, on a batch of these shapes and dtypes; `max_norm` bounds the norm of the
    gradient. Nothing moves: the step is made on copies, and again on other values. There it must do the same
    operations, and the replay of the trace must give, bit for bit, what the step gives without a trace.

    What the step gets, by name: "param", "input", "target"; each vector of the optimizer ("momentum_buffer");
    "buffer" and "counters", flat; "0.noise.mask"; the coefficients of the update, of each group ("0.step_size"). What
    it writes: "param", "grad", the vectors, "buffer" and "counters". Its result: "loss".

    Other results are what `observe` wants: it gets the model and the loss that run, and makes the context in which
    forward and backward do; a function that comes with it then gives, of what the model saved, arrays of the step, by
    names.

    Raises CannotTrace where a formula branches on a value, uses an array that isn't the step's, or does in a step what
    it doesn't do in the next.
    """
    step = TracedStep(model, loss, optimizer, max_norm, observe)
    return _proven(step, given(step.model, step.optimizer, input, target))


def trace_slice(
    model: Sequential, loss: Loss, optimizer: Optimizer, input: Array, target: Array, observe: Observe | None = None
) -> Trace:
    """As `trace_step`, forward, loss and backward alone, of a slice of a batch: it writes "grad" and nothing that
    stays.
    """
    step = _TracedSlice(model, loss, optimizer, None, observe)
    return _proven(step, given(step.model, step.optimizer, input, target, with_update=False))


def trace_update(model: Sequential, loss: Loss, optimizer: Optimizer, max_norm: float | None = None) -> Trace:
    """As `trace_step`, clipping and update alone. It has no result."""
    step = _TracedUpdate(model, loss, optimizer, max_norm)
    arrays = {"param": step.model.param_arena, "grad": step.model.grad_arena} | _given_to_update(step.optimizer)
    return _proven(step, arrays)


def _proven(step: TracedStep, arrays: Mapping[str, Array]) -> Trace:
    """The trace of a step on these arrays, which holds for others."""
    generator = np.random.default_rng(0)
    changed = {name: others(name, array, generator) for name, array in arrays.items()}
    recorded = step.record(arrays)
    state = step.state()
    again = step.record(changed)
    check_same(recorded.trace, again.trace, recorded.origins)
    check_state(state, step.state())
    check_replay(recorded.trace, changed, step.plain(changed), lambda: step.record(changed, keeps_sums=True))
    return recorded.trace


def given(
    model: Sequential, optimizer: Optimizer, input: Array, target: Array, *, with_update: bool = True
) -> dict[str, Array]:
    """What the step that the optimizer makes next gets, by name: the arrays themselves, where there are any. Without
    an update, the optimizer's own are left out.
    """
    model.bind_noise(input.shape)
    buffer, counters = flat_buffers(model)
    arrays = {"param": model.param_arena, "grad": model.grad_arena, "input": input, "target": target}
    arrays |= {"buffer": buffer, "counters": counters}
    arrays |= {f"{name}.grad of this use": grad for name, grad in model.ties.use_grads.items()}
    for name, layer in model.descendants():
        if hasattr(layer, "noise"):
            arrays |= {f"{name}.noise.{key}": noise for key, noise in vars(layer.noise).items()}
    return arrays | (_given_to_update(optimizer) if with_update else {})


def _given_to_update(optimizer: Optimizer) -> dict[str, Array]:
    """The vectors, and the coefficients of the next step."""
    arrays = dict(optimizer.vectors)
    for i, part in enumerate(optimizer.parts):
        coefficients = part.rounded_coefficients(optimizer.num_steps + 1)
        arrays |= {f"{i}.{name}": coefficient.copy() for name, coefficient in coefficients.items()}
    return arrays


def flat_buffers(model: Sequential) -> tuple[Array, Array]:
    """The buffers of a model in its dtype and those that count, each kind as one vector."""
    buffers = vars(model.buffer)
    counts = {name: buffers[name] for name in model.counter_names()}
    values = {name: buffer for name, buffer in buffers.items() if name not in counts}
    return _flat(values, model.dtype), _flat(counts, np.dtype(np.int64))


class TracedStep:
    """A step of copies, made by a Tracer."""

    #: What makes the Tracer.
    tracer: Callable[..., Tracer] = Tracer

    def __init__(
        self,
        model: Sequential,
        loss: Loss,
        optimizer: Optimizer,
        max_norm: float | None,
        observe: Observe | None = None,
    ) -> None:
        try:
            self.model, self.loss, self.optimizer = copy.deepcopy((model, loss, optimizer))
        except BaseException as error:  # whatever a layer of the user's keeps
            raise_if_nobodys_fault(error)
            raise CannotTrace(f"the model can't be copied: {words_of(error)}") from error
        self.max_norm, self._observe = max_norm, observe or _unobserved
        #: What the model saved in the run under way, and what is wanted of it.
        self._saved: list[Any] = []
        self._observed: Callable[[Sequence[Any]], Mapping[str, Array]] = _nothing_of

    def record(self, arrays: Mapping[str, Array], *, keeps_sums: bool = False) -> Recorded:
        """The step on these arrays. What the copies keep from step to step, by themselves, goes on."""
        with self.tracer(self._owners(), keeps_sums=keeps_sums) as tracer:
            try:
                with self._watched_by(tracer):
                    results = self._run({name: tracer.give(name, array) for name, array in arrays.items()})
                tracer.check()
            except BaseException as error:
                raise_if_nobodys_fault(error)
                raise tracer.blamed(error) from error
            results |= self._observed(self._saved)
            return Recorded(tracer.trace(results), tracer.origins, tracer.sums)

    @contextmanager
    def _watched_by(self, tracer: Tracer) -> Iterator[None]:
        """In this context the tracer sees what the layers' methods return."""
        before = [(vars(layer), dict(vars(layer))) for _, layer in self.model.descendants()]
        for _, layer in self.model.descendants():
            vars(layer).update({name: tracer.watched(layer, name) for name in ("forward", "backward")})
        try:
            yield
        finally:
            for own, own_before in before:
                for name in ("forward", "backward"):
                    del own[name]
                    own.update({name: own_before[name]} if name in own_before else {})

    def plain(self, arrays: Mapping[str, Array]) -> dict[str, Array]:
        """What the arrays and the results are after the step, as it is without a trace."""
        copies = {name: array.copy() for name, array in arrays.items()}
        return copies | {name: np.asarray(result) for name, result in self._run(copies).items()}

    def _run(self, arrays: Mapping[str, Array]) -> dict[str, Any]:
        """Make the step on these arrays; returns its results."""
        with np.errstate(all="ignore"):  # of values that the step may never get
            self._bind_model(arrays)
            self._bind_optimizer(arrays)
            loss = self._differentiate(arrays, with_buffers=True)
            update(self.model, self.optimizer, self.max_norm)
            return {"loss": loss}

    def _differentiate(self, arrays: Mapping[str, Array], *, with_buffers: bool) -> Any:
        """Forward, loss and backward; returns the loss."""
        model, loss = self.model, self.loss
        with self._observe(model, loss) as self._observed:
            value, self._saved = differentiate(model, loss, arrays["input"], arrays["target"])
            if with_buffers:
                model.update_buffers(self._saved)
        return value

    def state(self) -> dict[str, bytes]:
        """What the layers, the loss and the optimizers keep besides arrays, by name."""
        parts = {**dict(self.model.descendants()), "loss": self.loss}
        parts |= {f"optimizer {i}": member for i, member in enumerate(self.optimizer.members) if i}
        return {
            f"{label} ({type(part).__name__}).{name}": fingerprint(value)
            for label, part in parts.items()
            for name, value in vars(part).items()
        }

    def _owners(self) -> dict[int, str]:
        labels: dict[int, str] = {id(self.loss): "loss", id(self.optimizer): "optimizer"}
        labels |= {id(self.model): "model", id(self.model.ties): "model"}
        labels |= {id(member): "optimizer" for member in self.optimizer.members}
        return labels | {id(layer): f"{name} ({type(layer).__name__})" for name, layer in self.model.descendants()}

    def _bind_model(self, arrays: Mapping[str, Array]) -> None:
        """Let the copy of the model work on these arrays."""
        model = self.model
        uses = {name: arrays[f"{name}.grad of this use"] for name in model.ties.use_grads}
        model.bind(arrays["param"], arrays["grad"], uses)
        model.bind_buffers(arrays["buffer"], arrays["counters"])
        for name, layer in ("", model), *model.descendants():
            _bind_noise(layer, name, arrays)
            if isinstance(layer, Sequential):
                layer.leave_input_as_it_is()

    def _bind_optimizer(self, arrays: Mapping[str, Array]) -> None:
        """The same of the optimizer."""
        optimizer = self.optimizer
        optimizer.vectors = {name: arrays[name] for name in optimizer.vectors}
        for i, part in enumerate(optimizer.parts):
            coefficients = {name: arrays[f"{i}.{name}"] for name in part.member.coefficients(1)}
            part.rounded_coefficients = functools.partial(_of_step, coefficients)  # type: ignore[method-assign]  # of a copy
            part.blocks = part.runs  # in one piece: the formulas are elementwise


class _TracedSlice(TracedStep):
    """Forward, loss and backward."""

    def _run(self, arrays: Mapping[str, Array]) -> dict[str, Any]:
        with np.errstate(all="ignore"):
            self._bind_model(arrays)
            return {"loss": self._differentiate(arrays, with_buffers=False)}


class _TracedUpdate(TracedStep):
    """Clipping and update."""

    def _run(self, arrays: Mapping[str, Array]) -> dict[str, Any]:
        with np.errstate(all="ignore"):
            self.model.bind(arrays["param"], arrays["grad"])
            self._bind_optimizer(arrays)
            update(self.model, self.optimizer, self.max_norm)
            return {}


@contextmanager
def _unobserved(model: Sequential, loss: Loss) -> Iterator[Callable[[Sequence[Any]], Mapping[str, Array]]]:  # noqa: ARG001
    yield _nothing_of


def _nothing_of(saved: Sequence[Any]) -> Mapping[str, Array]:  # noqa: ARG001 - nobody wants anything
    return {}


def _of_step(coefficients: Mapping[str, Array], step: int) -> Mapping[str, Array]:  # noqa: ARG001 - traced for one
    return coefficients


def _bind_noise(layer: Layer, name: str, arrays: Mapping[str, Array]) -> None:
    if hasattr(layer, "noise"):
        for key in vars(layer.noise):
            setattr(layer.noise, key, arrays[f"{name}.noise.{key}"])


def _flat(arrays: Mapping[str, Array], dtype: np.dtype[Any]) -> Array:
    return np.concatenate([np.ravel(array) for array in arrays.values()], dtype=dtype) if arrays else np.empty(0, dtype)
