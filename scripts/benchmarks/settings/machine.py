"""Settings of the machine: its cores, and what else runs on them."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from benchmarks.settings.facts import Facts
from benchmarks.settings.setting import Place, Setting, SettingError

#: A busy loop, which ends with the process that started it.
LOOP = "import os\nparent = os.getppid()\nwhile os.getppid() == parent: pass"


@dataclass(frozen=True)
class OneCore(Setting):
    """All processes on one core."""

    def why_not(self, here: Facts) -> str:
        """Empty if a process may choose its cores."""
        del here
        return "" if hasattr(os, "sched_setaffinity") else "this system lets no process choose its cores"

    @contextmanager
    def made(self, place: Place, here: Facts) -> Iterator[Place]:
        """The same place: its processes inherit the cores of this one."""
        del here
        cores = os.sched_getaffinity(0)
        os.sched_setaffinity(0, {min(cores)})
        try:
            yield place
        finally:
            os.sched_setaffinity(0, cores)

    def effect(self, there: Facts) -> str:
        """The number of cores."""
        if there.num_cores != 1:
            raise SettingError(f"the tests have {there.num_cores} cores")
        return "1 core"


@dataclass(frozen=True)
class Busy(Setting):
    """Busy loops beside the tests."""

    num_loops: int = 4

    def why_not(self, here: Facts) -> str:
        """Empty: every machine can be busy."""
        del here
        return ""

    @contextmanager
    def made(self, place: Place, here: Facts) -> Iterator[Place]:
        """The same place. Raises SettingError at the end if a loop has stopped before."""
        del here
        loops = [subprocess.Popen([sys.executable, "-c", LOOP]) for _ in range(self.num_loops)]
        try:
            yield place
            if ended := sum(loop.poll() is not None for loop in loops):
                raise SettingError(f"{ended} of {self.num_loops} busy loops ended before the tests did")
        finally:
            for loop in loops:
                loop.kill()
                loop.wait()

    def effect(self, there: Facts) -> str:
        """The number of loops; whether they ran is only known at the end."""
        del there
        return f"{self.num_loops} busy loops"
