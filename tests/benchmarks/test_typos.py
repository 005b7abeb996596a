"""Mistakes in the keys of config/: how they are made, and a sample of what becomes of them."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from benchmarks.reliability.mistakes import (
    duplicated,
    keys,
    misspelled,
    neighbours,
    of_another_type,
    out_of_range,
    typos,
)
from benchmarks.reliability.typos import CONFIGS, KINDS, LEAST_RIGHT, outcomes

TEXT = """\
loss: MSELoss
model:
  - Linear: {bias: true}
  - ReLU
milestones: [3, 4]   # two
"""


def test_keys_and_names() -> None:
    found = {key.node.value: (key.node.start_mark.line, key.node.start_mark.column) for key in keys(TEXT)}
    assert found == {
        "loss": (0, 0), "MSELoss": (0, 6), "model": (1, 0), "Linear": (2, 4), "bias": (2, 13), "ReLU": (3, 4),
        "milestones": (4, 0),
    }  # fmt: skip - one table


def test_neighbours() -> None:
    assert sorted(neighbours("s")) == sorted("qweadzxc")
    assert sorted(neighbours("P")) == sorted("90-OL")


def test_typos() -> None:
    assert {"l", "r", "rl", "kr", "lt", "llr", "lrr", "klr", "lre"} <= set(typos("lr"))
    assert not {"lr", "", "zr"} & set(typos("lr"))


def test_the_text_around_a_mistake_stays() -> None:
    key = {key.node.value: key for key in keys(TEXT)}
    assert [wrong.text for wrong in misspelled(TEXT, key["bias"])] == [
        TEXT.replace("bias", typo) for typo in typos("bias")
    ]
    (twice,) = duplicated(TEXT, key["bias"])
    assert (twice.line, twice.column, twice.text) == (3, 23, TEXT.replace("bias", "bias: 1, bias"))
    (twice,) = duplicated(TEXT, key["model"])
    assert (twice.line, twice.column, twice.text) == (3, 1, TEXT.replace("model", "model: 1\nmodel"))
    assert next(of_another_type(TEXT, key["model"])).text == "loss: MSELoss\nmodel: 3\nmilestones: [3, 4]   # two\n"
    assert [wrong.text for wrong in out_of_range(TEXT, key["milestones"])] == [
        TEXT.replace("[3, 4]", "[-7777777, -7777777]")
    ]
    assert not list(out_of_range(TEXT, key["bias"]))


@pytest.mark.parametrize("config", CONFIGS, ids=lambda path: path.name)
def test_a_sample_of_the_mistakes_in_each_config(config: Path) -> None:
    found = list(outcomes(config, every=97))
    assert [outcome for outcome in found if not outcome.placed] == []
    hinted = [outcome.hinted for outcome in found if outcome.mistake.kind == "misspelled"]
    assert len(hinted) > 20
    assert sum(hinted) >= LEAST_RIGHT * len(hinted)


def test_every_mistake_but_typos_in_the_main_config(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(KINDS, "misspelled")
    found = list(outcomes(CONFIGS[2]))
    assert Counter(outcome.mistake.kind for outcome in found).keys() == KINDS.keys()
    assert [outcome for outcome in found if not outcome.placed] == []
