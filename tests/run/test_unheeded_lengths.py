"""What is said of lengths in the data that layers don't heed."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from nn_manual import (
    GRU,
    Flatten,
    Layer,
    Linear,
    PaddedGRU,
    PaddedTimePool,
    PaddedTransformerEncoderLayer,
    Residual,
    Sequential,
    TimePool,
    TransformerEncoder,
    TransformerEncoderLayer,
)
from nn_manual.run.unheeded_lengths import note_of_lengths


@dataclass(eq=False)
class OwnGRU(GRU):
    """One's own class: there is no PaddedOwnGRU."""


@pytest.mark.parametrize(
    ("layers", "note"),
    [
        ((PaddedGRU(2, 2), Linear(2, 2), PaddedTimePool()), ""),
        (
            (Flatten(), Linear(2, 2), OwnGRU(2, 2)),
            "note: no layer heeds the lengths in the data: padding counts as other numbers do",
        ),
        (
            (PaddedGRU(2, 2), Residual(GRU(2, 2, batch_first=True)), TimePool("mean"), TimePool("max")),
            "note: the lengths in the data aren't heeded by 1.0 (GRU), 2 (TimePool), 3 (TimePool): padding counts as "
            "other numbers do there. PaddedGRU, PaddedTimePool would heed them",
        ),
        (
            (TransformerEncoder(TransformerEncoderLayer(2, 1), 2), PaddedTimePool()),
            "note: the lengths in the data aren't heeded by 0.layers.0 (TransformerEncoderLayer), 0.layers.1 "
            "(TransformerEncoderLayer): padding counts as other numbers do there. PaddedTransformerEncoderLayer would "
            "heed them",
        ),
        ((TransformerEncoder(PaddedTransformerEncoderLayer(2, 1), 2), PaddedTimePool()), ""),
    ],
)
def test_the_note(layers: tuple[Layer, ...], note: str) -> None:
    assert note_of_lengths(Sequential(*layers)) == note
