"""What a composite does to the buffers of its layers: each moves once, by what its own layer saved."""

from __future__ import annotations

from typing import Any

import pytest
from composites import Sum
from nets import batch, model_of
from stateful import Center, Wrapped

from nn_manual import SGD, BatchNorm1d, GradientMismatch, Layer, Linear, MSELoss, Sequential, Trainer, check_gradients
from nn_manual.arrays import Array


class Forgets(Wrapped):
    def update_buffers(self, saved: Any) -> None:
        """Nothing."""


class UpdatesTwice(Wrapped):
    def update_buffers(self, saved: Any) -> None:
        super().update_buffers(saved)
        super().update_buffers(saved)


class UpdatesByAnother(Wrapped):
    def update_buffers(self, saved: Any) -> None:
        super().update_buffers(tuple(saved) if isinstance(saved, tuple) else saved.copy())


class SwapsTheSaved(Sum):
    def update_buffers(self, saved: Any) -> None:
        a_saved, b_saved = saved
        self.a.update_buffers(b_saved)
        self.b.update_buffers(a_saved)

    def infer(self, input: Array) -> Array:
        return self.a.infer(input) + self.b.infer(input)


UPDATES = [
    (lambda: Forgets(BatchNorm1d(4)), "ran 1.inner (BatchNorm1d) update_buffers never instead of once"),
    (lambda: UpdatesTwice(BatchNorm1d(4)), "ran 1.inner (BatchNorm1d) update_buffers 2 times instead of once"),
    (
        lambda: UpdatesByAnother(Center()),
        "gave 1.inner (Center) update_buffers another `saved` than its forward had returned",
    ),
    (
        lambda: SwapsTheSaved(BatchNorm1d(4), BatchNorm1d(4)),
        "gave 1.a (BatchNorm1d) update_buffers another `saved` than its forward had returned",
    ),
    (
        lambda: SwapsTheSaved(Center(), Wrapped(Center())),
        "gave 1.a (Center) update_buffers another `saved` than its forward had returned",
    ),
]


@pytest.mark.parametrize(("make", "words"), UPDATES)
def test_its_layers_buffers_move_once_by_what_each_saved(make: Any, words: str) -> None:
    composite = make()
    model = model_of(composite)
    report = check_gradients(model, MSELoss(), *batch())
    assert report.problem == f"1 ({type(composite).__name__}) {words}"
    with pytest.raises(GradientMismatch) as caught:
        Trainer(model, MSELoss(), SGD(model, lr=0.1)).train_step(*batch())
    assert caught.value.report.problem == report.problem


class Raises(Center):
    def update_buffers(self, saved: Any) -> None:
        raise ArithmeticError(f"no {len(saved)}")


class LeavesOne(SwapsTheSaved):
    def update_buffers(self, saved: Any) -> None:
        _, b_saved = saved
        self.b.update_buffers(b_saved)


@pytest.mark.parametrize(
    ("layers", "words"),
    [
        ([Raises(3), Linear(3, 4)], "0 (Raises): "),  # before the first parameters: its backward doesn't run
        ([Linear(3, 4), Wrapped(Raises()), BatchNorm1d(4)], "1.inner (Raises): "),
        ([Linear(3, 4), LeavesOne(Center(), Raises())], "1.b (Raises): "),
    ],
)
def test_an_update_that_raises_is_named(layers: list[Layer], words: str) -> None:
    model = Sequential(*layers)
    with pytest.raises(GradientMismatch) as caught:
        Trainer(model, MSELoss(), SGD(model, lr=0.1)).train_step(*batch())
    assert caught.value.report.problem.startswith(f"{words}update_buffers raised ArithmeticError: no ")


def test_an_update_that_raises_because_of_what_it_was_given_is_the_composites_fault() -> None:
    model = Sequential(Linear(3, 4), SwapsTheSaved(BatchNorm1d(4), Center()))
    with pytest.raises(GradientMismatch, match=r"1 \(SwapsTheSaved\) gave 1.a \(BatchNorm1d\) update_buffers\s+an"):
        Trainer(model, MSELoss(), SGD(model, lr=0.1)).train_step(*batch())
