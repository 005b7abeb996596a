"""Whatever a file or an override holds, load_config returns a config or raises a ConfigError of printable lines."""

import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nn_manual.config import load_config
from nn_manual.errors import ConfigError

from .conftest import VALID

QUICK = settings(max_examples=250, deadline=None, derandomize=True)

FULL = VALID.replace("  - ReLU\n", "  - Sequential: [ReLU, {Linear: {in_features: 32, out_features: 32}}]\n") + (
    "initializer: {Constant: {value: 0.1}}\nlr_scheduler: {StepLR: {step_size: 3}}\nclip_grad_norm: 1\n"
    "early_stopping: {patience: 4, min_delta: 1e-3}\n"
)
# Tokens, numbers and words of the config: what is put together of them comes close to being valid.
PIECES = re.findall(r"\w+|\s+|[^\w\s]", FULL)
MARKS = ["", "\t", "&a ", "*a", "!!int ", "!x ", "---\n", "...\n", "<<", "? ", "|\n", "%YAML 9", "]", "\x00"]
SCALARS = ["-1", "0", "1e400", ".nan", "010", "9" * 18, "9" * 30, "~", "é", '"\\uD800"', '"\\UFFFFFFFF"']
PIECE = st.sampled_from([*sorted(set(PIECES)), *MARKS, *SCALARS])


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("fuzz") / "run.yaml"


def check(path: Path, content: bytes, *overrides: str) -> None:
    path.write_bytes(content)
    try:
        load_config(path, overrides)
    except ConfigError as error:
        for line in str(error).split("\n"):
            assert re.match(re.escape(str(path)) + r":(\d+:\d+:)? |override '|override \"", line), line
            assert line.isprintable(), line


@QUICK
@given(content=st.binary() | st.text().map(lambda text: text.encode("utf-8", "surrogatepass")))
def test_arbitrary_files(path: Path, content: bytes) -> None:
    check(path, content)


@QUICK
@given(pieces=st.lists(PIECE))
def test_files_of_the_words_of_a_config(path: Path, pieces: list[str]) -> None:
    check(path, "".join(pieces).encode())


@QUICK
@given(changes=st.lists(st.tuples(st.integers(0, len(PIECES) - 1), PIECE), min_size=1, max_size=4))
def test_valid_configs_with_a_few_words_changed(path: Path, changes: list[tuple[int, str]]) -> None:
    pieces = list(PIECES)
    for index, piece in changes:
        pieces[index] = piece
    check(path, "".join(pieces).encode())


NAME = st.sampled_from(sorted(set(re.findall(r"\w+", FULL)))) | st.text(max_size=3)


@QUICK
@given(overrides=st.lists(st.tuples(st.lists(NAME, min_size=1, max_size=4), st.lists(PIECE, max_size=4)), max_size=3))
def test_overrides(path: Path, overrides: list[tuple[list[str], list[str]]]) -> None:
    check(path, FULL.encode(), *(".".join(names) + "=" + "".join(pieces) for names, pieces in overrides))


def test_what_the_changes_start_from_is_valid(path: Path) -> None:
    path.write_text("".join(PIECES))
    load_config(path)
