"""A sample of `scripts/benchmark.py bits`: the bits of a training on one thread and on several."""

from __future__ import annotations

import pytest
from benchmarks import bits
from benchmarks.bits import Bits
from benchmarks.random_nets import drawn


@pytest.mark.slow
def test_the_bits_do_not_depend_on_threads() -> None:
    """It alone trains a random net on several threads, plan and proof: the first small one that is compiled."""
    pytest.importorskip("numba")
    small = (seed for seed in range(99) if len(drawn(seed)[0].model.layers) == 3)
    one, several = next(both for both in map(bits._both, small) if both[0].is_compiled)
    assert one == several
    assert one.num_steps > 0


@pytest.mark.parametrize("changed", [{}, {"weights": "b"}, {"figures": "b"}, {"num_steps": 6}])
def test_other_bits_are_reported(
    changed: dict[str, object], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    one = Bits("a", "a", 7, is_compiled=True)
    several = {3: one, 4: one._replace(**changed)}  # type: ignore[arg-type]  # each field has its own type
    monkeypatch.setattr(bits, "on_all_cores", lambda _, seeds: [(one, several[seed]) for seed in seeds])
    assert bits.main(range(3, 5)) == bool(changed)
    *_, steps, differing = capsys.readouterr().out.splitlines()
    assert steps == "2 nets, of which 2 are compiled; 14 steps on one thread"
    assert differing == f"other bits on several threads: {'4' if changed else 'none'}"
