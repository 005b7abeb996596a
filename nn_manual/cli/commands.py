"""What each command does with its options. Every heavy import waits until a command needs it."""

from __future__ import annotations

import argparse
import itertools
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nn_manual.cli.terminal import going_on_without_a_reader
from nn_manual.errors import ConfigError, GradientMismatch
from nn_manual.messages.text import counted, one_line, printable, wrapped

if TYPE_CHECKING:
    from nn_manual.step.slices.process_group import ProcessGroup


def train(options: argparse.Namespace) -> int:
    """Train a config, or go on with a run. Returns the exit status."""
    from nn_manual.run.describe import describe, describe_failure

    with going_on_without_a_reader():
        from nn_manual.step.slices.torchrun import processes

        with processes() as group:
            directory, summary = _train(options, group)
        if group.rank:
            return 0
        if summary is not None:
            print(describe(summary, directory))
            has_failed = bool(summary["gradient_check"]["vacuous"])
        elif has_failed := bool(failure := describe_failure(directory)):
            print(failure)
    return GradientMismatch.exit_status if has_failed else 0


def _train(options: argparse.Namespace, group: ProcessGroup) -> tuple[Path, dict[str, Any] | None]:
    """The run directory and the summary, or None instead of the summary for a run that had finished."""
    if options.resume is not None and options.config is not None:  # what looks like CONFIG is the first override
        options.config, options.overrides = None, [str(options.config), *options.overrides]
    if (options.config is None) == (options.resume is None):
        raise ConfigError("train takes one of these: CONFIG, --resume RUN")
    if options.resume is not None and options.run_dir is not None:
        raise ConfigError("--run-dir is for a new run; one that goes on stays in its directory")
    started, has_log = group.remembered_run(), options.log == "tensorboard"
    if options.resume is not None or started is not None:
        from nn_manual.run.resume import resume

        if started is not None:  # torchrun has started these processes again
            return resume(Path(started), group=group, has_log=has_log)
        return resume(options.resume, options.overrides, group, has_log=has_log)
    from nn_manual.config import load_config, reported
    from nn_manual.run.new_run import default_run_directory, run

    config = load_config(options.config, options.overrides)
    directory = options.run_dir or Path(group.gather(str(default_run_directory(options.config)))[0])
    every_step = config.gradient_check.every == 1
    with reported(config, checked=every_step):
        return directory, run(config, directory, group, has_log=has_log)


def new(options: argparse.Namespace) -> int:
    """Write a config for a file of the user's own. Returns the exit status."""
    from nn_manual.use.new_config import new_config

    text, notes = new_config(options.file, options.target, options.output, options.task)
    if options.output is None:
        print(text, end="")
        return 0
    end = f"{one_line(str(options.output))}; to train: nn-manual train {one_line(str(options.output))}"
    print("\n".join([*(line for note in notes for line in wrapped(one_line(note))), end]))
    return 0


def plot(options: argparse.Namespace) -> int:
    """Draw runs. Returns the exit status."""
    from nn_manual.plotting import plot_runs

    figure = plot_runs(options.runs, options.output, smoothing=options.smoothing, log_y=options.log_y)
    print(one_line(str(figure)))
    return 0


def evaluate(options: argparse.Namespace) -> int:
    """Say how good a run's model is. Returns the exit status."""
    from nn_manual.config import reported
    from nn_manual.plotting import check_ending, plot_confusion, plot_predictions
    from nn_manual.use.evaluate import evaluate as evaluate_run
    from nn_manual.use.load_run import read_trained

    if options.output is not None:
        check_ending(options.output)
    run = read_trained(options.run, options.checkpoint, options.layer_folder)
    with reported(run.config, checked=True):  # training has checked it
        evaluated = evaluate_run(run, options.run, options.overrides)
    print(evaluated)
    if evaluated.targets is not None:
        output = options.output or options.run / "predictions.png"
        figure = plot_predictions(*evaluated.targets, output, evaluated.title)
        print(one_line(f"predictions against targets {figure}"))
    elif evaluated.confusion is not None:
        output = options.output or options.run / "confusion.png"
        figure = plot_confusion(evaluated.confusion, evaluated.classes, output, evaluated.title)
        print(one_line(f"confusion matrix {figure}"))
    elif options.output is not None:
        raise ConfigError(f"--output {options.output}: there is nothing to draw: no classes or too many, no targets")
    return 0


