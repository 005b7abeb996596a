"""The checks for notebooks: of a class or an operation, and of the gradients of a net that is derived line by line."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import FunctionType
from typing import Any

import numpy as np

from nn_manual import ops
from nn_manual.arrays import Array
from nn_manual.check.compare.tolerances import SUM_OF_PRODUCTS
from nn_manual.check.judge.diagnosis import describe_difference
from nn_manual.errors import ConfigError
from nn_manual.exercises.kinds.every_exercise import every_exercise, find_exercise
from nn_manual.exercises.kinds.exercise import Exercise
from nn_manual.exercises.running.answer import Answer, Failure
from nn_manual.exercises.running.jacobians import beside_the_true_one, first_wrong
from nn_manual.exercises.running.reference import reference
from nn_manual.exercises.running.solving import results_of, unfit
from nn_manual.exercises.running.unused import unused_methods
from nn_manual.exercises.verdicts.judging import judge
from nn_manual.exercises.verdicts.verdict import Verdict
from nn_manual.messages import notebook
from nn_manual.messages.text import counted, one_line, wrapped


def check(own: Any, exercise: str = "") -> Verdict:
    """The verdict on a class that derives from one of the package's, on an operation, or on the function `whole_net`: a
    table in a notebook.

    The exercise is that of the class's base, whatever the class is called. An operation, and a function, is that of its
    own name, or of the name given. Raises ConfigError where this is no exercise.
    """
    chosen = find_exercise(exercise) if exercise else _exercise_of(own)
    right = reference(chosen)
    label = str(getattr(own, "__name__", chosen.title))
    if problem := unfit(chosen, own):
        return judge(right, Answer(problem=Failure(problem)), label)
    function = own.rule if isinstance(own, ops.Operation) else getattr(own, chosen.taken_out[0], own)
    with unused_methods(chosen, own) as unused:
        results = results_of(right.cases, own, function.__code__.co_filename)
    verdict = judge(right, Answer.from_bytes(Answer(results, unused=unused).to_bytes()), label)
    found = first_wrong(chosen, right.cases, own, verdict.first_wrong) if verdict.first_wrong else None
    if found is None:
        return verdict
    return replace(verdict, jacobians=beside_the_true_one(chosen, right.cases, found, verdict.first_wrong))


def _exercise_of(own: Any) -> Exercise:
    exercises = every_exercise().exercises
    if isinstance(own, ops.Operation | FunctionType):
        return find_exercise(own.__name__)
    by_owner = {exercise.owner: exercise for exercise in exercises.values()}
    for base in getattr(own, "__mro__", ()):
        if base in by_owner:
            return by_owner[base]
    raise ConfigError(f"{own!r} is of no exercise: derive a class from one of nn_manual's, as layers.LayerNorm")


@dataclass(frozen=True)
class Tensor:
    """A gradient beside torch's: what is wrong with it in words, empty where nothing is."""

    name: str
    complaint: str


@dataclass(frozen=True)
class TensorsReport:
    """Each gradient, in the order in which a mistake spreads: the first wrong one was computed from right ones."""

    tensors: Sequence[Tensor]

    @property
    def passed(self) -> bool:
        """Whether each is right."""
        return not any(tensor.complaint for tensor in self.tensors)

    @property
    def _head(self) -> str:
        wrong = [tensor.name for tensor in self.tensors if tensor.complaint]
        if not wrong:
            return f"{counted(len(self.tensors), 'gradient')}, each right"
        return f"{len(wrong)} of {counted(len(self.tensors), 'gradient')} wrong, the first is that of {wrong[0]}"

    def __str__(self) -> str:
        width = max((len(tensor.name) for tensor in self.tensors), default=0)
        rows = (f"{tensor.name:<{width}}  {tensor.complaint or 'right'}" for tensor in self.tensors)
        return "\n".join([self._head, *(part for row in rows for part in wrapped(one_line(row)))])

    def _repr_html_(self) -> str:
        rows = [notebook.Row((one.name, one.complaint or "right"), bool(one.complaint)) for one in self.tensors]
        head = notebook.verdict(self._head, is_wrong=not self.passed)
        return notebook.page(head, notebook.table(("tensor", "gradient"), rows, "<<"))


