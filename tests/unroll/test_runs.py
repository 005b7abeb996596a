"""The script of each file in config/, run with NumPy alone, prints the losses of the run to the last bit."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from images import first_images
from slow_cases import slow

from nn_manual.config import RunConfig, load_config
from nn_manual.data import FashionMNIST
from nn_manual.errors import ConfigError
from nn_manual.run.loading import load
from nn_manual.run.training_run import TrainingRun
from nn_manual.unroll.command import unroll, write

ROOT = Path(__file__).parents[2]

#: By config, the overrides that make its run short: a few steps, and a smaller last batch in each epoch.
SHORTER = {
    "autoencoder": ["epochs=1"],
    "brackets": ["epochs=1", "data.Brackets.num_examples=200"],
    "convnet": ["epochs=1", "batch_size=48"],
    "denoising_autoencoder": ["epochs=1"],
    "diabetes": ["epochs=3"],
    "digits": ["epochs=3"],
    "digits_convnet": ["epochs=1"],
    "digits_encoder": ["epochs=1"],
    "digits_lstm": ["epochs=1"],
    "fashion_mnist": ["epochs=1"],
    "fizzbuzz": ["epochs=2"],
    "gpt": ["epochs=2", "data.Text.stride=8192", "batch_size=5", "lr_scheduler=null"],
    "huber": ["epochs=3"],
    "lenet5": ["epochs=1", "batch_size=48", "compiled=false"],
    "lstm": ["epochs=2", "data.Text.stride=2048", "data.Text.context=20", "batch_size=12"],
    "resnet": ["epochs=1", "batch_size=48", "compiled=false"],
    "spirals": ["epochs=3"],
    "trace_relu": ["epochs=5"],
    "unet": ["epochs=1"],
    "vit": ["epochs=1"],
    "word_vectors": ["epochs=1", "batch_size=1000", "data.MiddleWord.validation_fraction=0.9"],
}

#: Runs a file with nothing but Python and NumPy.
ALONE = """\
import runpy, sys
sys.modules |= dict.fromkeys(("nn_manual", "scipy", "torch", "sklearn"))
runpy.run_path(sys.argv[1], run_name="__main__")
"""


def losses_of_run(config: RunConfig) -> list[float]:
    """The loss of each step, as the trainer computes it."""
    split, model = load(config)
    trainer = TrainingRun(config, split, model).trainer
    return [
        step.loss
        for epoch in range(config.epochs)
        for step in trainer.epoch(split.train, config.batch_size, seed=config.seed, epoch=epoch)
    ]


def losses_of_script(config: RunConfig, directory: Path) -> list[float]:
    """The numbers that the script prints."""
    path = directory / "step.py"
    write(unroll(config, "a config", run="step.npz"), path)
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    ended = subprocess.run(
        [sys.executable, "-c", ALONE, str(path)], cwd=directory, env=environment, capture_output=True, text=True
    )
    assert (ended.returncode, ended.stderr) == (0, "")
    return [float(line) for line in ended.stdout.splitlines()]


@pytest.mark.parametrize("optimizer", ["{SGD: {momentum: 0.9}}", "{Adam: {}}"])
def test_a_momentum_that_a_schedule_moves(optimizer: str, tmp_path: Path) -> None:
    """It is an argument of the step, as the lr is."""
    schedule = "lr_scheduler={OneCycleLR: {max_lr: 0.1, total_steps: 48}}"
    settings = [f"optimizer={optimizer}", schedule, "lr_step=step", "epochs=2", "gradient_check.every=0"]
    config = load_config(ROOT / "config" / "digits.yaml", settings)
    assert losses_of_script(config, tmp_path) == losses_of_run(config)
    name = "momentum" if "SGD" in optimizer else "beta1"
    assert re.search(rf"^    {name} +the momentum$", (tmp_path / "step.py").read_text(), re.MULTILINE)


def test_every_config_is_there() -> None:
    assert {path.stem for path in (ROOT / "config").glob("*.yaml")} == SHORTER.keys()


@pytest.mark.slow
@pytest.mark.parametrize("name", SHORTER)
def test_losses_are_the_run_s(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It alone runs whole scripts beside whole runs."""
    config = load_config(ROOT / "config" / f"{name}.yaml", [*SHORTER[name], "gradient_check.every=0"])
    if isinstance(config.data, FashionMNIST):
        if not config.data.folder.exists():
            pytest.skip(f"{config.data.folder} isn't there: install Debian's dataset-fashion-mnist")
        config.data.folder = first_images(config.data.folder, tmp_path / "images", train=500)
    expected = losses_of_run(config)
    assert losses_of_script(config, tmp_path) == expected
    assert capsys.readouterr().out == f"{tmp_path / 'step.py'}\n"
    assert len(set(expected)) == len(expected) > 4


