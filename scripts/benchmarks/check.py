"""How much the gradient check finds: the mutants that it catches, the smallest error, false alarms, steps that are
judged again, and faults that begin late. And what becomes of torch's own samples.
"""

from __future__ import annotations

import functools
import itertools
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import astuple, dataclass
from typing import Any

import torch

from benchmarks.alarms import appeals, false_alarms, random_alarms
from benchmarks.late import late_faults
from benchmarks.mutation.executed import Executed
from benchmarks.mutation.replacing import change_gradient
from benchmarks.mutation.score import Score, score
from benchmarks.mutation.smallest import ERRORS, PLACES, Fault, smallest, tensors
from benchmarks.mutation.subjects import subjects
from benchmarks.mutation.survivors import SURVIVORS
from benchmarks.mutation.together import verdicts
from benchmarks.processes import on_all_cores
from benchmarks.samples.campaign import torch_samples
from benchmarks.wrapped import wrapped
from nn_manual.layers import Layer
from nn_manual.losses import Loss
from nn_manual.model import Sequential
from nn_manual.optim import Optimizer

#: The smallest relative error that must be caught always.
SMALLEST = {"float32": 1e-4, "float64": 1e-10}
#: The number of parts in which the mutants of a class run. Each part makes all mutants again, which takes a few
#: seconds.
NUM_PARTS = 4


def main(
    parts: Sequence[str] = (),
    *,
    nets: range | None = None,
    only_slices: bool = False,
    classes: Sequence[str] = (),
    only_first: bool = False,
) -> int:
    """Run these parts, by default all. Returns 0, or 1 if a figure is missed. `nets` are the random nets to run; with
    `only_slices` they run only in slices. `classes` are the names of those that are mutated, and for samples alone of
    torch's, by default all. With `only_first`, each mutant runs until it is caught once in each dtype.
    """
    owners = [subject.owner.__name__ for subject in subjects()]
    others = [*vars(torch.nn), *vars(torch.optim)] if [*parts] == ["samples"] else []
    mutated = [each for each in classes if each not in others]
    for what, given, known in (("part", parts, list(PARTS)), ("class", mutated, owners)):
        if unknown := sorted({*given} - {*known}):
            print(f"unknown {what} {', '.join(unknown)}; known: {', '.join(known)}")
            return 2
    torch.set_num_threads(1)  # with a dozen elements, a second thread takes longer to start than the work
    numbers = [number for number, owner in enumerate(owners) if not classes or owner in classes]
    own: dict[str, dict[str, Any]] = {"random": {"nets": nets, "only_slices": only_slices}}
    own["samples"] = {"classes": classes}
    own |= {part: {"numbers": numbers} for part in ("mutants", "smallest", "together")}
    own["mutants"]["only_first"] = only_first
    passed = [PARTS[part](**own.get(part, {})) for part in parts or PARTS]
    return 0 if all(passed) else 1


@dataclass(frozen=True)
class Row:
    """What became of the mutants of one class: how many there are of each kind, which proofs are of one of them, and a
    text for each that wasn't caught.
    """

    owner: str
    num_made: int
    num_by_hand: int
    num_caught: int
    num_missed: int
    num_named: int
    num_same: int
    num_raised: int
    num_wrongly_proven: int
    seconds: float
    proofs: list[tuple[str, str, str]]
    texts: list[tuple[str, str]]

    def __add__(self, other: Row) -> Row:
        """Both parts of a class."""
        owner, *mine = astuple(self)
        _, *others = astuple(other)
        return Row(owner, *(a + b for a, b in zip(mine, others, strict=True)))

    def __str__(self) -> str:
        return (
            f"{self.owner:20} {self.num_made:6} {self.num_by_hand:8} {self.num_caught:7} {self.num_named:6} "
            f"{self.num_same:6} {self.num_raised:6} {self.seconds:6.0f} s"
        )


def mutants(numbers: Sequence[int], *, only_first: bool = False) -> bool:
    """The mutation score of the classes of these numbers. All cores work at each class, in parts: one class has most of
    the mutants. With `only_first`, each runs until it is caught once in each dtype.
    """
    print(f"{'mutants':20} {'all':>6} {'by hand':>8} {'caught':>7} {'named':>6} {'same':>6} {'raise':>6} {'time':>8}")
    rows = []
    row = functools.partial(_row, only_first=only_first)
    found = on_all_cores(row, [(number, part) for number in numbers for part in range(NUM_PARTS)])
    for _ in numbers:
        rows.append(functools.reduce(Row.__add__, itertools.islice(found, NUM_PARTS)))
        print(rows[-1], flush=True)
    num_caught, num_missed, num_named = (
        sum(getattr(row, name) for row in rows) for name in ("num_caught", "num_missed", "num_named")
    )
    print(f"\ncaught {num_caught} of {num_caught + num_missed} that compute something else: ", end="")
    print(f"{num_caught / (num_caught + num_missed):.1%}; named right {num_named / num_caught:.1%}")
    print("same: passed, and proven to compute the same. raise: an error of their own before there is a gradient.\n")
    for text, indent in itertools.chain.from_iterable(row.texts for row in rows):
        print(wrapped(text, indent))
    of_none = [proof for row in rows for proof in SURVIVORS if _is_of(row.owner, proof) and proof not in row.proofs]
    for method, line, mutated in of_none:
        print(wrapped(f"PROOF OF NO MUTANT: {method}: {mutated}\nof: {line}"))
    wrong = of_none or sum(row.num_wrongly_proven for row in rows)
    return num_named == num_caught + num_missed and not wrong


def _is_of(owner: str, proof: tuple[str, str, str]) -> bool:
    return proof[0].startswith(f"{owner}.")


