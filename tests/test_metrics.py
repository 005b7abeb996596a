"""The run directory: what is written reads back to the bit, and nothing half-written is ever found."""

from __future__ import annotations

import hashlib
import json
import math
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.torch
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from nn_manual.errors import DataError
from nn_manual.metrics import (
    JsonLines,
    create_run_directory,
    read_run,
    read_weights,
    write_atomically,
    write_weights,
)

EPOCH = {
    "epoch": 1, "step": 23, "train_loss": 0.1 + 0.2, "validation_loss": 1 / 3, "validation_accuracy": 0.975,
    "lr": 0.1, "seconds": 0.25,
}  # fmt: skip
STEP = {
    "step": 1, "tensors": 23, "worst": "2.grad_weight", "absolute": 1e-8, "relative": 3e-7, "tolerance": 1e-5,
    "ulps": 2.5,
}  # fmt: skip


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


# The run directory


def test_a_run_directory_is_made_with_its_parents(tmp_path: Path) -> None:
    assert create_run_directory(tmp_path / "runs" / "digits" / "now") == tmp_path / "runs" / "digits" / "now"
    assert (tmp_path / "runs" / "digits" / "now").is_dir()


def test_an_empty_directory_is_taken_as_it_is(tmp_path: Path) -> None:
    assert create_run_directory(tmp_path) == tmp_path


def test_a_directory_that_holds_something_is_refused(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").touch()
    with pytest.raises(DataError) as caught:
        create_run_directory(tmp_path)
    assert str(caught.value) == f"{tmp_path}: the run directory exists and isn't empty, it holds notes.txt"
    assert caught.value.exit_status == 5


@pytest.mark.parametrize("below", [".", "run"])
def test_a_file_in_the_way_is_refused(tmp_path: Path, below: str) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(DataError, match=r"file.*: the run directory can't be made: (File exists|Not a directory)"):
        create_run_directory(tmp_path / "file" / below)


def test_a_directory_that_may_not_be_made_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Permissions do not bind the administrator, who runs tests in containers.
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "mkdir", refuse)
    with pytest.raises(DataError, match=r"run: the run directory can't be made: Permission denied"):
        create_run_directory(tmp_path / "run")


# Atomic files


def test_a_file_is_written_and_overwritten_in_full(tmp_path: Path) -> None:
    path = tmp_path / "summary.json"
    write_atomically(path, b"first, and longer")
    write_atomically(path, b"second")
    assert path.read_bytes() == b"second"
    assert os.listdir(tmp_path) == ["summary.json"]


def test_a_file_has_the_permissions_that_open_gives(tmp_path: Path) -> None:
    (tmp_path / "opened").touch()
    write_atomically(tmp_path / "written", b"")
    assert (tmp_path / "written").stat().st_mode == (tmp_path / "opened").stat().st_mode


@pytest.mark.parametrize(("owner", "failing"), [(os, "fsync"), (Path, "replace")])
@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_a_failure_leaves_the_old_file_and_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, owner: object, failing: str, error: BaseException
) -> None:
    path = tmp_path / "model.safetensors"
    path.write_bytes(b"old")

    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr(owner, failing, fail)
    with pytest.raises((DataError, KeyboardInterrupt)) as caught:
        write_atomically(path, b"new")
    message = f"{path}: can't be written: No space left on device" if isinstance(error, OSError) else ""
    assert str(caught.value) == message
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["model.safetensors"]


@pytest.mark.parametrize(
    ("path", "reason"), [("missing/file", "No such file or directory"), (".", "Is a directory"), ("a/b", "Not a dir")]
)
def test_an_impossible_place_is_named(tmp_path: Path, path: str, reason: str) -> None:
    (tmp_path / "a").touch()
    (tmp_path / "full").mkdir()
    target = tmp_path / path if path != "." else tmp_path / "full"
    with pytest.raises(DataError, match=f"{target}: can't be written: {reason}"):
        write_atomically(target, b"")
    assert sorted(os.listdir(tmp_path)) == ["a", "full"]


OVERWRITE_FOREVER = """
import sys
from pathlib import Path
import numpy as np
from nn_manual.metrics import write_weights
path, value = Path(sys.argv[1]), 0
while True:
    write_weights(path, {"0.weight": np.full(100_000, value)})
    if value == 0:
        print("written", flush=True)
    value += 1
"""