SCHEDULED = [
    ["lr_scheduler.CosineAnnealingLR.T_max=3"],
    ["lr_scheduler.CosineAnnealingLR.T_max=30", "lr_step=step"],
    ["optimizer.SGD.groups=[{parameters: '*.bias', lr: 0.01, momentum: 0.5}]"],
    ["clip_grad_norm=0.5", "dtype=float64"],
    ["optimizer={AdamW: {lr: 0.01, groups: [{parameters: '*.bias', weight_decay: 0, lr: 0.02}]}}"],
    ["optimizer={Adam: {lr: 0.01, amsgrad: true, maximize: true, weight_decay: 0.1}}"],
    ["optimizer={SGD: {lr: 0.01, momentum: 0.5, dampening: 0.1, weight_decay: 0.01, maximize: true}}"],
    ["batch_size=1000"],
    ["model.1={Dropout: {p: 0.25}}", "model.3={Dropout: {p: 1}}", "seed=3"],
    ["model.1={Dropout: {p: 0.25}}", "batch_size=1000", "dtype=float64"],
    ["model.1={StochasticDepth: {p: 0.25, mode: batch}}", "model.3={StochasticDepth: {p: 0.3, mode: row}}"],
    ["model.1=LayerNorm: {normalized_shape: 16}", "model.3={SiLU: {}}", "loss.CrossEntropyLoss.weight=[1, 3]"],
    ["model.1={BatchNorm1d: {num_features: 16, momentum: null}}", "model.3={Sigmoid: {}}"],
    ["model.3={Softmax: {dim: -1}}", "loss.CrossEntropyLoss.reduction=sum", "loss.CrossEntropyLoss.ignore_index=1"],
]


@pytest.mark.parametrize("overrides", [*SCHEDULED[::2], *map(slow, SCHEDULED[1::2])], ids=str)
def test_settings(overrides: list[str], tmp_path: Path) -> None:
    config = load_config(ROOT / "config" / "spirals.yaml", ["epochs=3", "gradient_check.every=0", *overrides])
    assert losses_of_script(config, tmp_path) == losses_of_run(config)


@pytest.mark.parametrize(
    ("epochs", "batch_size", "words"), [(1, 1000, "1 epoch of 1 step"), (2, 1000, "2 epochs of 1 step"),
    (1, 100, "1 epoch of 8 steps")],
)
def test_the_script_says_how_much_it_runs(epochs: int, batch_size: int, words: str) -> None:
    overrides = [f"epochs={epochs}", f"batch_size={batch_size}", "gradient_check.every=0"]
    config = load_config(ROOT / "config" / "spirals.yaml", overrides)
    assert f"The run: {words}." in unroll(config, "a config", run="step.npz").text


def test_a_batch_in_slices_is_refused() -> None:
    config = load_config(ROOT / "config" / "spirals.yaml", ["slices=2"])
    with pytest.raises(ConfigError, match=r"^unroll: slices must be 1, not 2: the script has the batch in one piece$"):
        unroll(config, "spirals.yaml")
