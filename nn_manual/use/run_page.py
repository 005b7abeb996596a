"""What a notebook shows of a run: what was trained, what came of it, and its curves."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from nn_manual.config import RunConfig
from nn_manual.errors import DataError
from nn_manual.messages import notebook
from nn_manual.messages.notebook import Row
from nn_manual.messages.text import counted, first_line
from nn_manual.model import Sequential
from nn_manual.plotting import curves_of
from nn_manual.run_directory.metrics import RecordedRun, read_run


def run_page(directory: Path, config: RunConfig, model: Sequential, weights: str) -> str:
    """The page of a run, as HTML. Where its files can't be read any more, it says why, in the place of the curves."""
    sizes = f"{counted(len(model.layers), 'layer')}, {counted(model.num_parameters, 'parameter')}"
    rows = [
        Row(("data", type(config.data).__name__)),
        Row(("model", f"{sizes}, {model.dtype}")),
        Row(("loss", type(config.loss).__name__)),
        Row(("weights", weights)),
    ]
    try:
        recorded = read_run(directory)
        name, curves = recorded.name, notebook.picture(curves_of(recorded), f"the curves of {recorded.name}")
        rows += [*_epochs(recorded), *_gradients(recorded)]
    except DataError as error:
        name, curves = directory.name, notebook.words(f"no curves: {first_line(str(error))}")
    return notebook.page(notebook.title(f"run {name}"), notebook.table((), rows, "<<"), curves)


def _epochs(run: RecordedRun) -> Iterator[Row]:
    """The last epoch and the one with the lowest validation loss, and why the run has stopped, if it has."""
    if run.stop is not None:
        yield Row(("stopped", f"in epoch {run.stop.epoch:,} of {run.stop.num_epochs:,}: {run.stop.reason}"))
    if run.metrics["epoch"].size:
        last, losses = len(run.metrics["epoch"]) - 1, run.metrics.get("validation_loss")
        best = int(np.nanargmin(losses)) if losses is not None and np.isfinite(losses).any() else None
        yield Row(("last epoch, the best" if best == last else "last epoch", _results(run, last)))
        if best not in (None, last):
            yield Row(("best epoch", _results(run, best)))


def _results(run: RecordedRun, line: int) -> str:
    """The figures of an epoch, by its line in metrics.jsonl."""
    texts = [f"{run.metrics['epoch'][line]:,}"]
    for column in ("train_loss", "validation_loss", "validation_accuracy"):
        if column in run.metrics:
            form = ".2%" if column == "validation_accuracy" else ".4g"
            texts.append(f"{column.replace('_', ' ')} {run.metrics[column][line]:{form}}")
    return ", ".join(texts)


def _gradients(run: RecordedRun) -> Iterator[Row]:
    """How many steps were checked, and what was wrong."""
    wrong = [name for name in run.gradients["mismatch"] if name]
    num_steps = int(run.gradients["num_steps"].sum())
    steps = counted(num_steps, "checked step")
    if wrong:
        yield Row(("gradients", f"WRONG in the last of {steps}: {wrong[0]}"), is_wrong=True)
    else:
        yield Row(("gradients", f"{steps}, every tensor equal to torch's" if num_steps else "not checked"))
