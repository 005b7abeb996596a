"""What a Trainer does where one of its attributes is set anew: it follows, or refuses with the reason."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from classifiers import examples, train

from nn_manual.arrays import Array
from nn_manual.data import Examples
from nn_manual.layers import Linear, Tanh
from nn_manual.losses import CrossEntropyLoss, MSELoss
from nn_manual.model import Sequential
from nn_manual.optim import SGD, ReduceLROnPlateau, StepLR
from nn_manual.step.slices.cut import Slicing
from nn_manual.trainer.trainer import Trainer


def classifier(**settings: Any) -> Trainer:
    model = Sequential(Linear(2, 6), Tanh(), Linear(6, 4), dtype="float64")
    return Trainer(model, **({"loss": CrossEntropyLoss(), "optimizer": SGD(model, lr=0.1, momentum=0.9)} | settings))


KINDS: dict[str, dict[str, Any]] = {
    "plain": {"check_every": 0},
    "compiled": {"check_every": 0, "compiled": True},
    "sliced": {"check_every": 0, "slicing": Slicing(2)},
    "compiled slices": {"check_every": 0, "compiled": True, "slicing": Slicing(2)},
    "checked": {},
    "checked slices": {"slicing": Slicing(2)},
}
FIXED, OF_CHECK, OF_SLICES = (
    f"{{name}} {words} when the Trainer was made: it takes a new Trainer"
    for words in ("stays what it was", "was given to the check", "was given to the slices")
)


def another(name: str) -> Any:
    """Another value of an attribute."""
    model = Sequential()
    return {
        "model": model,
        "loss": CrossEntropyLoss(label_smoothing=0.2),
        "optimizer": SGD(model),
        "clip_grad_norm": 0.05,
        "clip_grad_value": 0.05,
        "lr_scheduler": StepLR(1, 0.5),
        "check_every": 2,
        "lr_step": "step",
        "check_memory": 5,
        "check_threads": 2,
        "compiled": None,
        "blas": "scipy",
        "threads": 1,
        "slicing": Slicing(3),
        "num_steps": 6,
        "stop_every": 2,
    }.get(name, object())


def refusal_of(name: str, kind: str) -> str | None:
    """Why a trainer of this kind can't follow; None where it does."""
    of_step = ("loss", "clip_grad_norm", "clip_grad_value", "lr_scheduler")
    if "checked" in kind and name in (*of_step, "check_every", "check_memory", "check_threads"):
        return OF_CHECK
    if "slice" in kind and name == "loss":
        return OF_SLICES
    return None if name in FOLLOWED else FIXED


FOLLOWED = ("loss", "clip_grad_norm", "clip_grad_value", "lr_scheduler", "lr_step", "num_steps", "stop_every")
ATTRIBUTES = [*(name for name in vars(classifier(check_every=0)) if not name.startswith("_")), "num_steps"]


@pytest.mark.parametrize("kind", KINDS)
def test_each_attribute_is_followed_or_refused(kind: str) -> None:
    trainer = classifier(**KINDS[kind])
    assert set(FOLLOWED) < set(ATTRIBUTES)
    for name in ATTRIBUTES:
        before, value, words = getattr(trainer, name), another(name), refusal_of(name, kind)
        setattr(trainer, name, before)  # what it is already
        if words is None:
            setattr(trainer, name, value)
            setattr(trainer, name, before)  # two settings may exclude each other
            continue
        with pytest.raises(AttributeError) as refused:
            setattr(trainer, name, value)
        assert str(refused.value) == words.format(name=name)
        assert getattr(trainer, name) is before


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"loss": MSELoss}, "loss must be a Loss, not the class MSELoss"),
        ({"optimizer": SGD}, "optimizer must be an Optimizer, not the class SGD"),
        ({"optimizer": None}, "optimizer must be an Optimizer, not None"),
    ],
)
def test_what_is_no_loss_and_no_optimizer(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(TypeError, match=f"^{message}$"):
        classifier(**settings)


def trained(trainer: Trainer, settings: dict[str, Any], num_epochs: int = 1) -> Array:
    """The parameters after so many epochs, and one more with these settings."""
    train(trainer, num_epochs)
    for name, value in settings.items():
        setattr(trainer, name, value)
    train(trainer, 2)
    return trainer.model.param_arena


@pytest.mark.slow
@pytest.mark.parametrize(
    ("settings", "kinds"),
    [
        ({"loss": CrossEntropyLoss(label_smoothing=0.2)}, "plain, compiled"),
        ({"loss": CrossEntropyLoss("sum")}, "plain, compiled"),
        ({"clip_grad_norm": 0.05}, "plain, compiled, sliced, compiled slices"),
        ({"clip_grad_value": 0.01}, "plain, compiled, sliced, compiled slices"),
        ({"lr_scheduler": StepLR(1, 0.5)}, "plain, compiled, sliced, compiled slices"),
        ({"lr_scheduler": StepLR(1, 0.5), "lr_step": "step"}, "plain, compiled, sliced, compiled slices"),
        ({"num_steps": 0}, "plain, compiled, sliced, compiled slices, checked, checked slices"),
    ],
)
def test_what_is_set_is_what_a_trainer_made_with_it_does(settings: dict[str, Any], kinds: str) -> None:
    """It alone sees a setting that acts otherwise when it is set later."""
    given = {name: value for name, value in settings.items() if name != "num_steps"}
    expected = trained(classifier(check_every=0, **given), {}, 0)
    for kind in kinds.split(", "):
        found = trained(classifier(**KINDS[kind]), settings, 0)
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12, err_msg=kind)


