"""Whatever a file or an override holds, load_config returns a config or raises a ConfigError of placed lines.

`python scripts/benchmark.py reliability configs` draws more of the same.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from benchmarks.reliability import configs
from benchmarks.reliability.configs import SOURCES, Tally, drawn, outcome
from benchmarks.reliability.drawn_configs import FULL, MARKS, SCALARS, WORDS
from hypothesis import given, settings
from hypothesis import strategies as st
from work import num_calls

from nn_manual.config import load_config
from nn_manual.errors import ConfigError

#: Of each source; those of the slowest are fewer.
NUM_CONFIGS = {"bytes changed": 1250, "grammar of YAML": 1500, "keys and types": 400}

#: Functions that are called to refuse a bomb: the longest, of 100 kB, takes 12 million. What multiplies takes far more.
MOST_CALLS = 40_000_000


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("fuzz") / "run.yaml"


@pytest.mark.slow
@pytest.mark.parametrize("source", SOURCES)
def test_drawn_configs(source: str) -> None:
    """It alone has configs that are drawn at random."""
    tally = drawn(source, 1000, NUM_CONFIGS[source])
    assert tally.faults == {}
    assert tally.num_loaded >= 5
    assert tally.num_refused >= 250
    assert tally.num_loaded + tally.num_refused >= NUM_CONFIGS[source]


NAME = st.sampled_from([word for word in WORDS if word.isidentifier()]) | st.text(max_size=3)
PIECE = st.sampled_from([*WORDS, *MARKS, *SCALARS])


@pytest.mark.slow
@settings(max_examples=250, deadline=None, derandomize=True, database=None)
@given(overrides=st.lists(st.tuples(st.lists(NAME, min_size=1, max_size=4), st.lists(PIECE, max_size=4)), max_size=3))
def test_overrides(path: Path, overrides: list[tuple[list[str], list[str]]]) -> None:
    """It alone draws overrides."""
    path.write_text(FULL)
    try:
        load_config(path, [".".join(names) + "=" + "".join(pieces) for names, pieces in overrides])
    except ConfigError as error:
        for line in str(error).split("\n"):
            assert re.match(re.escape(str(path)) + r":(\d+:\d+:)? |override '|override \"", line), line
            assert line.isprintable(), line


def test_the_file_with_every_key_is_valid(path: Path) -> None:
    assert outcome(path, FULL.encode()).num_loaded == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    "content",
    [
        "[" * 250_000,
        "a: 1\n" * 20_000,
        "model:\n" + "  - Linear: {a: 1}\n" * 5_000,
        FULL.replace("times: 2", "times: 1000").replace("[Tanh,", "[" + "Tanh," * 10_000),
        FULL.replace("{times: 2, layers: [Tanh,", "{times: 999, layers: [" + "Repeat: {times: 999, layers: [" * 3)
        .replace("p: 0.1}]}", "p: 0.1}]}" + "]}" * 3),
        FULL.replace("momentum: 0.9", "groups: [" + "{parameters: x, lr: -1}, " * 5_000 + "]"),
        FULL.replace("- Repeat", "- LSTM: {input_size: 1, hidden_size: 1, num_layers: 1099511627776}\n  - Repeat"),
        "a: &a [x, x]\nb: &b [*a, *a]\nc: &c [*b, *b]\nd: [*c, *c]\n",
    ],
    ids=["deep", "the same key", "the same error", "many copies", "copies of copies", "groups", "LSTMs", "aliases"],
)  # fmt: skip - one case a line
def test_bombs(path: Path, content: str) -> None:
    """It alone has configs whose aliases multiply."""
    tallies: list[Tally] = []
    calls = num_calls(lambda: tallies.append(outcome(path, content.encode())))
    assert (tallies[0].num_refused, tallies[0].faults) == (1, {})
    assert calls < MOST_CALLS


def test_what_is_wrong_with_a_config_is_told(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def load(path: Path) -> None:
        raise {b"a": KeyError("x"), b"b": ConfigError("no place"), b"c": ConfigError(f"{path}:1:1: right")}[
            path.read_bytes()
        ]

    monkeypatch.setattr(configs, "load_config", load)
    (fault,) = outcome(path, b"a").faults
    assert re.fullmatch(r"KeyError at .*test_fuzz\.py:\d+: 'x'", fault)
    assert outcome(path, b"b").faults == {"without a place: 'no place'": b"b"}
    assert outcome(path, b"c").faults == {}
    both = Tally(1, 2, (0.5, b"slow"), {"x": b"short"}) + Tally(3, 4, (0.1, b""), {"x": b"longer", "y": b""})
    assert both == Tally(4, 6, (0.5, b"slow"), {"x": b"short", "y": b""})


@pytest.mark.parametrize(("seconds", "is_soon"), [(20.0, True), (20.1, False)])
def test_a_config_that_takes_long_is_a_fault(
    seconds: float, is_soon: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    tally = Tally(1, 1, (seconds, b"slow one"))
    monkeypatch.setattr(configs, "on_all_cores", lambda _, parts: [tally for _ in parts])
    assert configs.main() == is_soon
    assert ("took more than 20 s: b'slow one'" in capsys.readouterr().out) != is_soon
