"""What is wanted of large nets, and a small one that is measured as they are."""

from __future__ import annotations

import numpy as np
import pytest
from benchmarks import large, one_large
from benchmarks.large import Net

SMALL = Net(width=8, depth=2, num_heads=2, num_tokens=20, context=4, batch_size=2)


def test_figures_and_what_is_missed() -> None:
    measured = {"seconds": [9.0, 1.0, 3.0, 2.0], "bytes": [5e9, 4e9]}
    plain = large.figures_of(measured)
    assert plain == {"first": 9.0, "step": 2.0, "GB": 5.0, "GB later": 4.0}
    figures = dict.fromkeys(large.WHO, plain)
    lines, missed = large.judged(figures)
    assert missed
    assert [line for line in lines if line.endswith(": MISSED")] == [
        "compiled step / torch step: 1.00, at most 0.9: MISSED",
        "checked first / checked step: 4.50, at most 3.0: MISSED",
    ]
    figures |= {"compiled": plain | {"step": 1.8, "first": 60.0}, "checked": plain | {"first": 6.0}}
    assert not large.judged(figures)[1]
    figures["compiled"] = figures["compiled"] | {"first": 60.1}
    assert large.judged(figures)[0][-1] == "compiled, ready after 60.1 s, at most 60: MISSED"


@pytest.mark.parametrize("who", ["torch", "plain", "checked"])
def test_a_net_is_measured(who: str) -> None:
    input, target = np.random.default_rng(0).integers(0, SMALL.num_tokens, (2, SMALL.batch_size, SMALL.context))
    is_torchs = who == "torch"
    step = one_large._torch(SMALL, input, target) if is_torchs else one_large._ours(SMALL, who, 1, input, target)
    found = one_large._measured(step)
    assert len(found["seconds"]) == 1 + large.NUM_STEPS
    assert min(found["seconds"]) > 0
    assert len(found["bytes"]) == 2


def test_its_head_is_its_embedding() -> None:
    model = one_large.model_of(SMALL)
    assert "0.weight" in model.ties.names
    blocks = SMALL.depth * (2 * 2 * 8 + 4 * 8 * 8 + 4 * 8 + 8 * 32 * 2 + 32 + 8)
    assert model.num_parameters == 20 * 8 + 4 * 8 + blocks + 2 * 8


def test_an_unknown_net(capsys: pytest.CaptureFixture[str]) -> None:
    assert large.main(["gpt3"], 1) == 2
    assert capsys.readouterr().err == "there is no gpt3; there are 45M, gpt2\n"
