"""Which passes written by hand, as students write them, check_function catches and names, and which it blames."""

from __future__ import annotations

import importlib
import pkgutil
import time
import warnings
from collections.abc import Iterator

from benchmarks.functions import handwritten
from benchmarks.functions.subject import Handwriting, Published
from nn_manual import check_function
from nn_manual.functions.function_report import FunctionReport


def cases() -> Iterator[tuple[str, Handwriting]]:
    """Every case, with the name of its topic."""
    for found in pkgutil.iter_modules(handwritten.__path__):
        module = importlib.import_module(f"{handwritten.__name__}.{found.name}")
        yield from ((found.name, case) for case in (*getattr(module, "RIGHT", ()), *getattr(module, "WRONG", ())))


def report_of(case: Handwriting) -> FunctionReport:
    """What check_function says of a case."""
    return check_function(case.function, case.reference, case.inputs)


def is_named(case: Handwriting | Published, report: FunctionReport) -> bool:
    """Whether a report names what is wrong: the gradient, the row, or the mistake."""
    names = [*(comparison.name for comparison in report.failures), *(row.name for row in report.wrong)]
    return any(word in text for word in case.named for text in (report.problem or "", report.diagnosis, *names))


def main() -> int:
    """Print each case that isn't judged as it was worked out, and how many are. Returns 1 if there is one, else 0."""
    warnings.simplefilter("ignore")
    start = time.perf_counter()
    counts = {"right ones passed": [0, 0], "wrong ones caught": [0, 0], "and named": [0, 0]}
    for topic, case in cases():
        report = report_of(case)
        passed = report.passed
        if not case.fault:
            outcomes = {"right ones passed": passed}
        else:
            outcomes = {"wrong ones caught": not passed, "and named": not passed and is_named(case, report)}
        for row, good in outcomes.items():
            counts[row][0] += int(good)
            counts[row][1] += 1
        if not all(outcomes.values()):
            print(f"{topic}: {case.name}: {case.fault or 'right'}\n{report}\n", flush=True)
    for row, (num_good, num_cases) in counts.items():
        print(f"{row:20} {num_good} of {num_cases}")
    print(f"{time.perf_counter() - start:.0f} s")
    return int(any(num_good < num_cases for num_good, num_cases in counts.values()))
