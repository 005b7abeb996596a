"""What the gradient check is worth: the mutants that it catches, the smallest error, false alarms and appeals."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from typing import NamedTuple

import torch

from benchmarks.alarms import appeals, false_alarms, random_alarms
from benchmarks.mutation.score import Score, score
from benchmarks.mutation.smallest import ERRORS, smallest, tensors
from benchmarks.mutation.subjects import subjects
from benchmarks.mutation.survivors import SURVIVORS
from benchmarks.wrapped import print_wrapped
from nn_manual.layers import Layer
from nn_manual.losses import Loss
from nn_manual.model import Sequential

#: The smallest relative error that must be caught always.
SMALLEST = {"float32": 1e-4, "float64": 1e-10}


def main(parts: Sequence[str] = ()) -> int:
    """Run the parts asked for, by default all: 0, or 1 where a figure is missed."""
    unknown = set(parts) - set(PARTS)
    if unknown:
        print(f"unknown part {', '.join(sorted(unknown))}; known: {', '.join(PARTS)}")
        return 2
    torch.set_num_threads(1)  # with a dozen elements, a second thread takes longer to start than the work
    passed = [PARTS[part]() for part in parts or PARTS]
    return 0 if all(passed) else 1


class Row(NamedTuple):
    """What became of the mutants of one class: how many there are of each kind, and a text for each but the caught."""

    owner: str
    num_made: int
    num_by_hand: int
    num_caught: int
    num_missed: int
    num_named: int
    num_same: int
    num_raised: int
    passed: bool
    seconds: float
    texts: list[tuple[str, str]]

    def __str__(self) -> str:
        return (
            f"{self.owner:20} {self.num_made:6} {self.num_by_hand:8} {self.num_caught:7} {self.num_named:6} "
            f"{self.num_same:6} {self.num_raised:6} {self.seconds:6.0f} s"
        )


def mutants() -> bool:
    """The mutation score of each class, on all cores."""
    print(f"{'mutants':20} {'all':>6} {'by hand':>8} {'caught':>7} {'named':>6} {'same':>6} {'raise':>6} {'time':>8}")
    rows = []
    with ProcessPoolExecutor(initializer=torch.set_num_threads, initargs=(1,)) as pool:
        for row in pool.map(_row, range(len(subjects()))):
            rows.append(row)
            print(row, flush=True)
    num_caught, num_missed, num_named = (
        sum(getattr(row, name) for row in rows) for name in ("num_caught", "num_missed", "num_named")
    )
    print(f"\ncaught {num_caught} of {num_caught + num_missed} that compute something else: ", end="")
    print(f"{num_caught / (num_caught + num_missed):.1%}; named right {num_named / num_caught:.1%}")
    print("same: passed, and proven to compute the same. raise: an error of their own before there is a gradient.\n")
    for text, indent in itertools.chain.from_iterable(row.texts for row in rows):
        print_wrapped(text, indent)
    return all(row.passed for row in rows)


def _row(number: int) -> Row:
    """The mutants of one of the subjects."""
    subject, start = subjects()[number], time.monotonic()
    made = list(subject.mutants())
    result = score(subject, made)
    return Row(
        owner=result.owner,
        num_made=len(made),
        num_by_hand=sum(mutant.operator == "by hand" for mutant in made),
        num_caught=result.num_caught,
        num_missed=len(result.missed),
        num_named=result.num_caught - len(result.misnamed),
        num_same=len(result.survivors),
        num_raised=len(result.raised),
        passed=result.passed,
        seconds=time.monotonic() - start,
        texts=list(_texts(result)),
    )


def _texts(result: Score) -> Iterator[tuple[str, str]]:
    """Lines and their indents."""
    for mutant in result.survivors:
        yield f"same: {mutant}", ""
        yield f"because {SURVIVORS[f'{result.owner}.{mutant.method}', mutant.line, mutant.mutated]}", "    "
    for mutant in result.missed:
        yield f"MISSED: {mutant}", ""
    for mutant in result.wrongly_proven:
        yield f"CAUGHT, though proven to compute the same: {mutant}", ""
    for mutant, words in result.misnamed:
        yield f"NAMED WRONG: {mutant}", ""
        yield f"it said: {words}", "    "


def smallest_errors() -> bool:
    """The smallest relative error of each gradient that is caught wherever it is made."""
    print(f"{'smallest error always caught':36} " + " ".join(f"{dtype:>9} {'made':>6}" for dtype in ERRORS))
    passed = True
    for owner in (subject.owner for subject in subjects()):
        if owner is Sequential or not issubclass(owner, Layer | Loss):  # which have no gradient of their own
            continue
        for tensor in tensors(owner):
            found = {dtype: smallest(owner, tensor, dtype) for dtype in ERRORS}
            passed &= all(found[dtype].error <= SMALLEST[dtype] for dtype in ERRORS)
            name = f"{owner.__name__}.{tensor}"
            print(f"{name:36} " + " ".join(f"{s.error:9.0e} {s.num_errors:6}" for s in found.values()), flush=True)
    print(f"at least: {' '.join(f'{dtype} {bound:.0e}' for dtype, bound in SMALLEST.items())}\n")
    return passed


PARTS: dict[str, Callable[[], bool]] = {
    "mutants": mutants,
    "smallest": smallest_errors,
    "alarms": false_alarms,
    "random": random_alarms,
    "appeals": appeals,
}
