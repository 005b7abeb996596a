import io
import sys

import pytest

from nn_manual.errors import ConfigError, DataError
from nn_manual.messages.text import LONGEST_LINE, advice, counted, nearest, noted, one_line, quoted, shell_word, wrapped


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("plain é 漢 😀 שלום", "plain é 漢 😀 שלום"),
        ("a\nb\r\tc", "a\\nb\\r\\tc"),
        ("\x1b[31mred\x07\x9b", "\\x1b[31mred\\x07\\x9b"),
        ("\u202egpj.exe\u2066\u200b\ufeff", "\\u202egpj.exe\\u2066\\u200b\\ufeff"),
        ("\u2028\u2029\x85", "\\u2028\\u2029\\x85"),
        ("\udcff\ue000\U000e0041", "\\udcff\\ue000\\U000e0041"),
        ("\u00a01\u1680\u3000", "\\xa01\\u1680\\u3000"),
        # These count as printable, and nobody sees them.
        ("1\u2800\u3164\u115f\u1160\uffa0", "1\\u2800\\u3164\\u115f\\u1160\\uffa0"),
        ("1\u034f\u17b4\u17b5\u180b\u180d\u180f", "1\\u034f\\u17b4\\u17b5\\u180b\\u180d\\u180f"),
        ("1\ufe00\ufe0f\U00016fe4\U0001d159", "1\\ufe00\\ufe0f\\U00016fe4\\U0001d159"),
        ("1\U000e0100\U000e01ef", "1\\U000e0100\\U000e01ef"),
    ],
)
def test_what_cannot_be_printed_is_escaped(text: str, line: str) -> None:
    assert one_line(text) == line
    assert one_line(line) == line


def test_a_long_line_loses_its_middle() -> None:
    assert one_line("0123456789", 10) == "0123456789"
    assert one_line("0123456789a", 10) == "01234...6789a"
    assert one_line("\x00" * 5, 10) == "\\x00\\...\\x00"[:5] + "..." + "\\x00\\x00"[-5:]


def test_quoted_names() -> None:
    assert quoted("a'b") == '"a\'b"'
    assert quoted("\x1b") == "'\\x1b'"
    assert quoted("x" * 100) == "'" + "x" * 29 + "..." + "x" * 29 + "'"


def test_a_count_and_its_noun() -> None:
    assert [counted(number, "row") for number in (0, 1, 2, 1000)] == ["0 rows", "1 row", "2 rows", "1,000 rows"]
    assert [counted(number, "class", "classes") for number in (1, 12)] == ["1 class", "12 classes"]


def test_every_error_is_made_of_printable_lines() -> None:
    error = ConfigError("a\nb", "c\x1b", "d" * 5000)
    assert str(error) == "a\\nb\nc\\x1b\n" + "d" * 500 + "..." + "d" * 500
    assert LONGEST_LINE == 1000
    assert str(DataError("\u202e.csv: holds no rows")) == "\\u202e.csv: holds no rows"
    assert str(DataError()) == ""


@pytest.mark.parametrize(
    ("name", "known", "meant"),
    [
        ("relu", ["Linear", "ReLU"], "ReLU"),
        ("out_feature", ["in_features", "out_features"], "out_features"),
        ("xyz", ["lr", "momentum"], None),
        ("xyz", [], None),
        ("", ["lr"], None),
        ("MSE", ["CrossEntropyLoss", "MSELoss"], "MSELoss"),
        # One slip in a short name is too much for a likeness alone.
        *((slip, ["momentum", "lr", "groups"], "lr") for slip in ("l", "r", "lt", "kr", "rl", "llr", "lrr", "LR")),
        # A slip of one name comes before likeness to another.
        ("SGDs", ["SGDstep", "SGD"], "SGD"),
    ],
)
def test_nearest(name: str, known: list[str], meant: str | None) -> None:
    assert nearest(name, known) == meant


def test_nearest_of_a_giant_name_is_quick() -> None:
    assert nearest("x" * 250_000, ["optimizer", "x" * 30]) is None


@pytest.mark.parametrize(
    ("platform", "path", "word"),
    [
        ("linux", "runs/digits", "runs/digits"),
        ("linux", "my runs/it's", "'my runs/it'\"'\"'s'"),
        ("win32", r"runs\digits", r"runs\digits"),
        ("win32", r"my runs\it's", '"my runs\\it\'s"'),
    ],
)
def test_a_path_as_a_shell_takes_it(platform: str, path: str, word: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", platform)
    assert shell_word(path) == word


def test_advice() -> None:
    assert advice("relu", ["Linear", "ReLU"]) == "; did you mean 'ReLU'?"
    assert advice("xyz", ["lr", "momentum"]) == "; known: lr, momentum"
    assert advice("xyz", []) == "; it has none"


def test_wrapped() -> None:
    text = "word " * 20 + "x" * 90 + " a-b"
    lines = wrapped(text)
    assert lines == [" ".join(["word"] * 16), "  word word word word", f"  {'x' * 90}", "  a-b"]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_note_has_lines_for_a_terminal_and_is_one_line_elsewhere() -> None:
    text = f"note: each step is proven by itself: 1 (Own)\n raised {'word ' * 20}"
    assert noted(text, io.StringIO()) == f"note: each step is proven by itself: 1 (Own)\\n raised {'word ' * 20}"
    assert noted(text, Terminal()).splitlines() == [
        "note: each step is proven by itself: 1 (Own)\\n raised word word word word word",
        "  word word word word word word word word word word word word word word word",
    ]