def predict(options: argparse.Namespace) -> int:
    """Write the predictions of a run's model for the examples in a file. Returns the exit status."""
    from nn_manual.config import reported
    from nn_manual.use.load_run import read_trained
    from nn_manual.use.predict_file import predict as predict_file

    run = read_trained(options.run, options.checkpoint, options.layer_folder)
    with reported(run.config, checked=True):  # training has checked it
        num_examples = predict_file(run, options.input, options.output)
    if options.output is not None:
        print(one_line(f"{counted(num_examples, 'prediction')}, by the {run.checkpoint} weights, in {options.output}"))
    return 0


def summary(options: argparse.Namespace) -> int:
    """Print a config's model as a table. Returns the exit status."""
    from nn_manual.config import load_config, reported
    from nn_manual.use.summary import summary as summary_of

    config = load_config(options.config, options.overrides)
    with reported(config, checked=True):
        table = summary_of(config, measure=options.measure)
    print(table)
    return 0


def unroll(options: argparse.Namespace) -> int:
    """Write a config's training step as a script. Returns the exit status."""
    if options.run and options.output is None:
        raise ConfigError("--run needs -o FILE: the script reads what lies beside it")
    if options.run and options.values:
        raise ConfigError("--values shows one step, --run makes all: give one of them")
    if options.run and options.output.suffix == ".npz":
        raise ConfigError(f"--output {options.output}: that is the name of what the script reads")
    from nn_manual.config import load_config, reported
    from nn_manual.unroll.command import check_output, write
    from nn_manual.unroll.command import unroll as unroll_config

    config = load_config(options.config, options.overrides)
    check_output(options.output, options.config, config, has_arrays=options.run)
    beside = options.output.with_suffix(".npz").name if options.run else ""
    with reported(config, checked=True):
        unrolled = unroll_config(config, options.config.name, run=beside, values=options.values)
    write(unrolled, options.output)
    return 0


def list_components(options: argparse.Namespace) -> int:
    """Print what a config can name. Returns the exit status."""
    from nn_manual.config.listing import KIND_NAMES, listing

    print("\n\n".join(map(listing, [options.kind] if options.kind else KIND_NAMES)))
    return 0


def schema(options: argparse.Namespace) -> int:
    """Print or write the JSON Schema of a config. Returns the exit status."""
    from nn_manual.config.json_schema import schema_text
    from nn_manual.use.schema_file import write_schema

    if options.output is None:
        print(schema_text(), end="")
    else:
        if options.output.suffix in (".yaml", ".yml"):
            raise ConfigError(f"--output {options.output}: this is the name of a config, and a schema is JSON")
        write_schema(options.output)
        print(one_line(str(options.output)))
    return 0


def sample(options: argparse.Namespace) -> int:
    """Print text that a run's model writes. Returns the exit status."""
    from nn_manual.use.sample import sample as sample_texts

    texts = sample_texts(
        options.run,
        options.prompt,
        options.length,
        temperature=options.temperature,
        top_k=options.top_k,
        seed=options.seed,
        checkpoint=options.checkpoint,
        layer_folder=options.layer_folder,
    )
    out = sys.stdout  # a user's layer may replace it
    first = next(texts)
    try:
        for text in itertools.chain([first], texts):
            print(printable(text) if out.isatty() else text, end="", file=out, flush=True)
    finally:  # so that an error begins on a new line
        print(file=out)
    return 0
