"""Small runs of each kind, and the commands that read them; the campaign `directories` edits their directories."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from numpy.random import Generator

from benchmarks.reliability.kills import Kill, forked
from nn_manual.config import load_config
from nn_manual.errors import GradientMismatch
from nn_manual.plotting import plot_runs
from nn_manual.run.new_run import run
from nn_manual.run.writer import FIGURE_FILE
from nn_manual.run_directory.checkpoints import checkpoints_of

#: Each command reads a run directory, except `replay`, which reads a bundle in one.
COMMANDS = ("resume", "evaluate", "predict", "plot", "sample", "replay")


@dataclass(frozen=True)
class Made:
    """A run to make. `commands` read it. If it is killed after a step, it has no end. `data` is the file for `predict`.
    """

    name: str
    config: str
    commands: tuple[str, ...]
    killed_at: int | None = None
    data: str = ""


_CLASSES = """\
data: {Arrays: {file: classes.csv, target: kind, task: classification, standardize: true, validation_fraction: 0.25}}
batch_size: 6
epochs: 2
model: [{Linear: {in_features: 2, out_features: 4}}, Tanh, {Linear: {in_features: 4, out_features: 3}}]
loss: CrossEntropyLoss
optimizer: {SGD: {lr: 0.1, momentum: 0.9}}
checkpoint: {every: 2 steps}
"""
_REGRESSION = """\
data: {Arrays: {file: values.csv, target: [u, v], task: regression, standardize: true, validation_fraction: 0.25}}
batch_size: 6
epochs: 2
model: [{Linear: {in_features: 2, out_features: 4}}, GELU, {Linear: {in_features: 4, out_features: 2}}]
loss: MSELoss
optimizer: {AdamW: {lr: 0.01}}
lr_scheduler: {ReduceLROnPlateau: {patience: 0, factor: 0.5}}
early_stopping: {patience: 4}
clip_grad_norm: 1
checkpoint: {every: 2 steps}
"""
_SLICES = """\
data: {Spirals: {num_examples: 30, turns: 0.5, validation_fraction: 0.2}}
batch_size: 8
epochs: 2
model:
  - Linear: {in_features: 2, out_features: 4}
  - BatchNorm1d: {num_features: 4}
  - Tanh
  - Dropout: {p: 0.2}
  - Linear: {in_features: 4, out_features: 2}
loss: CrossEntropyLoss
optimizer: {Adam: {lr: 0.1, amsgrad: true}}
lr_scheduler: {StepLR: {step_size: 2, gamma: 0.5}}
lr_step: step
slices: 2
checkpoint: {every: 2 steps}
"""
_TEXT = """\
data: {Text: {file: words.txt, context: 4, stride: 4}}
batch_size: 8
epochs: 2
model:
  - Embedding: {num_embeddings: 12, embedding_dim: 3}
  - LearnedPositions: {num_positions: 4, embedding_dim: 3}
  - Flatten: {start_dim: 0, end_dim: 1}
  - Linear: {in_features: 3, out_features: 12}
loss: CrossEntropyLoss
optimizer: {SGD: {lr: 0.5}}
checkpoint: {every: 2 steps}
"""
_WRONG = """\
data: {Spirals: {num_examples: 30, turns: 0.5}}
batch_size: 8
epochs: 1
model: [{Linear: {in_features: 2, out_features: 4}}, my_layers:Cubic, {Linear: {in_features: 4, out_features: 2}}]
layer_folder: wrong
loss: CrossEntropyLoss
optimizer: {SGD: {lr: 0.1, momentum: 0.9}}
"""
#: The name of the run whose layer is wrong, and of the bundle in it.
WRONG, BUNDLE = "wrong", "mismatch-step-1"
#: Where the layers lie: WRONG, or corrected.
RIGHT = "right"

_LAYER = """\
from dataclasses import dataclass
from nn_manual.layers import Layer


@dataclass(eq=False)
class Cubic(Layer):
    def forward(self, input):
        return input * input * input, input

    def backward(self, saved, grad_output):
        return grad_output * {factor} * saved * saved

    def reference(self, input):
        return input**3
