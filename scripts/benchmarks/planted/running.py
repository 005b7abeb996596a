"""Plants each fault, and runs the tests that execute its line, quickest first, to the first failure."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from benchmarks.planted.faults import Fault
from benchmarks.planted.probe import FOLDER

#: The probe's name as a module of the tree, which may not have this folder.
PROBE = "planted_probe"
#: Tests that one process runs: those to the first failure are few in most cases.
CHUNK = 400
#: Seconds after which a process counts as failed: a fault may make a loop endless.
LIMIT = 900


class State:
    """A commit of the package, its faults, and the tests that run their lines. What is known is in `folder`."""

    def __init__(self, tree: Path, folder: Path, faults: Sequence[Fault]) -> None:
        self.tree, self.folder, self.faults = tree, folder, faults
        #: The tests of each fault, quickest first, and those that are slow by their mark.
        self._known = folder / "tests.json"

    def find_tests(self) -> None:
        """Find out which tests run the line of each fault, by a run of all tests in which the lines report themselves.
        """
        if not self._known.exists():
            found = self.folder / "found"
            shutil.rmtree(found, ignore_errors=True)
            found.mkdir()
            (self.folder / PROBE).with_suffix(".py").write_bytes(Path(__file__).with_name("probe.py").read_bytes())
            self._with_probes()
            try:
                self._pytest(["tests"], found, "-n", str(os.cpu_count()), "-p", PROBE, limit=None)
            finally:
                self._clean()
            self._known.write_text(json.dumps(_collected(found)), encoding="utf-8")

    def outcome(self, number: int) -> dict[str, Any]:
        """The first of the quick tests that fails with a fault, and the first of all; None where none does."""
        known = json.loads(self._known.read_text(encoding="utf-8"))
        fault, tests, slow = self.faults[number], known["tests"].get(str(number), []), set(known["slow"])
        quick_one = self._found_by(fault, [test for test in tests if test not in slow])
        of_all = quick_one or self._found_by(fault, [test for test in tests if test in slow])
        return {"fault": fault.name, "num_tests": len(tests), "quick": quick_one, "all": of_all}

    def _found_by(self, fault: Fault, tests: Sequence[str]) -> str | None:
        """The first test that fails with the fault, and not without it."""
        while tests:
            path = self.tree / fault.path
            lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
            lines[fault.number - 1] = fault.changed + "\n"
            path.write_text("".join(lines), encoding="utf-8")
            try:
                failed = self._first_failure(tests)
            finally:
                self._clean()
            if failed is None or failed not in tests or not self._pytest([failed], self.folder)[0]:
                return failed
            tests = tests[tests.index(failed) + 1 :]
        return None

    def _first_failure(self, tests: Sequence[str]) -> str | None:
        for start in range(0, len(tests), CHUNK):
            chunk = tests[start : start + CHUNK]
            status, output = self._pytest(chunk, self.folder, "-x")
            if status:
                failed = [line.split(" ")[1] for line in output.splitlines() if line.startswith(("FAILED ", "ERROR "))]
                return failed[0] if failed else f"one of {chunk[0]} ... {chunk[-1]}"
        return None

    def _with_probes(self) -> None:
        """Let the line of each fault report itself."""
        of_files: dict[str, dict[int, list[int]]] = {}
        for number, fault in enumerate(self.faults):
            of_files.setdefault(fault.path, {}).setdefault(fault.statement, []).append(number)
        for name, places in of_files.items():
            path = self.tree / name
            changed = []
            for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
                indent = line[: len(line) - len(line.lstrip())]
                for each in places.get(number, []):
                    changed.append(f"{indent}import {PROBE}; {PROBE}.hit({each})")
                changed.append(line)
            path.write_text("\n".join(changed) + "\n", encoding="utf-8")

    def _pytest(
        self, tests: Sequence[str], found: Path, *options: str, limit: float | None = LIMIT
    ) -> tuple[int, str]:
        """Run tests; returns whether some failed, and what pytest printed. It reads their names from a file: there may
        be more than a command line holds.
        """
        listed = self.folder / f"tests-{os.getpid()}.txt"
        listed.write_text("\n".join(tests), encoding="utf-8")
        paths = os.pathsep.join(map(str, (self.tree, self.folder)))
        own = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
        # A fault may leave a file as long as it was, within a second: Python would go on with the compiled module.
        environment = own | {"PYTHONPATH": paths, FOLDER: str(found), "PYTHONDONTWRITEBYTECODE": "1"}
        command = [sys.executable, "-m", "pytest", "-q", "--tb=no", "-rfE", *options, f"@{listed}"]
        try:
            ended = subprocess.run(
                command, cwd=self.tree, env=environment, capture_output=True, text=True, check=False, timeout=limit
            )
        except subprocess.TimeoutExpired:
            return 1, ""
        return int(ended.returncode != 0), ended.stdout

    def _clean(self) -> None:
        subprocess.run(["git", "-C", str(self.tree), "checkout", "--", "."], check=True, capture_output=True)


def _collected(found: Path) -> dict[str, Any]:
    """What the probes have left, in the order in which the tests are to run."""
    seconds, slow, of_each = dict[str, float](), set[str](), dict[int, set[str]]()
    for kind, line in _lines(found):
        if kind == "test":
            test, duration, is_slow = json.loads(line)
            seconds[test] = duration
            slow |= {test} if is_slow else set()
        else:
            number, test = json.loads(line)
            of_each.setdefault(number, set()).add(test)
    return {
        "tests": {
            str(number): sorted(tests & seconds.keys(), key=lambda test: (seconds[test], test))
            for number, tests in of_each.items()
        },
        "slow": sorted(slow),
    }


def _lines(found: Path) -> Iterator[tuple[str, str]]:
    for path in sorted(found.iterdir()):
        for line in path.read_text(encoding="utf-8").splitlines():
            yield path.name.partition("-")[0], line
