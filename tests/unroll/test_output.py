"""Where a script may not be written: over what the run reads."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from nn_manual import cli

CONFIG = """\
data: {Arrays: {file: data.npz, input: input, target: target, task: classification}}
batch_size: 4
epochs: 1
model: [Linear: {in_features: 2, out_features: 2}]
loss: CrossEntropyLoss
optimizer: SGD
"""


@pytest.mark.parametrize(
    ("options", "lost"), [(["run.yaml"], "run.yaml"), (["data.npz"], "data.npz"), (["data.py", "--run"], "data.npz")]
)
def test_what_the_run_reads_stays(
    options: list[str], lost: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "run.yaml").write_text(CONFIG)
    np.savez(tmp_path / "data.npz", input=np.ones((8, 2), np.float32), target=np.arange(8) % 2)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    output, *others = options
    assert cli.main(["unroll", str(tmp_path / "run.yaml"), "-o", str(tmp_path / output), *others]) == 2
    assert f"{lost} is read by the run, and would be lost" in capsys.readouterr().err
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
    assert cli.main(["unroll", str(tmp_path / "run.yaml"), "-o", str(tmp_path / "data.py")]) == 0
