"""scripts/benchmark.py layers: which classes are measured, that all contestants compute the same, and the table."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from benchmarks.layers import contestants, one_class, table
from benchmarks.layers.contestants import Case
from benchmarks.layers.sizes import NOT_MEASURED, SUBJECTS
from benchmarks.layers.table import Row, is_as_wanted, row_of, summary_of

from nn_manual.layers import Layer, PReLU
from nn_manual.losses import Loss
from nn_manual.registry import components


def test_every_class_that_torch_has_is_measured() -> None:
    owners = components(Layer) | components(Loss)
    of_torch = {name for name in owners if hasattr(torch.nn, name)}
    assert of_torch - SUBJECTS.keys() - NOT_MEASURED.keys() == set()
    assert [name for name in SUBJECTS if not hasattr(torch.nn, name)] == ["CausalSelfAttention"]


@pytest.mark.parametrize("name", table.subjects())
def test_both_sizes_fit(name: str) -> None:
    """The shape that torch's module puts out is ours, on the input that it gets."""
    subject = SUBJECTS[name]
    for size in (subject.small, subject.real):
        case = Case(name, size, subject.values)
        if isinstance(case.component, Loss):
            case.component.check_target(case.input, case.target)
        else:
            assert case.component.output_shape(size.shape) == case.target.shape
    case = Case(name, subject.small, subject.values)
    assert case.torch().run(1).size == case.numpy().run(1).size


@pytest.fixture
def brief(monkeypatch: pytest.MonkeyPatch) -> None:
    """One round, of a call each."""
    monkeypatch.setattr(one_class, "ROUNDS", 1)
    monkeypatch.setattr(one_class, "MILLISECONDS", 0)
    monkeypatch.setattr(contestants, "MOST_STEPS", 2)


@pytest.mark.usefixtures("brief")
@pytest.mark.parametrize("name", ["PReLU", "Embedding", "BCELoss", "Dropout"])
def test_all_contestants_compute_the_same(name: str) -> None:
    subject = SUBJECTS[name]
    found = one_class.measured(name, subject.small, subject.values)
    assert found["shape"] == subject.small.shape
    assert {len(times) for times in found["microseconds"].values()} == {1}
    assert list(found["MiB"]) == ["torch", "numpy", "compiled"]


@pytest.mark.usefixtures("brief")
def test_a_contestant_with_another_gradient_is_not_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = PReLU.backward

    def wrong(self: PReLU, saved: Any, grad_output: Any) -> Any:
        return 1.001 * plain(self, saved, grad_output)

    monkeypatch.setattr(PReLU, "backward", wrong)
    with pytest.raises(ValueError, match=r"^numpy has another gradient than torch: "):
        one_class.measured("PReLU", SUBJECTS["PReLU"].small, "numbers")


def test_the_compiled_form_has_the_same_parameters() -> None:
    """Or a weight of ones would be timed beside one that isn't."""
    case = Case("PReLU", SUBJECTS["PReLU"].small, "numbers")
    case.model.param_arena[:] = -3.0
    compiled, expected = case.compiled().run(1), case.numpy().run(1)
    np.testing.assert_allclose(compiled, expected, rtol=1e-6)
    assert (expected[case.input < 0] == -3 * case.target[case.input < 0]).all()


MEASURED = {
    "shape": [2, 3],
    "microseconds": {"torch": [10.0, 20.0, 90.0], "numpy": [20.0, 40.0, 20.0], "compiled": [1.0, 1.0, 1.0]},
    "MiB": {"torch": 2.0, "numpy": 1.0, "compiled": 3.0},
}


def test_a_row() -> None:
    """Ratios are medians of the rounds' ratios: 0.5, 0.5 and 4.5 beside NumPy."""
    row = row_of("ReLU", MEASURED)
    assert row == Row("ReLU", (2, 3), 20.0, 0.5, 20.0, (0.5, 1.5))
    assert str(row) == "| ReLU | 2 x 3 | 20 | 0.50 | 20 | 0.50 | 1.50 |"
    assert row_of("ReLU", {**MEASURED, "MiB": {"torch": 0.1, "numpy": 1.0, "compiled": 1.0}}).memory is None


def test_what_is_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    slow, fast = Row("Conv1d", (2,), 1.0, 0.25, 0.4, None), Row("ReLU", (2,), 1.0, 1.0, 10.0, None)
    assert is_as_wanted([fast])
    assert not is_as_wanted([slow, fast])
    assert list(summary_of([slow, fast])) == [
        "\ntorch / compiled, geometric mean of 2: 2.00 (>= 1.3)",
        "torch / NumPy, geometric mean: 0.50",
        "below 0.5: Conv1d 0.40, WITHOUT A REASON",
    ]
    monkeypatch.setitem(table.REASONS, "Conv1d", "because")
    assert is_as_wanted([slow, fast])
    assert not is_as_wanted([slow, Row("ReLU", (2,), 1.0, 1.0, 4.0, None)])


def test_a_class_that_is_not_measured(capsys: pytest.CaptureFixture[str]) -> None:
    assert table.main(["ReLu"]) == 2
    assert capsys.readouterr().err.startswith("ReLu isn't measured; there are CELU, ")