def check_tensors(**gradients: Any) -> TensorsReport:
    """Compare gradients that were derived line by line with torch's.

        logits.retain_grad(); h.retain_grad(); loss.backward()
        check_tensors(logits=dlogits, h=dh)

    Each name is that of a torch tensor where this is called, and each value its gradient, an array or a tensor. A pair
    (gradient, tensor) names the tensor itself. Raises ConfigError where there is no tensor of a name, or no gradient.
    """
    if not gradients:
        raise ConfigError("check_tensors takes gradients by the names of their tensors, as in check_tensors(h=dh)")
    frame = sys._getframe(1)
    known = {**frame.f_globals, **frame.f_locals}
    pairs = {name: _pair(name, value, known) for name, value in gradients.items()}
    order = _order({name: tensor for name, (_, tensor) in pairs.items()})
    return TensorsReport([Tensor(name, _complaint(pairs[name][0], pairs[name][1].grad)) for name in order])


def _pair(name: str, value: Any, known: Mapping[str, Any]) -> tuple[Any, Any]:
    """The reader's gradient, and torch's tensor."""
    pair: tuple[Any, Any] = value if isinstance(value, tuple) and len(value) == 2 else (value, known.get(name))
    gradient, tensor = pair
    if not hasattr(tensor, "grad_fn"):
        found = "not there" if tensor is None else f"a {type(tensor).__name__}"
        raise ConfigError(f"{name} is {found}: a name here is that of the torch tensor whose gradient it is")
    if not tensor.is_leaf and not tensor.retains_grad:
        raise ConfigError(f"torch keeps no gradient of {name}: call {name}.retain_grad() before loss.backward()")
    if tensor.grad is None:
        raise ConfigError(f"{name} has no gradient yet: call loss.backward(), and let {name} require one")
    return gradient, tensor


def _complaint(ours: Any, theirs: Any) -> str:
    """What is wrong with a gradient; empty where it is right."""
    reference = _array(theirs)
    if not hasattr(ours, "shape"):
        return f"a {type(ours).__name__}, and no array"
    if "complex" in str(ours.dtype):
        return f"an array of dtype {ours.dtype}, and not an array of numbers"
    array = _array(ours).astype(reference.dtype)
    if array.shape == reference.shape:
        scale = np.abs(reference).max(initial=0)
        if (np.abs(array - reference) <= SUM_OF_PRODUCTS[reference.dtype.name] * scale).all():
            return ""
    return describe_difference(array, reference)


def _array(value: Any) -> Array:
    """An array, or a tensor as one, in float32 or float64."""
    if hasattr(value, "detach"):
        value = value.detach().cpu()
        value = (value if "float64" in str(value.dtype) else value.float()).numpy()
    return np.asarray(value, np.float64 if value.dtype == np.float64 else np.float32)


def _order(tensors: Mapping[str, Any]) -> list[str]:
    """The names from the loss to the inputs, as far as the graphs of the tensors tell."""
    numbers = {id(tensor): tensor.grad_fn._sequence_nr() for tensor in tensors.values() if tensor.grad_fn is not None}
    for consumer, leaf in _leaves([tensor.grad_fn for tensor in tensors.values() if tensor.grad_fn is not None]):
        numbers[id(leaf)] = min(numbers.get(id(leaf), consumer), consumer - 0.5)
    return sorted(tensors, key=lambda name: -numbers.get(id(tensors[name]), -1.0))


def _leaves(nodes: Sequence[Any]) -> Iterator[tuple[float, Any]]:
    """Each leaf of these graphs, with the number of each operation that reads it."""
    waiting, seen = list(nodes), set()
    while waiting:
        node = waiting.pop()
        if node in seen:
            continue
        seen.add(node)
        for following, _ in node.next_functions:
            if following is None:
                continue
            if hasattr(following, "variable"):
                yield node._sequence_nr(), following.variable
            else:
                waiting.append(following)