def test_a_process_killed_while_overwriting_leaves_a_whole_file(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    last_values = []
    for iteration in range(8):
        command = [sys.executable, "-c", OVERWRITE_FOREVER, str(path)]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == b"written\n"
            time.sleep(0.02 + 0.013 * iteration)  # long enough for some files, and each time at another point
            process.send_signal(signal.SIGKILL)
        weight = read_weights(path)["0.weight"]
        assert weight.shape == (100_000,)
        assert np.all(weight == weight[0])
        last_values.append(weight[0])
    assert max(last_values) > 0  # it was overwriting


# JSON lines


def test_lines_read_back_to_the_bit(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    with JsonLines(path) as lines:
        lines.append(EPOCH)
        lines.append({"epoch": 2, "loss": 5e-324})
    first, second = path.read_text().splitlines()
    assert json.loads(first) == EPOCH
    assert '"train_loss": 0.30000000000000004' in first
    assert second == '{"epoch": 2, "loss": 5e-324}'


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_what_is_not_finite_is_null(tmp_path: Path, value: float) -> None:
    with JsonLines(tmp_path / "lines") as lines:
        lines.append({"epoch": 1, "train_loss": value, "name": "a"})
    assert (tmp_path / "lines").read_text() == '{"epoch": 1, "train_loss": null, "name": "a"}\n'


def test_lines_wait_in_memory_and_reach_the_file_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(JsonLines, "BUFFERED_LINES", 3)
    path = tmp_path / "lines"
    with JsonLines(path) as lines:
        seen = []
        for step in range(5):
            lines.append({"step": step})
            seen.append(path.read_bytes().count(b"\n"))
        assert seen == [0, 0, 3, 3, 3]
        lines.flush()
        assert path.read_bytes().endswith(b'{"step": 4}\n')
        lines.append({"step": 5})
    assert [json.loads(line)["step"] for line in path.read_text().splitlines()] == [0, 1, 2, 3, 4, 5]


def test_an_exception_in_the_block_still_writes_what_was_appended(tmp_path: Path) -> None:
    def interrupted() -> None:
        with JsonLines(tmp_path / "lines") as lines:
            lines.append({"step": 1})
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert (tmp_path / "lines").read_text() == '{"step": 1}\n'


def test_a_number_that_json_does_not_know_is_a_mistake_of_the_caller(tmp_path: Path) -> None:
    with JsonLines(tmp_path / "lines") as lines, pytest.raises(TypeError, match="float32 is not JSON serializable"):
        lines.append({"loss": np.float32(1)})
    assert (tmp_path / "lines").read_bytes() == b""


def test_a_file_that_exists_is_not_appended_to(tmp_path: Path) -> None:
    (tmp_path / "lines").write_text("kept")
    with pytest.raises(DataError, match="lines: can't be written: File exists"):
        JsonLines(tmp_path / "lines")
    assert (tmp_path / "lines").read_text() == "kept"


FILL_THE_DISK = """
import resource, signal, sys
from pathlib import Path
from nn_manual.errors import DataError
from nn_manual.metrics import JsonLines
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # the write returns an error instead
resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))
try:
    with JsonLines(Path(sys.argv[1])) as lines:
        for step in range(3):
            lines.append({"step": step})
        lines.flush()
        for step in range(100):
            lines.append({"step": step})
except DataError as error:
    print(error)
"""


def test_a_full_disk_cuts_no_line_in_two(tmp_path: Path) -> None:
    path = tmp_path / "lines"
    result = subprocess.run(
        [sys.executable, "-c", FILL_THE_DISK, str(path)], capture_output=True, text=True, check=True
    )
    assert result.stdout == f"{path}: can't be written: File too large\n"
    assert result.stderr == ""
    assert path.read_text() == '{"step": 0}\n{"step": 1}\n{"step": 2}\n'


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
    assert list(run.gradients) == list(STEP)
    assert run.gradients["worst"].tolist() == ["2.grad_weight", "loss"]
    assert run.gradients["relative"].tolist() == [3e-7, 0.0]


def test_a_run_has_the_optional_columns_that_it_wrote(tmp_path: Path) -> None:
    regression = {key: value for key, value in EPOCH.items() if key != "validation_accuracy"}
    run = read_run(write_run(tmp_path / "run", [regression], []))
    assert list(run.metrics) == ["epoch", "step", "train_loss", "validation_loss", "lr", "seconds"]
    assert {key: column.shape for key, column in run.gradients.items()} == dict.fromkeys(STEP, (0,))


def test_a_run_that_has_just_begun_reads_as_empty(tmp_path: Path) -> None:
    run = read_run(write_run(tmp_path / "run", [], []))
    assert {key: column.shape for key, column in run.metrics.items()} == dict.fromkeys(
        ["epoch", "step", "train_loss", "lr", "seconds"], (0,)
    )


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
        (b"{}\n", '"step" is missing'),
        (gradient_line(step=1.5), '"step" is 1.5, expected a 64-bit integer'),
        (gradient_line(step=True), '"step" is true, expected a 64-bit integer'),
        (gradient_line(step=None), '"step" is null, expected a 64-bit integer'),
        (gradient_line(step=2**63), '"step" is 9223372036854775808, expected a 64-bit integer'),
        (gradient_line(relative=10**400), '"relative" is 1' + 39 * "0" + "..., expected a number"),
        (gradient_line(relative="0.1"), '"relative" is "0.1", expected a number'),
        (gradient_line(relative=[0.1]), '"relative" is [0.1], expected a number'),
        (gradient_line(worst=3), '"worst" is 3, expected a string'),
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
        assert len({column.size for column in run.gradients.values()}) == 1
    assert message.startswith(str(file))


# Weights


WEIGHTS: dict[str, Callable[[], Any]] = {
    "transposed": lambda: np.arange(6.0).reshape(2, 3).T,
    "strided": lambda: np.arange(10, dtype=np.float32)[::3],
    "reversed": lambda: np.arange(4)[::-1],
    "scalar": lambda: np.array(2.5, np.float32),
    "empty": lambda: np.zeros((0, 3)),
}


def test_weights_read_back_whatever_their_memory_layout(tmp_path: Path) -> None:
    weights = {f"0.{name}": make() for name, make in WEIGHTS.items()}
    digest = write_weights(tmp_path / "model.safetensors", weights)
    read = read_weights(tmp_path / "model.safetensors", digest)
    assert read.keys() == weights.keys()
    for name, array in weights.items():
        assert read[name].dtype == array.dtype
        assert read[name].shape == array.shape
        assert np.array_equal(read[name], array)


def test_weights_are_a_state_dict_for_torch(tmp_path: Path) -> None:
    write_weights(tmp_path / "model.safetensors", {"0.weight": np.arange(6.0).reshape(2, 3).T})
    state = safetensors.torch.load_file(tmp_path / "model.safetensors")
    assert state["0.weight"].tolist() == [[0, 3], [1, 4], [2, 5]]


def test_the_digest_is_that_of_the_file_and_of_the_weights_alone(tmp_path: Path) -> None:
    weights = {name: make() for name, make in WEIGHTS.items()}
    digest = write_weights(tmp_path / "first", weights)
    assert digest == hashlib.sha256((tmp_path / "first").read_bytes()).hexdigest()
    assert write_weights(tmp_path / "second", dict(reversed(weights.items()))) == digest


def test_a_flipped_bit_is_found(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    digest = write_weights(path, {"0.weight": np.arange(6.0)})
    data = bytearray(path.read_bytes())
    data[-3] ^= 1
    path.write_bytes(data)
    assert read_weights(path)["0.weight"][-1] != 5  # loads all the same
    with pytest.raises(DataError, match=rf"{path}: is corrupt: its SHA-256 is .*, recorded was {digest}"):
        read_weights(path, digest)


@pytest.mark.parametrize("length", [0, 5, 40, -1])
def test_a_cut_file_is_refused(tmp_path: Path, length: int) -> None:
    path = tmp_path / "model.safetensors"
    write_weights(path, {"0.weight": np.arange(6.0)})
    path.write_bytes(path.read_bytes()[:length])
    with pytest.raises(DataError, match=f"{path}: is not a whole safetensors file"):
        read_weights(path)


def test_a_dtype_that_numpy_lacks_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    safetensors.torch.save_file({"0.weight": torch.zeros(2, dtype=torch.bfloat16)}, path)
    with pytest.raises(DataError, match=f"{path}: holds the dtype 'BF16', which numpy does not have"):
        read_weights(path)


def test_missing_weights_are_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=f"{tmp_path / 'no'}: can't be read: No such file or directory"):
        read_weights(tmp_path / "no")


def test_reading_and_writing_needs_neither_torch_nor_matplotlib() -> None:
    code = (
        "import sys; import nn_manual.metrics, nn_manual.plotting;"
        "print([name for name in ('torch', 'matplotlib', 'safetensors', 'sklearn') if name in sys.modules])"
    )
    assert subprocess.check_output([sys.executable, "-c", code], text=True) == "[]\n"
