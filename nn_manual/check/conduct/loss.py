"""How a loss behaves, beside the values that it returns."""

from __future__ import annotations

from typing import Any

import numpy as np

from nn_manual.arrays import Array
from nn_manual.check.compare.comparison import CannotCompare
from nn_manual.check.conduct.layer_copy import copied
from nn_manual.check.conduct.unchanged import Unchanged, arrays_in
from nn_manual.check.step.calls import LossCalls
from nn_manual.check.step.places import place_of_error, place_of_method
from nn_manual.errors import raise_if_nobodys_fault, words_of


def check_loss(calls: LossCalls, prediction: Array) -> None:
    """Run a copy of the recorded loss, on copies of the prediction, which may have been written into since, and of the
    target. Raises CannotCompare where a method raises, writes into what it was given or what forward saved, or
    overwrites what it returned when it runs again, and for a loss that can't be copied.
    """
    assert calls.target is not None  # it ran
    _LossRuns(calls, prediction.copy(), calls.target.copy()).check()


class _LossRuns:
    """The runs of a loss on one prediction and target, and then on the rows of the prediction in another order."""

    def __init__(self, calls: LossCalls, prediction: Array, target: Array) -> None:
        self.prediction, self.target = prediction, target
        self.label = f"loss ({type(calls.loss).__name__})"
        self.loss = copied(calls.loss, self.label)
        self.kept = Unchanged(self.label, {"its prediction": prediction, "its target": target})

    def check(self) -> None:
        """As check_loss."""
        _, saved = self._run("forward", self.prediction, self.target)
        self._check_kept("forward", "forward wrote into", self.kept)
        saved_arrays = {f"what forward saved{place}": array for place, array in arrays_in(saved)}
        self.kept.add(saved_arrays)
        grad_prediction = self._run("backward", saved)
        self._check_kept("backward", "backward wrote into", self.kept)
        returned = Unchanged(self.label, {"the grad_prediction": grad_prediction})
        _, saved_of_other = self._run("forward", np.roll(self.prediction, 1, axis=0), self.target)
        self._check_kept("forward", "run again on other values, it overwrote", self.kept)
        self._run("backward", saved_of_other)
        self._check_kept("backward", "run again on other values, it overwrote", returned)

    def _run(self, method: str, *arguments: Any) -> Any:
        try:
            return getattr(self.loss, method)(*arguments)
        except BaseException as error:  # a loss that ran once may raise anything the second time
            raise_if_nobodys_fault(error)
            words = f"{self.label}: run again, {method} raised {words_of(error)}"
            raise CannotCompare(words + place_of_error(self.loss, error)) from error

    def _check_kept(self, method: str, deed: str, kept: Unchanged) -> None:
        if changed := kept.changed():
            raise CannotCompare(f"{self.label}: {deed} {changed}{place_of_method(self.loss, method)}")
