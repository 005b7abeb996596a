"""The forms of target that the losses are checked on."""

from __future__ import annotations

import numpy as np
import pytest

from nn_manual import CrossEntropyLoss, MSELoss, TraceLoss
from nn_manual.check.catalogue.input_kinds import KINDS
from nn_manual.check.catalogue.targets import CLASS_FORMS, indices, loss_batches, probabilities
from nn_manual.losses import CTCLoss, Loss


def forms_of(loss: Loss) -> list[str]:
    """The forms in the descriptions, each batch taken by the loss."""
    forms = []
    for description, prediction, target in loss_batches(loss, "float32", np.random.default_rng(0)):
        loss.check_target(prediction, target)
        forms.append(description.rpartition(", ")[2])
    return forms


def test_cross_entropy_meets_every_form() -> None:
    num_kinds = len(KINDS)
    of_values = {"a batch of 4": num_kinds**2, "a batch of 1": 1, "a batch of 25": 3}
    for loss in (CrossEntropyLoss(), CrossEntropyLoss("sum", 0.1, [1.0] * 5)):
        forms = forms_of(loss)
        expected = of_values | dict.fromkeys(CLASS_FORMS.keys() - {"indices of half as many positions"}, num_kinds)
        assert {form: forms.count(form) for form in forms} == expected
    ignoring = forms_of(CrossEntropyLoss(ignore_index=1))
    assert set(forms) - set(ignoring) == {"probabilities", "probabilities of positions"}
    assert of_values.keys() | {"indices of half as many positions"} <= set(forms_of(CTCLoss()))
    for regression in (MSELoss(), TraceLoss()):
        assert set(forms_of(regression)) == of_values.keys()


@pytest.mark.parametrize("shape", [(4, 5), (4, 5, 3)])
def test_probabilities_add_up_to_one(shape: tuple[int, ...]) -> None:
    generator = np.random.default_rng(0)
    for kind in KINDS:
        drawn = probabilities(kind, shape, "float32", generator)
        assert drawn.shape == shape
        assert drawn.dtype == np.float32
        np.testing.assert_allclose(drawn.sum(axis=1), 1, rtol=1e-6)
    assert len(np.unique(probabilities("random", shape, "float64", generator))) == np.prod(shape)
    assert set(indices("random", shape, "float32", generator).flat) <= set(range(5))