"""

_READ = ("resume", "evaluate", "plot")
RUNS = (
    Made("classes", _CLASSES, (*_READ, "predict"), data="classes.csv"),
    Made("killed classes", _CLASSES, (*_READ, "predict"), killed_at=5, data="classes.csv"),
    Made("regression", _REGRESSION, (*_READ, "predict"), data="values.csv"),
    Made("slices", _SLICES, (*_READ, "predict"), killed_at=5, data="points.csv"),
    Made("text", _TEXT, (*_READ, "sample")),
    Made("killed text", _TEXT, (*_READ, "sample"), killed_at=5),
    Made(WRONG, _WRONG, ("resume", "plot", "replay")),
)


def runs_of(command: str) -> list[Made]:
    """The runs that a command reads."""
    return [made for made in RUNS if command in made.commands]


def make(folder: Path) -> None:
    """Write `data/`, which has what the configs name, and `runs/` into `folder`. For the forks, quick_runs is on."""
    data = folder / "data"
    data.mkdir()
    rows = [(row % 5 - 2.0, (7 * row % 11) / 3) for row in range(24)]
    _write_csv(data / "classes.csv", "a,b,kind", [f"{a},{b},{row % 3}" for row, (a, b) in enumerate(rows)])
    _write_csv(data / "values.csv", "a,b,u,v", [f"{a},{b},{a + b},{a * b}" for a, b in rows])
    _write_csv(data / "points.csv", "x,y", [f"{a},{b}" for a, b in rows])
    (data / "words.txt").write_text("a mad dog can bark\n" * 10)
    for name, factor in ((WRONG, 2), (RIGHT, 3)):
        (data / name).mkdir()
        (data / name / "my_layers.py").write_text(_LAYER.format(factor=factor))
    (folder / "runs").mkdir()
    for made in RUNS:
        _make(made, data, folder / "runs" / made.name)


def _write_csv(file: Path, heading: str, rows: list[str]) -> None:
    file.write_text("\n".join([heading, *rows]) + "\n")


def _make(made: Made, data: Path, directory: Path) -> None:
    """Train one run. Only what is meant to stop it may stop it."""
    file = data / f"{made.name}.yaml"
    file.write_text(made.config)
    config = load_config(file)

    def killed() -> None:
        Kill(step=made.killed_at).arm()
        run(config, directory)

    if made.killed_at is not None:
        assert os.WIFSIGNALED(forked(killed)), made.name
        return
    try:
        run(config, directory)
    except GradientMismatch:
        assert made.name == WRONG
        assert (directory / BUNDLE).is_dir()
    else:
        assert made.name != WRONG
        plot_runs([directory], directory / FIGURE_FILE)


def arguments_of(command: str, made: Made, data: Path, run: Path, random: Generator) -> tuple[list[str], int]:
    """A command line that reads the directory `run`, with some of the possible options, and its exit status if nobody
    has edited the directory. `data` has the files that the configs name. Output is written to `out/` beside the run, or
    into the run.
    """
    out, some = run.parent / "out", bool(random.integers(2))
    weights = ["--checkpoint", "last"] if random.random() < 0.3 else []
    match command:
        case "resume":
            newest = checkpoints_of(run)[:1] if random.random() < 0.2 else []
            more = ["epochs=3"] if some and made.name != WRONG else []
            return ["train", "--resume", *map(str, newest or [run]), *more], 3 if made.name == WRONG else 0
        case "evaluate":
            figure = ["-o", str(out / "evaluated.svg")] if some and "sample" not in made.commands else []
            return ["evaluate", str(run), *weights, *figure], 0
        case "predict":
            output = out / ("predictions.csv" if some else "predictions.npz")
            return ["predict", str(run), *weights, "--input", str(data / made.data), "--output", str(output)], 0
        case "plot":
            return ["plot", str(run), "-o", str((out if some else run) / "drawn.svg")], 0
        case "sample":
            return ["sample", str(run), *weights, "--prompt", "a mad", "--length", "8"], 0
        case _:
            layers = [f"layer_folder={data / RIGHT}"] if some else []
            return ["check", "--replay", str(run / BUNDLE), *layers], 0 if some else 3
