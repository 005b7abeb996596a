"""A glance at a step's structure: it shows nothing where nothing is wrong, and something where anything is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from nets import batch, net

from nn_manual import SGD, GradientChecker, MSELoss
from nn_manual.check.step.fast_structure import Glance
from nn_manual.check.step.structure import check_structure
from nn_manual.errors import GradientMismatch


def recorded_step(change: Callable[[GradientChecker], None] | None = None) -> tuple[Glance, GradientChecker]:
    """A glance made after a right step, and a second step that `change` has spoilt the record of."""
    model = net()
    checker = GradientChecker(model, MSELoss(), SGD(model, lr=0.1))
    for _ in range(2):
        with checker.recording():
            checker.run(*batch())
    glance = Glance(checker.plan(), checker.recorded)
    if change is not None:
        change(checker)
    return glance, checker


def test_nothing_is_wrong() -> None:
    glance, checker = recorded_step()
    assert glance.shows_nothing()
    check_structure(checker.recorded, checker.plan())


def set_call(layer: int, name: str, value: Any) -> Callable[[GradientChecker], None]:
    return lambda checker: setattr(checker.recorded.layers[layer], name, value)


def set_loss(name: str, value: Any) -> Callable[[GradientChecker], None]:
    return lambda checker: setattr(checker.recorded.loss, name, value)


@pytest.mark.parametrize(
    "change",
    [
        set_call(1, "num_forwards", 0),
        set_call(1, "num_forwards", 2),
        set_call(2, "num_backwards", 0),
        set_call(2, "num_backwards", 2),
        set_call(1, "failure", "ValueError: no"),
        set_call(2, "num_updates", 1),
        set_call(1, "input", np.zeros((4, 4), np.float32)),
        set_call(1, "output", np.zeros((4, 4), np.float32)),
        set_call(1, "output", np.zeros((4, 4))),
        set_call(4, "output", np.zeros((4, 5), np.float32)),
        set_call(1, "output", None),
        set_call(3, "grad_output", np.zeros((4, 4), np.float32)),
        set_call(3, "grad_output", None),
        set_call(2, "grad_input", np.zeros((4, 4))),
        set_call(2, "grad_input", np.ma.zeros((4, 4), np.float32)),
        set_call(1, "grad_input", None),
        set_call(1, "saved_again", object()),
        set_loss("prediction", np.zeros((4, 4), np.float32)),
        set_loss("grad_prediction", np.zeros((4, 4), np.float32)),
        set_loss("grad_prediction", None),
        set_loss("failure", "ValueError: no"),
        set_loss("refused", True),
    ],
)
def test_something_may_be_wrong(change: Callable[[GradientChecker], None]) -> None:
    glance, _ = recorded_step(change)
    assert not glance.shows_nothing()


def test_what_it_passes_the_full_look_passes_too() -> None:
    """A step that is wrong between the layers is refused by both."""
    model = net()
    checker = GradientChecker(model, MSELoss(), SGD(model, lr=0.1))
    with checker.recording():
        checker.run(*batch())
    glance = Glance(checker.plan(), checker.recorded)
    with checker.recording():
        prediction, saved = model.forward(batch()[0])
        model.layers[0].forward(batch()[0])
        value, loss_saved = checker.loss.forward(prediction, batch()[1])
        model.backward_parameters(saved, checker.loss.backward(loss_saved))
    assert np.isfinite(value)
    assert not glance.shows_nothing()
    with pytest.raises(GradientMismatch, match="forward 2 times instead of once"):
        checker.compare()
