"""Runs made up for the tests of figures, and what their figures hold."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from nn_manual.arrays import Array
from nn_manual.run_directory.files import JsonLines, create_run_directory, write_atomically
from nn_manual.run_directory.ledger_table import Ledger
from nn_manual.run_directory.metrics import COUNTS, RecordedRun, Stop

LOSS, ACCURACY, GRADIENTS = "Loss by epoch", "Accuracy by epoch", "Difference by step"
LEDGER = "Difference by tensor"


def make_run(
    train_loss: list[float],
    errors: list[float],
    *,
    validation_loss: list[float] | None = None,
    accuracy: list[float] | None = None,
    tolerance: float = 1e-5,
    name: str = "digits/now",
    ledger: Ledger | None = None,
    num_examples: tuple[int, int] | None = None,
    excused: Sequence[int] = (),
    mismatch: str = "",
    stop: Stop | None = None,
) -> RecordedRun:
    """A run without a ledger, and so without a heat map, unless one is given. `num_examples`, to train and to validate:
    its losses are sums over them. `excused` are steps with rounding, `mismatch` is what was wrong in the last one.
    """
    num_epochs, num_steps = len(train_loss), len(errors)
    values: dict[str, list[float] | None] = {
        "train_loss": train_loss,
        "validation_loss": validation_loss,
        "validation_accuracy": accuracy,
    }
    metrics: dict[str, Array] = {
        column: np.array(value, np.float64) for column, value in values.items() if value is not None
    }
    metrics |= {"epoch": np.arange(1, num_epochs + 1)}
    if num_examples is not None:
        metrics |= {name: np.full(num_epochs, n) for name, n in zip(COUNTS.values(), num_examples, strict=True)}
    gradients: dict[str, Array] = {
        "step": np.arange(1, num_steps + 1),
        "relative": np.array(errors, np.float64),
        "tolerance": np.full(num_steps, tolerance),
        "first_step": np.arange(1, num_steps + 1),
        "last_step": np.arange(1, num_steps + 1),
        "num_steps": np.ones(num_steps, np.int64),
        "rounding": np.isin(np.arange(1, num_steps + 1), excused).astype(np.int64),
        "mismatch": np.array([""] * (num_steps - 1) + [mismatch][:num_steps], np.object_),
    }
    return RecordedRun(name, "", metrics, gradients, ledger or ledger_of(np.zeros((num_steps, 0))), stop)


def ledger_of(percent: Array, names: tuple[str, ...] = (), verdict: Array | None = None) -> Ledger:
    """A ledger of these errors (lines, tensors), all within the tolerance unless there is a verdict."""
    names = names or tuple(f"{index}.output" for index in range(percent.shape[1]))
    return Ledger(names, percent, percent, np.zeros(percent.shape, np.int8) if verdict is None else verdict)


def write_run(path: Path, num_epochs: int = 3, num_steps: int = 6) -> Path:
    create_run_directory(path)
    write_atomically(path / "config.yaml", b"seed: 0\n")
    with JsonLines(path / "metrics.jsonl") as lines:
        for epoch in range(1, num_epochs + 1):
            loss = {"train_loss": 1 / epoch, "validation_loss": 2 / epoch, "validation_accuracy": 1 - 0.5 / epoch}
            lines.append({"epoch": epoch, "step": 2 * epoch, **loss, "lr": 0.1, "seconds": 0.5})
    with JsonLines(path / "gradients.jsonl") as lines:
        for step in range(1, num_steps + 1):
            errors = {"absolute": 1e-8, "relative": 1e-7 * step, "tolerance": 1e-5, "ulps": 1.5}
            ledger = {"0.output": [0, 0], "0.grad_weight": [step, 1.5]}
            lines.append({"step": step, "tensors": 2, "worst": "0.grad_weight", **errors, "errors": ledger})
    return path


def panel(figure: Figure, title: str) -> Axes:
    (axes,) = [axes for axes in figure.axes if axes.get_title(loc="left") == title]
    return axes


def titles(figure: Figure) -> list[str]:
    return [axes.get_title(loc="left") for axes in figure.axes]


def lines_of(axes: Axes, label: str) -> list[Line2D]:
    return [line for line in axes.get_lines() if line.get_label() == label]


def points(line: Line2D) -> list[tuple[float, float]]:
    return [(float(x), float(y)) for x, y in zip(line.get_xdata(), line.get_ydata(), strict=True)]  # type: ignore[arg-type]


def key_of(axes: Axes) -> list[str]:
    legend = axes.get_legend()
    assert legend is not None
    return [text.get_text() for text in legend.get_texts()]


def names_of(figure: Figure) -> list[str]:
    (legend,) = figure.legends
    return [text.get_text() for text in legend.get_texts()]
