"""Losses as exercises: the reader writes backward, or of a loss with a term for each element the term's derivative."""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any, ClassVar

import numpy as np

from nn_manual.arrays import Array
from nn_manual.check.catalogue.input_kinds import draw
from nn_manual.check.catalogue.labels import label
from nn_manual.check.catalogue.targets import loss_batches
from nn_manual.defaults import defines
from nn_manual.exercises.kinds.exercise import Case, Exercise, Results, is_no_array, keeping
from nn_manual.exercises.kinds.formula_words import words_of_loss
from nn_manual.exercises.kinds.frozen import freeze
from nn_manual.exercises.kinds.untouched import Untouched
from nn_manual.losses import Loss
from nn_manual.losses.elementwise import ElementwiseLoss

SEED = 0
#: What each method that may be taken out is asked for.
ASKED = {
    "derivative": "Return the derivative of each term with respect to its prediction, shaped as the prediction.",
    "backward": "Return grad_prediction.",
    "backward_target": "Return grad_target.",
}


class LossExercise(Exercise):
    """`owner` is a class of losses."""

    has_way_back: ClassVar[bool] = True
    methods: ClassVar[tuple[str, ...]] = ("derivative", "backward")
    given: ClassVar[tuple[str, ...]] = ("forward",)
    room: ClassVar[str] = "losses"

    def cases(self) -> list[Case]:
        """Each example on each pair of prediction and target. A class index for each row is the easiest target."""
        found = []
        for index, loss in enumerate(_settings(self.owner)):
            generator = np.random.default_rng([SEED, index])
            for kind, prediction, target in (*loss_batches(loss, "float64", generator), *_all_ignored(loss, generator)):
                run = functools.partial(self._run, index=index, prediction=prediction, target=target)
                known = words_of_loss(loss, prediction) | {"prediction": prediction, "target": target}
                form = {"target": "indices" if target.dtype.kind == "i" else "probabilities"}
                found.append(Case(label(loss), kind, run, known, loss, form))
        return sorted(found, key=_difficulty)

    def _run(self, own: type[Loss], index: int, prediction: Array, target: Array) -> Results:
        loss = copy.deepcopy(_settings(own)[index])
        untouched = Untouched(loss)
        value, saved = loss.forward(freeze(prediction), freeze(target))
        results = {"loss": np.asarray(value)}
        with keeping(results), suppress(NotImplementedError):
            results["grad_prediction"] = _returned(loss.backward, saved)
        with keeping(results), suppress(NotImplementedError):
            if defines(self.owner, "backward_target"):
                results["grad_target"] = _returned(loss.backward_target, saved)
        with keeping(results):
            untouched.refuse_changes()
        return results

    def wanted(self) -> str:
        """What the methods return."""
        if "backward_target" in self.taken_out:
            return "Return grad_prediction from backward, and grad_target from backward_target."
        return self.asked_of(*self.taken_out)

    def asked_of(self, method: str) -> str:
        """What a method returns."""
        return ASKED[method]


def _returned(backward: Callable[[Any], Array], saved: Any) -> Any:
    """The gradient; or what the reader's derivative has returned, where that is no array."""
    try:
        return backward(freeze(saved))
    except AttributeError as error:
        if not is_no_array(error, ElementwiseLoss.divided):
            raise
        return error.obj


def _settings(owner: Any) -> list[Loss]:
    """The examples, and a mean of the rows that count: no example has it, since the mean of none isn't finite."""
    return [*owner.examples(), *([owner(ignore_index=1)] if hasattr(owner, "ignore_index") else [])]


def _all_ignored(loss: Any, generator: np.random.Generator) -> Iterator[tuple[str, Array, Array]]:
    """A batch in which no row counts: the loss is 0 or not a number, and its gradient is 0."""
    if getattr(loss, "ignore_index", -1) >= 0:
        prediction = draw("random", (4, 5), "float64", generator)
        yield "random prediction, a batch of 4 that are all ignored", prediction, np.full(4, loss.ignore_index)


def _difficulty(case: Case) -> tuple[bool, bool]:
    return case.conditions["target"] != "indices", "a batch of" not in case.kind
