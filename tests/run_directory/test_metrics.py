"""A run directory, read: the same numbers as were written, and an error that names what can't be read."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nn_manual.errors import DataError
from nn_manual.run_directory.files import JsonLines, create_run_directory, write_atomically
from nn_manual.run_directory.metrics import read_run

EPOCH = {
    "epoch": 1, "step": 23, "train_loss": 0.1 + 0.2, "validation_loss": 1 / 3, "validation_accuracy": 0.975,
    "lr": 0.1, "seconds": 0.25,
}  # fmt: skip
STEP = {
    "step": 1, "tensors": 23, "worst": "2.grad_weight", "absolute": 1e-8, "relative": 3e-7, "tolerance": 1e-5,
    "ulps": 2.5, "errors": {"0.output": [0, 0], "loss": [12.5, 0.5]},
}  # fmt: skip
COLUMNS = ["step", "tensors", "worst", "absolute", "relative", "tolerance", "ulps"]
OF_THE_LINE = ["first_step", "last_step", "num_steps", "rounding", "mismatch"]


def write_run(path: Path, epochs: list[dict[str, Any]], steps: list[dict[str, Any]]) -> Path:
    create_run_directory(path)
    write_atomically(path / "config.yaml", b"seed: 0\n")
    with JsonLines(path / "metrics.jsonl") as lines:
        for epoch in epochs:
            lines.append(epoch)
    with JsonLines(path / "gradients.jsonl") as lines:
        for step in steps:
            lines.append(step)
    return path


# Reading


def test_a_run_reads_back(tmp_path: Path) -> None:
    path = write_run(
        tmp_path / "digits" / "first",
        [EPOCH, EPOCH | {"epoch": 2, "step": 46, "train_loss": 1, "seconds": math.inf}],
        [STEP, STEP | {"step": 2, "worst": "loss", "relative": 0.0}],
    )
    run = read_run(path)
    assert run.name == "digits/first"
    assert run.config == "seed: 0\n"
    assert list(run.metrics) == list(EPOCH)
    assert run.metrics["epoch"].dtype == np.int64
    assert run.metrics["step"].tolist() == [23, 46]
    assert run.metrics["train_loss"].dtype == np.float64
    assert run.metrics["train_loss"].tolist() == [0.1 + 0.2, 1.0]
    assert run.metrics["seconds"][0] == 0.25
    assert np.isnan(run.metrics["seconds"][1])
    assert list(run.gradients) == [*COLUMNS, *OF_THE_LINE]
    assert run.gradients["worst"].tolist() == ["2.grad_weight", "loss"]
    assert run.gradients["relative"].tolist() == [3e-7, 0.0]


def test_a_run_has_the_optional_columns_that_it_wrote(tmp_path: Path) -> None:
    regression = {key: value for key, value in EPOCH.items() if key != "validation_accuracy"}
    run = read_run(write_run(tmp_path / "run", [regression], []))
    assert list(run.metrics) == ["epoch", "step", "train_loss", "validation_loss", "lr", "seconds"]
    assert {key: column.shape for key, column in run.gradients.items()} == dict.fromkeys([*COLUMNS, *OF_THE_LINE], (0,))


def test_the_ledger_is_a_table_of_tensors_by_steps(tmp_path: Path) -> None:
    steps = [{"0.output": [0, 0], "loss": [12.5, 0.5]}, {"0.output": [1e99, 3e-5], "loss": [0.0, 0.0]}]
    ledger = read_run(write_run(tmp_path / "run", [EPOCH], [STEP | {"errors": errors} for errors in steps])).ledger
    assert ledger.tensors == ("0.output", "loss")
    assert ledger.percent.tolist() == [[0, 12.5], [1e99, 0]]
    assert ledger.ulps.tolist() == [[0, 0.5], [3e-5, 0]]
    assert ledger.percent.dtype == ledger.ulps.dtype == np.float64


def test_the_ledger_of_no_step_is_empty(tmp_path: Path) -> None:
    ledger = read_run(write_run(tmp_path / "run", [EPOCH], [])).ledger
    assert ledger.tensors == ()
    assert ledger.percent.shape == ledger.ulps.shape == (0, 0)


def test_a_run_that_has_just_begun_reads_as_empty(tmp_path: Path) -> None:
    run = read_run(write_run(tmp_path / "run", [], []))
    assert {key: column.shape for key, column in run.metrics.items()} == dict.fromkeys(
        ["epoch", "step", "train_loss", "lr", "seconds"], (0,)
    )


def test_a_run_says_where_it_stopped(tmp_path: Path) -> None:
    path = write_run(tmp_path / "run", [EPOCH], [STEP])
    assert read_run(path).stop is None  # under way, or killed
    (path / "summary.json").write_text('{"epoch": 10, "epochs": 1000, "step": 1234, "stopped": "interrupted"}')
    assert read_run(path).stop == (10, 1000, "interrupted")
    (path / "summary.json").write_text('{"epoch": 20, "step": 460, "train_loss": 0.5}')
    assert read_run(path).stop is None


@pytest.mark.parametrize(
    ("summary", "problem"),
    [
        ("[1]", "expected a JSON object, not [1]"),
        ("{", "is not JSON: Expecting property name"),
        ('{"stopped": "interrupted", "epochs": 3}', '"epoch" is missing'),
        ('{"stopped": "interrupted", "epoch": 1, "epochs": "3"}', '"epochs" is "3", expected a 64-bit integer'),
        ('{"stopped": true, "epoch": 1, "epochs": 3}', '"stopped" is true, expected a string'),
    ],
)
def test_a_summary_that_is_none_is_named(tmp_path: Path, summary: str, problem: str) -> None:
    path = write_run(tmp_path / "run", [EPOCH], [STEP])
    (path / "summary.json").write_text(summary)
    with pytest.raises(DataError) as caught:
        read_run(path)
    assert str(caught.value).startswith(f"{path / 'summary.json'}: {problem}")


def test_a_directory_named_in_no_encoding_has_a_name_that_prints(tmp_path: Path) -> None:
    run = read_run(write_run(Path(os.fsdecode(os.fsencode(tmp_path) + b"/a\xffb")), [], []))
    assert run.name == f"{tmp_path.name}/a\N{REPLACEMENT CHARACTER}b"


@pytest.mark.parametrize("torn_at", [1, 30, -2])
def test_the_torn_end_of_a_file_is_left_out(tmp_path: Path, torn_at: int) -> None:
    path = write_run(tmp_path / "run", [EPOCH], [STEP])
    line = json.dumps(STEP | {"step": 2}).encode() + b"\n"
    with (path / "gradients.jsonl").open("ab") as file:
        file.write(line[:torn_at])
    assert read_run(path).gradients["step"].tolist() == [1]


def test_a_last_line_that_lacks_only_its_newline_counts(tmp_path: Path) -> None:
    path = write_run(tmp_path / "run", [EPOCH], [STEP])
    (path / "gradients.jsonl").write_text(json.dumps(STEP))
    assert read_run(path).gradients["step"].tolist() == [1]


def gradient_line(**changes: Any) -> bytes:
    return json.dumps(STEP | changes).encode() + b"\n"


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        (b"\n", "is not JSON: Expecting value"),
        (b"loss 0.5\n", "is not JSON: Expecting value"),
        (b'{"step": 1,\n', "is not JSON: Expecting property name"),
        (b"\xff\xfe\n", "is not JSON: 'utf-8' codec can't decode byte 0xff"),
        (b"[" * 100_000 + b"\n", "is not JSON: maximum recursion depth"),
        (b'{"step": NaN}\n', "is not JSON: NaN is not a number in JSON"),
        (b"[1, 2]\n", "expected a JSON object, not [1, 2]"),
        (b'{"errors": {"0.output": [0, 0], "loss": [0, 0]}}\n', '"step" is missing'),
        (b'{"step": 1}\n', '"errors" is missing'),
        (gradient_line(step=1.5), '"step" is 1.5, expected a 64-bit integer'),
        (gradient_line(step=True), '"step" is true, expected a 64-bit integer'),
        (gradient_line(step=None), '"step" is null, expected a 64-bit integer'),
        (gradient_line(step=2**63), '"step" is 9223372036854775808, expected a 64-bit integer'),
        (gradient_line(relative=10**400), '"relative" is 1' + 29 * "0" + "..." + 30 * "0" + ", expected a number"),
        (gradient_line(relative="0.1"), '"relative" is "0.1", expected a number'),
        (gradient_line(relative=[0.1]), '"relative" is [0.1], expected a number'),
        (gradient_line(worst=3), '"worst" is 3, expected a string'),
        *(
            (gradient_line(errors=errors), f'"errors" is {shown}, expected {{tensor: [percent, ULPs]}}')
            for errors, shown in [
                (None, "null"),
                ([0, 0], "[0, 0]"),
                ({"loss": 0}, '{"loss": 0}'),
                ({"loss": "00"}, '{"loss": "00"}'),
                ({"loss": [0]}, '{"loss": [0]}'),
                ({"0.output": [0], "loss": [0, 0, 0]}, '{"0.output": [0], "loss": [0, 0, 0]}'),
                ({"loss": [0, "0"]}, '{"loss": [0, "0"]}'),
                ({"loss": [0, None]}, '{"loss": [0, null]}'),
                ({"loss": [0, True]}, '{"loss": [0, true]}'),
                ({"loss": [0, 10**400]}, '{"loss": [0, 1' + 16 * "0" + "..." + 28 * "0" + "]}"),
            ]
        ),
        (gradient_line(errors={"loss": [0, 0]}), '"errors" has other tensors than the first line'),
        (gradient_line(errors={"loss": [0, 0], "0.output": [0, 0]}), '"errors" has other tensors than the first line'),
    ],
)
def test_a_bad_line_is_named_with_its_number(tmp_path: Path, line: bytes, problem: str) -> None:
    path = write_run(tmp_path / "run", [EPOCH], [STEP])
    with (path / "gradients.jsonl").open("ab") as file:
        file.write(line + gradient_line(step=3))
    with pytest.raises(DataError) as caught:
        read_run(path)
    assert str(caught.value).startswith(f"{path / 'gradients.jsonl'}:2: {problem}")


def test_a_last_line_that_is_bad_but_whole_is_not_taken_for_torn(tmp_path: Path) -> None:
    path = write_run(tmp_path / "run", [EPOCH], [STEP])
    with (path / "gradients.jsonl").open("ab") as file:
        file.write(b'{"step": 2,\n')
    with pytest.raises(DataError, match=r"gradients.jsonl:2: is not JSON"):
        read_run(path)


@pytest.mark.parametrize("first", [EPOCH, {key: EPOCH[key] for key in EPOCH if key != "validation_loss"}])
def test_an_optional_column_is_in_every_line_or_in_none(tmp_path: Path, first: dict[str, Any]) -> None:
    second = EPOCH if first is not EPOCH else {key: EPOCH[key] for key in EPOCH if key != "validation_loss"}
    path = write_run(tmp_path / "run", [first, second], [])
    number = 1 if second is EPOCH else 2
    with pytest.raises(DataError, match=rf'metrics.jsonl:{number}: "validation_loss" is missing$'):
        read_run(path)


@pytest.mark.parametrize("missing", ["config.yaml", "metrics.jsonl", "gradients.jsonl"])
def test_a_missing_file_is_named(tmp_path: Path, missing: str) -> None:
    path = write_run(tmp_path / "run", [EPOCH], [STEP])
    (path / missing).unlink()
    with pytest.raises(DataError) as caught:
        read_run(path)
    assert str(caught.value) == f"{path / missing}: can't be read: No such file or directory"


def test_a_config_that_is_no_text_is_named(tmp_path: Path) -> None:
    path = write_run(tmp_path / "run", [EPOCH], [STEP])
    (path / "config.yaml").write_bytes(b"seed: \xff")
    with pytest.raises(DataError, match=r"config.yaml: is not UTF-8 text: .* in position 6"):
        read_run(path)


@settings(max_examples=150, deadline=None, derandomize=True)
@given(st.data())
def test_no_damage_to_a_file_escapes_as_another_error(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    path = write_run(tmp_path_factory.mktemp("runs") / "run", [EPOCH] * 2, [STEP] * 2)
    file = path / data.draw(st.sampled_from(["config.yaml", "metrics.jsonl", "gradients.jsonl"]))
    content = bytearray(file.read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        start = data.draw(st.integers(0, len(content)))
        content[start : start + data.draw(st.integers(0, 8))] = data.draw(
            st.binary(max_size=3) | st.sampled_from([b"9" * 5000, b'"', b"[", b"{", b"e999", b"null", b"-", b"\n"])
        )
    file.write_bytes(content)
    try:
        run = read_run(path)
    except DataError as error:
        message = str(error)
    else:
        message = str(file)
        assert len({column.size for column in run.metrics.values()}) == 1
        num_steps = run.gradients["step"].size
        assert {column.size for column in run.gradients.values()} == {num_steps}
        assert run.ledger.percent.shape == run.ledger.ulps.shape == (num_steps, len(run.ledger.tensors))
    assert message.startswith(str(file))


def test_reading_and_writing_needs_neither_torch_nor_matplotlib() -> None:
    code = (
        "import sys; import nn_manual.run_directory.files, nn_manual.run_directory.metrics, nn_manual.plotting;"
        "print([name for name in ('torch', 'matplotlib', 'safetensors', 'sklearn') if name in sys.modules])"
    )
    assert subprocess.check_output([sys.executable, "-c", code], text=True) == "[]\n"
