"""What is wrong with a file before anything in it has a meaning, and how scalars are read."""

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from no_files import NO_FILES

from nn_manual.config import load_config
from nn_manual.config.yaml_tree import MAX_BYTES, MAX_DEPTH, Errors, Place, parse_scalar, plain, read_tree
from nn_manual.errors import ConfigError

from .conftest import VALID, ErrorsOf, valid_but


def words_of(call: Callable[[], object]) -> str:
    """What Python's own error says, which depends on its version."""
    try:
        call()
    except (OverflowError, ValueError) as error:
        return str(error)
    raise AssertionError(call)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1e-3", 1e-3),
        ("1e3", 1000.0),
        ("1.", 1.0),
        (".5", 0.5),
        ("-3", -3),
        ("+3", 3),
        ("0", 0),
        ("999999999999999999", 10**18 - 1),
        ("9223372036854775807", 2**63 - 1),
        ("-9223372036854775808", -(2**63)),
        ("9223372036854775808", 2.0**63),
        ("-9223372036854775809", -(2.0**63)),
        ("5e-324", 5e-324),
        ("0e-99999", 0.0),
        ("-0.00e99999", -0.0),
        ("true", True),
        ("false", False),
        ("null", None),
        ("~", None),
        ("", None),
    ],
)
def test_a_scalar_is_what_it_looks_like(text: str, value: object) -> None:
    assert parse_scalar(text) == value
    assert type(parse_scalar(text)) is type(value)


@pytest.mark.parametrize(
    "text",
    [
        *("010", "00", "1:30", "0x10", "0o7", "1_000", ".inf", "-.inf", ".nan", "1e999", "9" * 5000, "٣"),
        *("yes", "no", "on", "off", "True", "NULL", ".", "e3", "-", "1e"),
        *("1e-99999", "-1e-400", ".1E-400", "0.0010e-400", "2e-324", f"0.{'0' * 400}1"),
    ],
)
def test_what_yaml_would_turn_into_something_else_is_text(text: str) -> None:
    assert parse_scalar(text) == text


def test_quoted_scalars_are_text() -> None:
    tree = read_tree("['1', \"true\", null, 'null', |-\n 1\n]", partial(Place, "x"), Errors())
    assert tree is None  # a block scalar has no place in a flow list
    tree = read_tree("['1', \"true\", null, 'null']", partial(Place, "x"), Errors())
    assert tree is not None
    assert plain(tree) == ["1", "true", None, "null"]


def test_places_are_those_of_keys_and_values() -> None:
    tree = read_tree("a:\n  - {b: 1,\n     c: 2}\n", partial(Place, "x"), Errors())
    assert tree is not None
    item = tree.value["a"].value[0]
    assert str(tree.value["a"].name_place) == "x:1:1"
    assert str(item.name_place) == str(item.place) == "x:2:5"
    assert str(item.value["c"].name_place) == "x:3:6"
    assert str(item.value["c"].place) == "x:3:9"


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("", "run.yaml:1:1: is empty"),
        ("# nothing\n", "run.yaml:1:1: is empty"),
        (b"seed: 1\nloss: \xe9\n", "run.yaml:2:7: is not UTF-8: invalid continuation byte 0xe9"),
        ("seed: 1\ndtype: \x07", "run.yaml:2:8: YAML doesn't allow '\\x07'"),
        ("seed: 1\nloss: a\x00b", "run.yaml:2:8: YAML doesn't allow '\\x00'"),
        ("a: b: c", "run.yaml:1:5: mapping values are not allowed here"),
        ("\ta: 1", "run.yaml:1:1: found character '\\t' that cannot start any token while scanning for the next token"),
        ('a: "\\U00110000"', "run.yaml:1:7: chr() arg not in range(0x110000)"),
        ('a: "\\UFFFFFFFF"', f"run.yaml:1:7: {words_of(lambda: chr(0xFFFFFFFF))}"),
        ("[" * (MAX_DEPTH + 2), f"run.yaml:1:{MAX_DEPTH + 2}: nested more than {MAX_DEPTH} deep"),
        ("[" * 100_000, f"run.yaml:1:{MAX_DEPTH + 2}: nested more than {MAX_DEPTH} deep"),
        ("#" * (MAX_BYTES + 1), "run.yaml: is larger than 262144 bytes, the most that a config may have"),
        ("- 1", "run.yaml:1:1: the config takes keys and values, not a list"),
        ("~", "run.yaml:1:1: the config takes keys and values, not null"),
        ("hello", "run.yaml:1:1: the config takes keys and values, not the text 'hello'"),
    ],
)
def test_text_that_is_no_config(errors_of: ErrorsOf, text: str | bytes, error: str) -> None:
    assert errors_of(text) == [error]


