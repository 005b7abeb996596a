"""The loss curves of the files in config/, as they were when somebody last looked at them.

After a change that is meant to move a curve: python tests/trainer/test_golden.py NAME
"""

from __future__ import annotations

import hashlib
import json
import sys
import tempfile
from pathlib import Path

import pytest
from images import first_images

from nn_manual.config import RunConfig, load_config
from nn_manual.data import FashionMNIST, MiddleWord, Text
from nn_manual.data.text import python_manual
from nn_manual.run.new_run import run
from nn_manual.run_directory.metrics import read_run

ROOT = Path(__file__).parents[2]
GOLDEN = ROOT / "tests" / "golden"

#: By config, what makes its run short enough for a second or two, and for rounding not to have grown yet.
SHORTER = {
    "autoencoder": ["epochs=4"],
    "brackets": ["epochs=1"],
    "convnet": ["epochs=1", "dtype=float64"],
    "denoising_autoencoder": ["epochs=3"],
    "diabetes": ["epochs=15"],
    "digits": ["epochs=5"],
    "digits_convnet": ["epochs=2"],
    "digits_encoder": ["epochs=2"],
    "digits_lstm": ["epochs=2"],
    "fashion_mnist": ["epochs=1", "dtype=float64"],
    "fizzbuzz": ["epochs=8"],
    "gpt": ["epochs=1", "data.Text.stride=1024"],
    "huber": ["epochs=15"],
    "lenet5": ["epochs=1", "dtype=float64", "compiled=false"],
    "lstm": ["epochs=1", "data.Text.stride=512"],
    "resnet": ["epochs=1", "dtype=float64", "compiled=false"],
    "spirals": ["epochs=8"],
    "trace_relu": ["epochs=30"],
    "unet": ["epochs=1"],
    "vit": ["epochs=1"],
    "word_vectors": ["epochs=1", "data.MiddleWord.validation_fraction=0.8"],
}

#: These see a part of the photographs.
OF_FIRST_IMAGES = ("convnet", "lenet5", "resnet")

#: Relative. Another BLAS adds in another order, and training carries the difference on. Over these epochs five of
#: OpenBLAS's kernels moved a loss by at most 2e-7 in float32 and 2e-16 in float64. But where a ReLU's input lies within
#: rounding of zero, one example's gradient is there or not: in float32 FashionMNIST in batches of 512 was seen to end
#: 2e-3 apart, so it is held in float64. A mistake moves more: an lr of 0.101 for 0.1 takes digits' curve 2e-3 away,
#: another seed 7e-2.
TOLERANCES = {"float32": 1e-3, "float64": 1e-12}


def config_of(name: str, directory: Path) -> RunConfig:
    """Unchecked, for speed: checking changes nothing, says test_run. What the run reads may be in `directory`."""
    config = load_config(ROOT / "config" / f"{name}.yaml", [*SHORTER[name], "gradient_check.every=0"])
    if name in OF_FIRST_IMAGES and isinstance(config.data, FashionMNIST) and config.data.folder.exists():
        config.data.folder = first_images(config.data.folder, directory / "images")
    return config


def losses(config: RunConfig, directory: Path) -> dict[str, list[float]]:
    """The loss curves of a run into `directory`."""
    run(config, directory)
    metrics = read_run(directory).metrics
    return {name: values.tolist() for name, values in metrics.items() if name.endswith("_loss")}


def text_sha256(config: RunConfig) -> str | None:
    """Of the text that a config without a file trains on; it differs between versions of Python."""
    return hashlib.sha256(python_manual().encode()).hexdigest() if isinstance(config.data, Text | MiddleWord) else None


def test_every_config_has_a_curve() -> None:
    configs = {path.stem for path in (ROOT / "config").glob("*.yaml")}
    assert configs == SHORTER.keys() == {path.stem for path in GOLDEN.glob("*.json")}


@pytest.mark.slow
@pytest.mark.parametrize("name", SHORTER)
def test_curve(name: str, tmp_path: Path) -> None:
    """It alone sees a loss curve of config/ that has changed."""
    config = config_of(name, tmp_path)
    if isinstance(config.data, FashionMNIST) and not config.data.folder.exists():
        pytest.skip(f"{config.data.folder} isn't there: install Debian's dataset-fashion-mnist")
    golden = json.loads((GOLDEN / f"{name}.json").read_text())
    if golden.pop("text_sha256", None) != text_sha256(config):
        pytest.skip("the manual of this Python is another text than the one that the curve holds for")
    found = losses(config, tmp_path / "run")
    assert found.keys() == golden.keys()
    for curve in golden:
        assert found[curve] == pytest.approx(golden[curve], rel=TOLERANCES[config.dtype], abs=0)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_main_job(dtype: str, tmp_path: Path) -> None:
    """config/digits.yaml to its end, every gradient of every step equal to torch's, and 97% right. README says how many
    tensors a step that is.
    """
    summary = run(load_config(ROOT / "config" / "digits.yaml", [f"dtype={dtype}"]), tmp_path / "run")
    assert summary["validation_accuracy"] >= 0.97
    check = summary["gradient_check"]
    assert (check["steps"], check["tensors"], check["mismatches"]) == (460, 460 * 19, 0)
    assert "19 tensors a step" in (ROOT / "README.md").read_text(encoding="utf-8")


def record(names: list[str]) -> None:
    """Write the curves of these configs anew."""
    for name in names:
        with tempfile.TemporaryDirectory() as directory:
            config = config_of(name, Path(directory))
            recorded: dict[str, object] = {**losses(config, Path(directory, "run"))}
        if (sha256 := text_sha256(config)) is not None:
            recorded["text_sha256"] = sha256
        lines = ",\n".join(f'  "{key}": {json.dumps(value)}' for key, value in recorded.items())
        (GOLDEN / f"{name}.json").write_text(f"{{\n{lines}\n}}\n")


if __name__ == "__main__":
    record(sys.argv[1:] or list(SHORTER))
