"""Pieces of an update: each parameter is in one of them, with its group and its tensors."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import pytest
from nets import net
from updates import Run

from nn_manual import SGD, Adam, GradientChecker, GradientMismatch, Linear, MSELoss, Muon, Sequential, Tanh
from nn_manual.arrays import Array
from nn_manual.check.twin.optimizers import UpdateInputs, state_of
from nn_manual.check.whole_step import update_pieces
from nn_manual.check.whole_step.update_pieces import Piece, PieceOfUpdate, pieces

NAMES = [f"{i}.{name}" for i in (0, 2, 4) for name in ("weight", "bias")]  # of 12, 4, 16, 4, 16, 4 elements


class OwnStep(SGD):
    """It may need all parameters at once."""

    def step(self) -> None:
        super().step()


@pytest.mark.parametrize(
    ("most", "names"),
    [
        (56, [NAMES]),
        (55, [NAMES[:5], NAMES[5:]]),
        (16, [NAMES[:2], NAMES[2:3], NAMES[3:4], NAMES[4:5], NAMES[5:]]),
        (1, [[name] for name in NAMES]),
    ],
)
def test_consecutive_parameters_up_to_so_many_elements(
    most: int, names: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(update_pieces, "PIECE", most)
    found = [*pieces(SGD(net()))]
    assert [list(piece.shapes) for piece in found] == names
    stops = [piece.where.stop for piece in found]
    assert [piece.where.start for piece in found] == [0, *stops[:-1]]
    assert stops[-1] == 56
    assert [*pieces(OwnStep(net()))] == [Piece(0, net().parameter_shapes())]


class OwnReference(SGD):
    """Its reference gets a whole parameter."""

    def reference(self, *_: Any) -> Any:
        raise AssertionError


class OfMatrices(SGD):
    """It moves each element by itself, and takes nothing but matrices."""

    num_dims = 2


def test_a_model_without_parameters_has_no_pieces() -> None:
    model = Sequential(Tanh())
    assert [*pieces(SGD(model))] == []
    GradientChecker(model, MSELoss(), SGD(model), input_grad=True)


def test_a_large_parameter_is_cut_where_each_element_moves_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(update_pieces, "PIECE", 5)
    model = Sequential(Linear(3, 4, bias=False), Linear(4, 2, bias=False))
    first, second = pieces(SGD(model))
    assert first.parts(SGD(model)) == [Piece(start, {"0.weight": (size,)}) for start, size in ((0, 5), (5, 5), (10, 2))]
    assert second.parts(SGD(model)) == [Piece(12, {"1.weight": (5,)}), Piece(17, {"1.weight": (3,)})]
    for whole in (Muon(model), OwnReference(model), OfMatrices(model)):
        assert second.parts(whole) == [second]


def test_its_tensors_are_those_of_each_vector_and_of_the_parameters() -> None:
    run = Run(optimizer_class=Adam)
    check = run.step()
    assert check is not None
    update, shapes = check.plan.update, run.model.parameter_shapes()
    piece = Piece(16, {name: shapes[name] for name in NAMES[2:4]})
    names = [f"{name}.{vector}" for vector in ("exp_avg", "exp_avg_sq") for name in NAMES[2:4]]
    names += [f"updated {name}" for name in NAMES[2:4]]
    own = PieceOfUpdate(piece, run.optimizer)
    assert [update[i].name for i in own.tensors] == names
    assert own.sizes == [16, 4]


def test_a_piece_has_its_groups_with_what_a_schedule_has_made_of_them() -> None:
    """The first group has no parameter of the piece, and the third would match one if the second didn't."""
    groups: Any = [
        {"parameters": "0.*", "momentum": 0.1},
        {"parameters": "2.bias", "momentum": 0.2},
        {"parameters": "*.bias", "momentum": 0.3},
    ]
    optimizer = SGD(net(), lr=1.0, momentum=0.9, groups=groups)
    vars(optimizer.members[2])["weight_decay"] = 0.5
    start = state_of(optimizer).map(lambda _: np.arange(56, dtype=np.float32))
    scheduled = [member.scheduled._replace(lr=lr) for member, lr in zip(optimizer.members, range(4), strict=True)]
    inputs = UpdateInputs(start, -np.arange(56, dtype=np.float32), scheduled, 7)
    shapes = optimizer.model.parameter_shapes()
    piece = PieceOfUpdate(Piece(16, {name: shapes[name] for name in NAMES[2:4]}), optimizer)
    own, its = piece.optimizer, inputs.part(piece.where, piece.members)
    assert [vars(member)["momentum"] for member in own.members] == [0.9, 0.2]
    assert [vars(member)["weight_decay"] for member in own.members] == [0.0, 0.5]
    assert [values.lr for values in its.scheduled] == [0, 2]
    assert own.model.parameter_shapes() == {"2.weight": (4, 4), "2.bias": (4,)}
    assert own.model.dtype == np.float32
    for array, sign in ((its.start.param, 1), (its.start.vectors["momentum_buffer"], 1), (its.grad, -1)):
        assert array.tolist() == (sign * np.arange(16, 36)).tolist()
    assert its.num_steps == 7
    assert len(list(own.model.named_layers())) == 5, "all else is the model's"


class Wrong(Adam):
    """Its last group goes a thousandth too far: with its lr, float32 doesn't show it."""

    def move(self, param: Array, grad: Array, vectors: Any, coefficients: Any) -> None:
        before = param.copy()
        super().move(param, grad, vectors, coefficients)
        if self.lr == 1e-7:
            param += param.dtype.type(1e-3) * (param - before)


Wrong.__name__ = "Adam"


@pytest.mark.parametrize("most", [1 << 20, 40, 5])
def test_what_float32_hides_is_found_in_each_piece(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(update_pieces, "PIECE", most)
    groups = [{"parameters": "4.weight", "lr": 1e-7}]
    Run(optimizer_class=Adam, groups=groups).step()
    with pytest.raises(GradientMismatch, match=r"updated 4\.weight"):
        Run(optimizer_class=Wrong, groups=groups).step()


def test_it_takes_little_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """All at once it takes 19 MB of numpy's arrays. In pieces it takes 3, mostly zeros that nobody writes to."""
    monkeypatch.setattr(update_pieces, "PIECE", 1 << 12)
    model = Sequential(*(Linear(128, 128, bias=False) for _ in range(16)), dtype="float32")
    checker = GradientChecker(model, MSELoss(), Adam(model))
    assert checker.update is not None
    with checker.recording():
        checker.run(np.ones((1, 128), np.float32), np.ones((1, 128), np.float32))
        checker.update.optimizer.step()
    quantities = checker.plan().update
    start = state_of(checker.update.optimizer).map(np.copy)
    scheduled = [checker.update.optimizer.scheduled]
    tracemalloc.start()
    checker.update.compare_in_float64(quantities, UpdateInputs(start, model.grad_arena, scheduled, 1))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert 0 < peak < 5e6