@pytest.mark.parametrize(
    ("text", "errors"),
    [
        (VALID + "---\nseed: 1\n", ["run.yaml:13:1: a second document begins; a config is one document"]),
        (VALID + "epochs: 3\n", ["run.yaml:13:1: duplicate key 'epochs', already given at run.yaml:5:1"]),
        (
            valid_but(11, "optimizer: {SGD: {lr: 0.1, lr: 0.2}}"),
            ["run.yaml:11:28: duplicate key 'lr', already given at run.yaml:11:19"],
        ),
        (valid_but(5, "epochs: &e 20"), ["run.yaml:5:9: anchor &e is not supported"]),
        (valid_but(5, "epochs: !!int 20"), ["run.yaml:5:9: tag 'tag:yaml.org,2002:int' is not supported"]),
        (valid_but(8, "  - !!python/name:os.system"), [
            "run.yaml:8:5: tag 'tag:yaml.org,2002:python/name:os.system' is not supported",
            "run.yaml:8:5: layer takes a name, or a name with keyword arguments, not null",
        ]),
        (valid_but(5, "epochs: *e"), [
            "run.yaml:5:1: epochs must be an integer, not the text '*e'",
            "run.yaml:5:9: alias *e is not supported: write the value out",
        ]),
        (VALID + "? [a]\n: b\n", ["run.yaml:13:3: a key must be text"]),
        (VALID + "<<: {seed: 1}\n", ["run.yaml:13:1: unknown key '<<' in the config; known: seed, dtype, data, "
         "batch_size, epochs, model, tied, layer_folder, initializer, init_from, loss, optimizer, lr_scheduler, "
         "lr_step, clip_grad_norm, clip_grad_value, slices, bitwise, "
         "shard_optimizer, sync_batch_norm, early_stopping, ema, gradient_check, "
         "checkpoint, compiled, blas, threads, loop_threads"]),
        (valid_but(2, 'dtype: "float32\\0"'), [
            "run.yaml:2:1: dtype must be 'float32' or 'float64', not the text 'float32\\x00'",
            "run.yaml:2:8: 'float32\\x00' is not one line of printable characters",
        ]),
    ],
)  # fmt: skip - one case a line
def test_what_a_config_does_not_need_is_refused(errors_of: ErrorsOf, text: str, errors: list[str]) -> None:
    assert errors_of(text) == errors


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    for path, reason in [(tmp_path / "none.yaml", "No such file or directory"), (tmp_path, "Is a directory")]:
        with pytest.raises(ConfigError) as caught:
            load_config(path)
        assert str(caught.value) == f"{path}: {reason}"
    with pytest.raises(ConfigError, match="embedded null"):
        load_config("a\0b")


@pytest.mark.parametrize(("make", "words"), NO_FILES.values(), ids=NO_FILES)
def test_what_is_no_file(tmp_path: Path, make: Callable[[Path], object], words: str) -> None:
    path = tmp_path / "a run.yaml"
    make(path)
    with pytest.raises(ConfigError) as caught:
        load_config(path)
    assert str(caught.value) == f"{path}: {words}"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_without_permission(tmp_path: Path) -> None:
    path = tmp_path / "run.yaml"
    path.write_text(VALID)
    path.chmod(0)
    with pytest.raises(ConfigError, match="Permission denied"):
        load_config(path)


def test_a_byte_order_mark_is_passed_over(errors_of: ErrorsOf) -> None:
    assert errors_of(b"\xef\xbb\xbf" + valid_but(1, "seed: -1").encode()) == [
        "run.yaml:1:1: seed must be at least 0, not -1"
    ]
