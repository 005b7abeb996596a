"""Which of torch's own operations check_function blames, beside their compositions in torch._refs.

torch's tests list the operations in OpInfo, with samples of their inputs. torch._refs defines many of them as
compositions of other operations. The first 100 by name are taken whose composition autograd can differentiate. Many
compositions are one primitive that has no derivative, such as that of exp.
"""

from __future__ import annotations

import importlib.util
import sys
import time
import warnings
from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

from benchmarks.functions.torch_samples import Operation, Sample, operations
from nn_manual.functions.function_report import FunctionReport
from nn_manual.messages.text import counted, wrapped

NUM_OPERATIONS = 100
#: The verdicts on an operation.
VERDICTS = RIGHT, SAYS_ITSELF, AS_KNOWN, GONE, BLAMED = (
    "right",
    "OpInfo says itself that it fails",
    "differs as is known",
    "doesn't differ as is known",
    "BLAMED",
)


class Difference(NamedTuple):
    """A difference that is there: the tensors and rows in which it shows, and what it is."""

    shows_in: tuple[str, ...]
    what: str


#: What was found, and shown without check_function: torch.autograd.grad alone gives these numbers.
KNOWN = {
    "clamp": Difference(
        ("kinds tied", "kinds spread"),
        "where min and max are equal and the input is less, torch passes the gradient to neither of them; the output "
        "moves with both",
    ),
    "index_fill": Difference(
        ("grad_args[2]",),
        "where an index repeats, the composition counts the value's gradient again; index_copy, of which it is made, "
        "says of itself that it isn't defined there",
    ),
    "native_layer_norm": Difference(
        ("output 1 carries no gradient", "autocast"),
        "torch has no derivative of the mean and of the reciprocal deviation that it returns, too; so the input's "
        "gradient lacks theirs",
    ),
    "nn.functional.hardsigmoid": Difference(
        ("grad_input",), "in float64, torch multiplies by the float32 that is nearest to 1/6, which is off by 3e-8"
    ),
    "nn.functional.pdist": Difference(
        ("kinds tied",),
        "where several coordinates are equally far apart, torch gives each of them the whole gradient for p = inf, and "
        "not a part",
    ),
}


def main(numbers: range | None = None) -> int:
    """Judge the operations, or those with these numbers. Prints what is left out, the verdict of each operation, and
    the report of each sample that is blamed without a reason, here or in OpInfo. Returns 1 if there is one, or if a
    difference in KNOWN doesn't show; 2 if torch's tests can't be imported; else 0.
    """
    if importlib.util.find_spec("expecttest") is None:
        print("torch's tests import expecttest, which isn't there: pip install 'nn_manual[dev]'", file=sys.stderr)
        return 2
    warnings.simplefilter("ignore")  # the compositions warn of what they leave out
    start = time.perf_counter()
    taken, left_out = chosen()
    for reason, names in left_out.items():
        print(*wrapped(f"left out, {reason}: {', '.join(names)}"), sep="\n")
    verdicts = Counter[str]()
    for number, operation in enumerate(taken):
        if numbers is not None and number not in numbers:
            continue
        reports = [(sample, sample.report()) for sample in operation.samples()]
        verdict = verdict_of(operation.name, reports)
        why = f": {KNOWN[operation.name].what}" if verdict == AS_KNOWN else ""
        line = f"{number} {operation.name}: {counted(len(reports), 'sample')}, {verdict}{why}"
        print(*wrapped(line), sep="\n", flush=True)
        for sample, report in reports if verdict == BLAMED else ():
            if not (report.passed or sample.says_itself):
                print(f"{report}\n", flush=True)
        verdicts[verdict] += 1
    for verdict in VERDICTS:
        print(f"{verdict:34} {verdicts[verdict]:3}")
    print(f"{time.perf_counter() - start:.0f} s")
    return int(verdicts[BLAMED] + verdicts[GONE] > 0)


def chosen() -> tuple[list[Operation], dict[str, list[str]]]:
    """The first operations that can be compared; and the names of those before them that can't, by the reason."""
    taken: list[Operation] = []
    left_out: dict[str, list[str]] = {}
    for operation in operations():
        if len(taken) == NUM_OPERATIONS:
            break
        if reason := operation.why_left_out():
            left_out.setdefault(reason, []).append(operation.name)
        else:
            taken.append(operation)
    return taken, left_out


def verdict_of(name: str, reports: Iterable[tuple[Sample, FunctionReport]]) -> str:
    """One of the VERDICTS on an operation, by the reports on its samples."""
    blamed = [(sample, report) for sample, report in reports if not report.passed]
    differences = [word for sample, report in blamed if not sample.says_itself for word in _differences(report)]
    known = KNOWN[name].shows_in if name in KNOWN else ()
    if not all(any(shown in word for shown in known) for word in differences):
        return BLAMED
    if known and not differences:
        return GONE
    return AS_KNOWN if known else SAYS_ITSELF if blamed else RIGHT


def _differences(report: FunctionReport) -> list[str]:
    """What a report blames, each in a few words."""
    found = [comparison.name for comparison in report.failures] + [row.name for row in report.wrong]
    return [report.problem, *found] if report.problem else found or [*report.vacuous]
