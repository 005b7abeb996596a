"""Which passes written by hand, as students write them, check_function catches and names, and which it blames."""

from __future__ import annotations

import importlib
import pkgutil
import time
import warnings
from collections.abc import Iterator

from benchmarks.functions import handwritten
from benchmarks.functions.subject import Handwriting
from benchmarks.functions.tally import Tally
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


def main() -> int:
    """Print each case that isn't judged as it was worked out, and how many are. Returns 1 if there is one, else 0."""
    warnings.simplefilter("ignore")
    start = time.perf_counter()
    tally = Tally()
    for topic, case in cases():
        report = report_of(case)
        if not tally.add(case, report):
            print(f"{topic}: {case.name}: {case.fault or 'right'}\n{report}\n", flush=True)
    all_good = tally.show()
    print(f"{time.perf_counter() - start:.0f} s")
    return int(not all_good)