@pytest.mark.slow
@pytest.mark.parametrize("settings", [{"clip_grad_norm": 0.05}, {"loss": CrossEntropyLoss("sum")}])
def test_plans_that_were_made_before_are_made_again(settings: dict[str, Any]) -> None:
    """It alone changes settings between compiled steps."""
    expected = trained(classifier(**KINDS["plain"]), settings)
    for kind in ["compiled", "compiled slices"][: 2 - ("loss" in settings)]:
        np.testing.assert_allclose(trained(classifier(**KINDS[kind]), settings), expected, rtol=0, atol=1e-12)


class Twice(MSELoss):
    """A loss of its own class, with the settings of MSELoss."""

    def backward(self, saved: Array) -> Array:
        return 2 * super().backward(saved)


def test_a_loss_of_another_class_has_a_plan_of_its_own() -> None:
    data = Examples(examples().input, examples().input)
    found = []
    for compiled in (False, True):
        model = Sequential(Linear(2, 2), dtype="float64")
        trainer = Trainer(model, MSELoss(), SGD(model, lr=0.1), check_every=0, compiled=compiled)
        for epoch, loss in enumerate((MSELoss(), Twice())):
            trainer.loss = loss
            list(trainer.epoch(data, 10, seed=0, epoch=epoch))
        found.append(model.param_arena)
    np.testing.assert_allclose(found[1], found[0], rtol=0, atol=1e-12)


def test_lr_step_is_followed_where_steps_are_checked() -> None:
    schedule = {"lr_scheduler": StepLR(3, 0.5)}
    expected = trained(classifier(check_every=0, lr_step="step", **schedule), {}, 0)
    for kind in ("checked", "checked slices"):
        found = trained(classifier(**KINDS[kind], **schedule), {"lr_step": "step"}, 0)
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("clip_grad_norm", "5", "clip_grad_norm must be a number, not '5'"),
        ("clip_grad_norm", 0.0, "clip_grad_norm must be above 0, not 0.0"),
        ("lr_step", "steps", "lr_step must be epoch or step, not steps"),
        ("lr_scheduler", ReduceLROnPlateau(), "lr_step must be epoch with ReduceLROnPlateau: a validation loss comes"),
    ],
)
def test_a_value_out_of_range_is_refused_and_changes_nothing(name: str, value: object, words: str) -> None:
    trainer = classifier(check_every=0, lr_scheduler=StepLR(1), lr_step="step")
    before = getattr(trainer, name)
    with pytest.raises((TypeError, ValueError), match=f"^{words}"):
        setattr(trainer, name, value)
    assert getattr(trainer, name) is before


def test_a_copy_trains_as_the_trainer_does() -> None:
    trainer = classifier(**KINDS["plain"])
    train(trainer)
    again = copy.deepcopy(trainer)
    assert train(again) == train(trainer)


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, pickle.dumps])
@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "plain"])
def test_what_is_tied_to_the_models_memory_is_not_copied(kind: str, copied: Callable[[Trainer], object]) -> None:
    with pytest.raises(TypeError, match=r"can't be copied: copy its model with copy\.deepcopy, and make a Trainer of"):
        copied(classifier(**KINDS[kind]))
