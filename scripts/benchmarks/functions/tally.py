"""How many functions are judged as it was worked out beforehand: by_hand.py and by_others.py count alike."""

from __future__ import annotations

from benchmarks.functions.subject import Handwriting, Published
from nn_manual.functions.function_report import FunctionReport


def is_named(case: Handwriting | Published, report: FunctionReport) -> bool:
    """Whether a report names what is wrong: the gradient, the row, or the mistake."""
    names = [*(comparison.name for comparison in report.failures), *(row.name for row in report.wrong)]
    return any(word in text for word in case.named for text in (report.problem or "", report.diagnosis, *names))


class Tally:
    """The counts so far: by what is asked, how many are as it was worked out, and of how many."""

    def __init__(self) -> None:
        self.counts = {"right ones passed": [0, 0], "wrong ones caught": [0, 0], "and named": [0, 0]}

    def add(self, case: Handwriting | Published, report: FunctionReport) -> bool:
        """Count a case, and return whether it is judged as it was worked out."""
        if case.fault:
            outcomes = {"wrong ones caught": not report.passed}
            outcomes["and named"] = not report.passed and is_named(case, report)
        else:
            outcomes = {"right ones passed": report.passed}
        for row, good in outcomes.items():
            self.counts[row][0] += int(good)
            self.counts[row][1] += 1
        return all(outcomes.values())

    def show(self) -> bool:
        """Print the counts, and return whether all are as it was worked out."""
        for row, (num_good, num_cases) in self.counts.items():
            print(f"{row:20} {num_good} of {num_cases}")
        return all(num_good == num_cases for num_good, num_cases in self.counts.values())
