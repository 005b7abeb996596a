"""What a second thread gains, and what more threads would."""

from __future__ import annotations

import pytest
from benchmarks import second_thread
from benchmarks.second_thread import Gain


def test_more_threads_shorten_what_two_have_shortened() -> None:
    """Of 10 ms, 8 are shared: 2 + 8 / n."""
    gain = Gain(10.0, 6.0, 0.6)
    assert [gain.on(n) for n in (1, 2, 8, 16)] == [10.0, 6.0, 3.0, 2.5]
    assert Gain(10.0, 12.0, 1.2).on(8) == 10.0


@pytest.mark.parametrize(
    ("ours", "torch", "missed"),
    [((6.0, 4.0), (12.0, 10.0), []), ((6.0, 5.5), (12.0, 10.0), ["gains"]), ((6.0, 4.5), (6.0, 5.0), ["of torch's"])],
)
def test_what_is_missed(ours: tuple[float, float], torch: tuple[float, float], missed: list[str]) -> None:
    """A slow round of the machine meets all of them."""
    pairs = {f"{side} {n}": value for side, two in (("ours", ours), ("torch", torch)) for n, value in enumerate(two, 1)}
    times = {name: [value, 50 * value, value] for name, value in pairs.items()}
    lines, is_missed = second_thread.judged("gpt", times)
    found = [line for line in lines if line.endswith(": MISSED")]
    assert is_missed is bool(missed)
    assert len(found) == len(missed)
    assert all(words in line for words, line in zip(missed, found, strict=True))


def test_an_unknown_net(capsys: pytest.CaptureFixture[str]) -> None:
    assert second_thread.main(["gtp"]) == 2
    assert capsys.readouterr().err == "there is no gtp; there are gpt, lstm, convnet\n"
