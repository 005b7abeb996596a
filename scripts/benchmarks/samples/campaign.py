"""What becomes of torch's own samples: a table of the classes, and the reasons.

Of the samples that fit, WANTED must be equal, as they are or in another form that the message asks for, and none may
differ.
"""

from __future__ import annotations

import importlib.util
import sys
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from typing import TypeAlias

from benchmarks.samples.modules import Sample, samples
from benchmarks.samples.optimizers import OptimizerSample, optimizer_samples
from benchmarks.samples.verdicts import ADAPTED, DIFFERENT, EQUAL, MISSING, NO_FIT, REFUSED, VERDICTS, WANTED, Verdict
from benchmarks.wrapped import wrapped
from nn_manual.messages.text import counted

Judged: TypeAlias = tuple[Sample | OptimizerSample, Verdict]

#: The verdicts whose reasons are printed, and how.
REASONS = (
    (ADAPTED, "refused, and equal in the form that the message asks for"),
    (REFUSED, "refused"),
    (DIFFERENT, "DIFFERENT"),
    (NO_FIT, "don't fit: not one array in and one out, nor a prediction, a target and a number"),
)


def torch_samples(classes: Collection[str]) -> bool:
    """Print what becomes of the samples of these classes, by default all. Returns whether as many are equal as are
    wanted, and none differs. False if torch's samples can't be imported.
    """
    if importlib.util.find_spec("expecttest") is None:
        print("torch's tests import expecttest, which isn't there: pip install 'nn_manual[dev]'", file=sys.stderr)
        return False
    names = frozenset(classes)
    found: list[Judged] = [(each, each.verdict()) for each in samples(names)]
    found += [(each, each.verdict()) for each in optimizer_samples(names)]
    for line in lines_of(found):
        print(line, flush=True)
    return is_as_wanted(counts_of(found))


def counts_of(found: Iterable[Judged]) -> Counter[str]:
    """How many samples have each verdict."""
    return Counter(verdict.word for _, verdict in found)


def is_as_wanted(counts: Mapping[str, int]) -> bool:
    """Whether none differs, and enough of those that fit are equal."""
    num_fitting = sum(counts.values()) - counts[NO_FIT]
    return not counts[DIFFERENT] and counts[EQUAL] + counts[ADAPTED] >= WANTED * num_fitting


def lines_of(found: list[Judged]) -> Iterable[str]:
    """The table, what it comes to, and the reasons, each with its first sample."""
    yield " ".join([f"{'samples':24}", *(f"{word:>9}" for word in VERDICTS)])
    by_class: dict[str, Counter[str]] = {}
    for sample, verdict in found:
        by_class.setdefault(sample.name, Counter())[verdict.word] += 1
    for name, counts in by_class.items():
        yield _row(name, counts)
    counts = counts_of(found)
    yield _row("all", counts)
    num_fitting = max(1, counts.total() - counts[NO_FIT])
    equal, adapted, missing = (counts[word] / num_fitting for word in (EQUAL, ADAPTED, MISSING))
    yield f"\nof those that fit: equal {equal:.1%}, in the form that the message asks for {adapted:.1%}, "
    yield f"together {equal + adapted:.1%} (>= {WANTED:.0%}); of classes that aren't here {missing:.1%}"
    for word, title in REASONS:
        yield from _reasons(title, [(sample, verdict.why) for sample, verdict in found if verdict.word == word])


def _row(name: str, counts: Mapping[str, int]) -> str:
    return " ".join([f"{name:24}", *(f"{counts[word] or '':>9}" for word in VERDICTS)])


def _reasons(title: str, found: list[tuple[Sample | OptimizerSample, str]]) -> Iterable[str]:
    """Each class and reason once, with the number of samples and the first one."""
    by_reason: dict[tuple[str, str], list[str]] = {}
    for sample, why in found:
        by_reason.setdefault((sample.name, why), []).append(str(sample))
    if by_reason:
        yield f"\n{title}:"
    for (name, why), texts in by_reason.items():
        yield wrapped(f"{name}, {counted(len(texts), 'sample')}: {why}; the first: {texts[0]}")
