"""What the gradient check is worth: the mutants that it catches, the smallest error, false alarms and appeals."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

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


def mutants() -> bool:
    """The mutation score of each class."""
    print(f"{'mutants':20} {'all':>6} {'by hand':>8} {'caught':>7} {'named':>6} {'same':>6} {'raise':>6} {'time':>8}")
    scores = []
    for subject in subjects():
        start, made = time.monotonic(), list(subject.mutants())
        result = score(subject, made)
        scores.append(result)
        num_by_hand = sum(mutant.operator == "by hand" for mutant in made)
        print(
            f"{result.owner:20} {len(made):6} {num_by_hand:8} {result.num_caught:7} "
            f"{result.num_caught - len(result.misnamed):6} {len(result.survivors):6} {len(result.raised):6} "
            f"{time.monotonic() - start:6.0f} s",
            flush=True,
        )
    num_caught, num_missed = sum(s.num_caught for s in scores), sum(len(s.missed) for s in scores)
    num_named = num_caught - sum(len(s.misnamed) for s in scores)
    print(f"\ncaught {num_caught} of {num_caught + num_missed} that compute something else: ", end="")
    print(f"{num_caught / (num_caught + num_missed):.1%}; named right {num_named / num_caught:.1%}")
    print("same: passed, and proven to compute the same. raise: an error of their own before there is a gradient.\n")
    for result in scores:
        _print_details(result)
    return all(result.passed for result in scores)


def _print_details(result: Score) -> None:
    for mutant in result.survivors:
        proof = SURVIVORS[f"{result.owner}.{mutant.method}", mutant.line, mutant.mutated]
        print_wrapped(f"same: {mutant}")
        print_wrapped(f"because {proof}", indent="    ")
    for mutant in result.missed:
        print_wrapped(f"MISSED: {mutant}")
    for mutant in result.wrongly_proven:
        print_wrapped(f"CAUGHT, though proven to compute the same: {mutant}")
    for mutant, words in result.misnamed:
        print_wrapped(f"NAMED WRONG: {mutant}")
        print_wrapped(f"it said: {words}", indent="    ")


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