def _row(number_and_part: tuple[int, int], *, only_first: bool) -> Row:
    """Each NUM_PARTS-th mutant of one of the subjects."""
    number, part = number_and_part
    subject, start = subjects()[number], time.monotonic()
    made = list(itertools.islice(subject.mutants(), part, None, NUM_PARTS))
    result = score(subject, made, Executed(subject), only_first=only_first)
    keys = [(f"{result.owner}.{mutant.method}", mutant.line, mutant.mutated) for mutant in made]
    return Row(
        owner=result.owner,
        num_made=len(made),
        num_by_hand=sum(mutant.operator == "by hand" for mutant in made),
        num_caught=result.num_caught,
        num_missed=len(result.missed),
        num_named=result.num_caught - len(result.misnamed),
        num_same=len(result.survivors),
        num_raised=len(result.raised),
        num_wrongly_proven=len(result.wrongly_proven),
        seconds=time.monotonic() - start,
        proofs=[key for key in keys if key in SURVIVORS],
        texts=list(_texts(result)),
    )


def _texts(result: Score) -> Iterator[tuple[str, str]]:
    """Lines and their indents."""
    for mutant in result.survivors:
        yield f"same: {mutant}", ""
        yield f"because {SURVIVORS[f'{result.owner}.{mutant.method}', mutant.line, mutant.mutated]}", "    "
    for mutant in result.missed:
        yield f"MISSED: {mutant}", ""
        yield "a mistake that computes the same belongs into mutation/survivors.py, with the proof", "    "
    for mutant in result.wrongly_proven:
        yield f"CAUGHT, though proven to compute the same: {mutant}", ""
    for mutant, words in result.misnamed:
        yield f"NAMED WRONG: {mutant}", ""
        yield f"it said: {words}", "    "


def smallest_errors(numbers: Sequence[int]) -> bool:
    """For each gradient of these classes, the smallest relative error that is caught wherever it is made; on all cores.
    """
    columns = " ".join(f"{dtype:>9} {'made':>6} {'alone':>5}" for dtype in ERRORS)
    print(f"{'smallest error always caught':36} {columns}")
    passed = True
    gradients = [(number, tensor) for number in numbers for tensor in _gradients(subjects()[number].owner)]
    for is_small, row in on_all_cores(_smallest, gradients):
        passed &= is_small
        print(row, flush=True)
    print("alone: the gradient is rounding alone there, twice of it is not caught either")
    print(f"at least: {' '.join(f'{dtype} {bound:.0e}' for dtype, bound in SMALLEST.items())}\n")
    return passed


def _gradients(owner: type[Any]) -> list[str]:
    """The names of the gradients that a class computes itself."""
    return tensors(owner) if owner is not Sequential and issubclass(owner, Layer | Loss) else []


def _smallest(number_and_tensor: tuple[int, str]) -> tuple[bool, str]:
    """Whether the errors of one gradient of a subject are caught from SMALLEST on, and its line."""
    number, tensor = number_and_tensor
    owner = subjects()[number].owner
    found = {dtype: smallest(owner, tensor, dtype) for dtype in ERRORS}
    row = " ".join(f"{s.error:9.0e} {s.num_errors:6} {s.num_alone:5}" for s in found.values())
    is_small = all(found[dtype].error <= SMALLEST[dtype] for dtype in ERRORS)
    return is_small, f"{f'{owner.__name__}.{tensor}':36} {row}"


def proven_together(numbers: Sequence[int]) -> bool:
    """Mutants and the smallest errors of these classes, in steps that are proven together: they must be named as in
    steps that are proven one by one.
    """
    columns = f"{'wrong':>6} {'trainings':>9} {'together':>8} {'caught':>7} {'small':>6} {'differ':>6}"
    print(f"{'proven together':20} {columns}")
    owners = [number for number in numbers if _can_be_trained(subjects()[number].owner)]
    num_different = 0
    for row in on_all_cores(_together, owners):
        print(row[0], flush=True)
        num_different += row[1]
    print(f"{num_different} trainings in which another step, layer or tensor is named than one by one")
    print("small: float32 doesn't show the mistake, and float64, where rounding asked for it, in one of both alone\n")
    return num_different == 0


def _can_be_trained(owner: type) -> bool:
    return issubclass(owner, Layer | Loss | Optimizer) and owner is not Sequential


def _together(number: int) -> tuple[str, int]:
    """The line of one class, and in how many trainings the verdicts differ."""
    subject = subjects()[number]
    owner, wrong = subject.owner, [(mutant.changed, mutant.operator == "stale") for mutant in subject.mutants()]
    if issubclass(owner, Layer | Loss):
        wrong += [
            (change_gradient(owner, tensor, Fault(place, SMALLEST["float32"])), False)
            for tensor in tensors(owner)
            for place in PLACES
        ]
    found = [verdicts(changed, index, is_stale=is_stale) for index, (changed, is_stale) in enumerate(wrong)]
    num_trainings, num_together, num_caught, num_small = (
        sum(getattr(verdict, name) for verdict in found)
        for name in ("num_trainings", "num_together", "num_caught", "num_small")
    )
    differ = [words for verdict in found for words in verdict.differ]
    row = f"{owner.__name__:20} {len(wrong):6} {num_trainings:9} {num_together:8} {num_caught:7} {num_small:6} "
    row += f"{len(differ):6}"
    texts = [wrapped(f"one by one: {alone}\ntogether: {together}") for alone, together in differ]
    return "\n".join([row, *texts]), len(differ)


PARTS: dict[str, Callable[..., bool]] = {
    "mutants": mutants,
    "smallest": smallest_errors,
    "alarms": false_alarms,
    "random": random_alarms,
    "appeals": appeals,
    "late": late_faults,
    "together": proven_together,
    "samples": torch_samples,
}
