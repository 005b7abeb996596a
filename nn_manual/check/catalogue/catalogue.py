"""The catalogue: every layer, loss, optimizer and schedule against torch, over inputs that are known to hide bugs.

An upstream gradient of ones hides most wrong backward passes, random inputs hide those at ties and kinks, and losses
near zero those of an eps. So each component meets each kind of input with each kind of upstream gradient.
"""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Iterable
from dataclasses import MISSING, dataclass, fields, is_dataclass
from typing import Any

from nn_manual.arrays import DTYPES
from nn_manual.check.catalogue.cases import CaseResult, layer_cases, loss_cases, optimizer_cases, scheduler_cases
from nn_manual.check.judge.report import GradientReport
from nn_manual.errors import raise_if_nobodys_fault, words_of
from nn_manual.layers import Layer
from nn_manual.losses import Loss
from nn_manual.optim import Optimizer, Scheduler
from nn_manual.registry import components, examples, takes_layers

#: Characters of a component with its settings, for which a row of 80 columns has room. More go on in the next line.
WIDEST = 38


@dataclass(frozen=True)
class Entry:
    """What the catalogue found about one component in one dtype: its cases, up to the first that failed."""

    component: str
    dtype: str
    num_cases: int
    num_tensors: int
    worst: float
    failure: GradientReport | None
    last_case: str


@dataclass(frozen=True)
class CatalogueReport:
    """All entries. str() is a table with a row for each, 80 columns wide, and the first failure's report."""

    entries: tuple[Entry, ...]

    @property
    def passed(self) -> bool:
        """Whether every component agrees with torch in every case."""
        return all(entry.failure is None for entry in self.entries)

    def __str__(self) -> str:
        names = [textwrap.wrap(entry.component, WIDEST, subsequent_indent="  ") for entry in self.entries]
        width = max(len(line) for name in names for line in name)
        lines = [f"{'':{width}} dtype    cases  tensors     worst"]
        for entry, (*beginning, end) in zip(self.entries, names, strict=True):
            verdict = "ok" if entry.failure is None else "WRONG"
            counts = f"{entry.dtype} {entry.num_cases:6,} {entry.num_tensors:8,}"
            lines += [*beginning, f"{end:{width}} {counts}  {entry.worst:9.2%}  {verdict}"]
        lines += ["", "worst: the largest error, in percent of what is allowed"]
        num_tensors = sum(entry.num_tensors for entry in self.entries)
        num_wrong = sum(entry.failure is not None for entry in self.entries)
        lines += [f"{num_tensors:,} tensors compared with torch's, {num_wrong} of {len(self.entries)} rows wrong"]
        for entry in self.entries:
            if entry.failure is not None:
                lines += ["", f"{entry.component}, {entry.dtype}, {entry.last_case}:", str(entry.failure)]
                break
        return "\n".join(lines)


def catalogue(seed: int = 0) -> CatalogueReport:
    """Check every public layer, loss and optimizer, in float32 and float64, and every schedule, which has no dtype."""
    entries = []
    layers = examples(components(Layer))
    counts = Counter(label(layer) for layer, _ in layers)
    for dtype in DTYPES:
        for layer, shape in layers:
            size = f" of {'x'.join(map(str, shape))}" if counts[label(layer)] > 1 else ""
            entries.append(row(f"{label(layer)}{size}", dtype, layer_cases(layer, shape, dtype, seed)))
        for loss in examples(components(Loss)):
            entries.append(row(label(loss), dtype, loss_cases(loss, dtype, seed)))
        for optimizer_class in components(Optimizer).values():
            for settings in optimizer_class.examples():
                name = f"{optimizer_class.__name__}({', '.join(settings)})"
                entries.append(row(name, dtype, optimizer_cases(optimizer_class, settings, dtype, seed)))
    for scheduler in examples(components(Scheduler)):
        entries.append(row(label(scheduler), "float64", scheduler_cases(scheduler)))
    return CatalogueReport(tuple(sorted(entries, key=lambda entry: entry.component)))


def entry(component: str, dtype: str, cases: Iterable[CaseResult]) -> Entry:
    """Run the cases of a component up to the first that fails."""
    done = []
    for case in cases:
        done.append(case)
        if case.failure is not None:
            break
    failure = done[-1].failure
    # A zero input proves nothing about a weight's gradient, and is no failure. A tensor that no input proves is one.
    unproven = set(done[0].vacuous).intersection(*(case.vacuous for case in done))
    if failure is None and unproven:
        failure = GradientReport((), vacuous=tuple(sorted(unproven)))
    num_tensors, worst = sum(case.num_tensors for case in done), max(case.worst for case in done)
    return Entry(component, dtype, len(done), num_tensors, worst, failure, done[-1].description)


def row(component: str, dtype: str, cases: Iterable[CaseResult]) -> Entry:
    """What `entry` returns. A component that raises has failed, and the others are checked all the same."""
    try:
        return entry(component, dtype, cases)
    except Exception as error:  # a component may raise anything
        raise_if_nobodys_fault(error)
        failure = GradientReport((), problem=f"{component} raised {words_of(error)}")
        return Entry(component, dtype, 1, 0, 0.0, failure, "the case that raised")


def label(component: Any) -> str:
    """The component as one would write it: required fields, and the others where they are not the default."""
    if not is_dataclass(component):  # a Sequential
        return repr(component)
    if isinstance(component, Layer) and takes_layers(type(component)):
        return f"{type(component).__name__}({', '.join(map(label, component.children().values()))})"
    arguments = []
    for item in fields(component):
        value = getattr(component, item.name)
        if item.default is MISSING:
            arguments.append(repr(value))
        elif value != item.default:
            arguments.append(f"{item.name}={value}")
    return f"{type(component).__name__}({', '.join(arguments)})"
