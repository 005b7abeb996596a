"""What a person sees of a run when it has ended."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from nn_manual.messages.text import counted, one_line, wrapped
from nn_manual.run.training_run import BEST_FILE
from nn_manual.run_directory.metrics import BITS, WEIGHTS_FILE, read_summary
from nn_manual.trainer.progress import of_tolerance


def describe(summary: dict[str, Any], directory: Path) -> str:
    """The summary as a few lines for the terminal."""
    names = [name for name in ("train_loss", "validation_loss") if name in summary]
    results = [f"{name.replace('_', ' ')} {summary[name]:.4g}" for name in names]
    if "validation_accuracy" in summary:
        results.append(f"accuracy {summary['validation_accuracy']:.2%}")
    lines = [
        f"{', '.join(results)} after {counted(summary['step'], 'step')}",
        *_describe_bits(summary),
        *_describe_best(summary),
        *_describe_check(summary["gradient_check"], summary["step"]),
    ]
    return "\n".join(["", *_in_lines(lines), one_line(f"run directory {directory}")])  # a path stays whole


def _in_lines(texts: Iterable[str]) -> list[str]:
    return [line for text in texts for line in wrapped(one_line(text))]


def _describe_bits(summary: dict[str, Any]) -> list[str]:
    parts = zip(BITS.values(), ("training", "validation"), strict=True)
    bits = [f"{summary[name]:.4g} in {part}" for name, part in parts if name in summary]
    return [f"bits a character {', '.join(bits)}"] if bits else []


def _describe_best(summary: dict[str, Any]) -> list[str]:
    """Which epoch was the best, and where its weights are."""
    best = summary.get("best")
    if best is None:
        return []
    if best["step"] == summary["step"]:
        return [f"the last epoch was the best: {BEST_FILE} has the last weights, too"]
    words = f"epoch {best['epoch']} was the best, validation loss {best['validation_loss']:.4g}: its weights are in"
    return [words, f"  {BEST_FILE}, and those of the last step in {WEIGHTS_FILE}"]


def _describe_check(check: dict[str, Any], num_steps: int) -> list[str]:
    worst = check["worst"]
    if worst is None:
        return ["no gradient was checked"]
    tensors, steps = counted(check["tensors"], "tensor"), counted(check["steps"], "step")
    lines = [
        f"{_verdict(check, num_steps)}{tensors} of {steps} equal torch's",
        f"rounding took at most {of_tolerance(worst)} of its bound: {worst['worst']} at step {worst['step']:,}",
    ]
    if check["rounding"]:
        lines[-1] += ","
        beyond = counted(check["rounding"], "tensor")
        lines.append(f"  but for {beyond}, where float64 shows that the formula is right")
    return [*lines, *_describe_unproven(check["unproven"])]


def _describe_unproven(sentences: list[str]) -> list[str]:
    return [f"not proven: {sentence}, in every step" for sentence in sentences]


def describe_failure(directory: Path) -> str:
    """Why a run that had finished before has failed, as a few lines; empty if it hasn't. Raises DataError."""
    check = (read_summary(directory) or {}).get("gradient_check", {})
    return "\n".join(_in_lines(_describe_unproven(check.get("vacuous", []))))  # older runs don't say


def _verdict(check: dict[str, Any], num_steps: int) -> str:
    if check["unproven"]:
        return ""
    return "every gradient right: " if check["steps"] == num_steps else "every checked gradient right: "
