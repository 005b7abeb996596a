"""The tests, run in each setting, and a line for each setting."""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from xml.etree import ElementTree

from benchmarks.processes import ROOT
from benchmarks.settings.facts import Facts
from benchmarks.settings.setting import Place, Setting, SettingError

#: As in `make test-all`, but with a form of report that has the file of each test.
PYTEST = ["-m", "pytest", "-n", "2", "-o", "junit_family=xunit1"]


@dataclass
class Outcome:
    """What came of the tests in a setting."""

    name: str
    num_passed: int = 0
    num_skipped: int = 0
    failed: Counter[str] = field(default_factory=Counter)  # how often each test has failed
    seconds: float = 0
    why_not: str = ""  # why this machine can't run it
    trouble: str = ""  # what is wrong beside failed tests

    def lines(self) -> list[str]:
        """The setting's line, and one for each failed test."""
        if self.why_not:
            return [f"{self.name:18} can't run here: {self.why_not}"]
        counts = f"{self.num_passed} passed, {self.failed.total()} failed, {self.num_skipped} skipped"
        line = f"{self.name:18} {counts}, {self.seconds:.0f} s" + (f"; {self.trouble}" if self.trouble else "")
        return [
            line,
            *(f"    {test}" + (f" ({times} times)" if times > 1 else "") for test, times in self.failed.items()),
        ]

    def is_good(self, *, may_skip: bool) -> bool:
        """Whether all tests passed; with `may_skip`, also if this machine can't run the setting."""
        return may_skip if self.why_not else not (self.failed or self.trouble)


def main(settings: Collection[Setting], times: int, arguments: Sequence[str], *, may_skip: bool) -> int:
    """Run the tests `times` times in each setting, and print the outcomes. Returns 0, or 1 if one isn't good."""
    here = _here()
    outcomes = [outcome_of(setting, here, times, arguments) for setting in settings]
    print("\n".join(["", *(line for outcome in outcomes for line in outcome.lines())]))
    return 0 if all(outcome.is_good(may_skip=may_skip) for outcome in outcomes) else 1


def describe(settings: Iterable[Setting]) -> int:
    """Print what each setting is, and whether this machine can run it."""
    here = _here()
    for setting in settings:
        why_not = setting.why_not(here)
        print(f"{setting.name:18} {setting.text}" + (f"; can't run here: {why_not}" if why_not else ""))
    return 0


def outcome_of(setting: Setting, here: Facts, times: int, arguments: Sequence[str]) -> Outcome:
    """Run the tests in a setting."""
    outcome = Outcome(setting.name, why_not=setting.why_not(here))
    if outcome.why_not:
        return outcome
    start = time.perf_counter()
    try:
        with tempfile.TemporaryDirectory() as folder, setting.made(_plain(Path(folder)), here) as place:
            print(f"\n{setting.name}: {setting.effect(place.facts())}", flush=True)
            for _ in range(times):
                _run(place, arguments, outcome)
    except SettingError as error:
        outcome.trouble = str(error)
    outcome.seconds = time.perf_counter() - start
    return outcome


def _run(place: Place, arguments: Sequence[str], outcome: Outcome) -> None:
    """Run the tests once, and add them to the outcome."""
    report = place.folder / "report.xml"
    report.unlink(missing_ok=True)
    status = place.run(*PYTEST, f"--junitxml={report}", *arguments, cwd=place.tree).returncode
    failed = add_report(report, outcome) if report.exists() else []
    if status != (1 if failed else 0):
        outcome.trouble = f"pytest ended with status {status}"


def add_report(report: Path, outcome: Outcome) -> list[str]:
    """Add what pytest has reported; returns the tests that failed."""
    ends: dict[str, set[str]] = {}  # a test whose fixture fails afterwards has two entries
    for case in ElementTree.parse(report).iter("testcase"):
        ends.setdefault(_test(case), set()).update(part.tag for part in case)
    failed = [test for test, end in ends.items() if end & {"failure", "error"}]
    skipped = [test for test, end in ends.items() if "skipped" in end and test not in failed]
    outcome.failed.update(failed)
    outcome.num_skipped += len(skipped)
    outcome.num_passed += len(ends) - len(failed) - len(skipped)
    return failed


def _test(case: ElementTree.Element) -> str:
    """The name that pytest uses for a test: the file, the class if it is in one, the name."""
    file, place = case.get("file", ""), case.get("classname", "")
    classes = place.removeprefix(file.removesuffix(".py").replace("/", ".")).strip(".").replace(".", "::")
    return "::".join(filter(None, [file, classes, case.get("name", "")]))


def _here() -> Facts:
    with tempfile.TemporaryDirectory() as folder:
        return _plain(Path(folder)).facts()


def _plain(folder: Path) -> Place:
    """The place without any setting."""
    return Place(tree=ROOT, python=sys.executable, environment=dict(os.environ), folder=folder)
