"""What a setting is, and the place that it makes for the tests."""

from __future__ import annotations

import subprocess
from abc import ABC, abstractmethod
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.processes import ROOT
from benchmarks.settings import facts
from benchmarks.settings.facts import Facts


class SettingError(Exception):
    """A setting can't be made, or it took no effect; the message says why."""


@dataclass(frozen=True)
class Place:
    """Where the tests run."""

    tree: Path  # the checkout
    python: str
    environment: Mapping[str, str]
    folder: Path  # an empty one, which goes away with the place
    prefix: tuple[str, ...] = ()  # the command that starts a process, and ends with its status

    def run(
        self, *arguments: str, cwd: Path, variables: Mapping[str, str] | None = None, capture: bool = False
    ) -> subprocess.CompletedProcess[str]:
        """Run Python to its end."""
        command = [*self.prefix, self.python, *arguments]
        environment = {**self.environment, **(variables or {})}
        return subprocess.run(command, cwd=cwd, env=environment, capture_output=capture, text=True, check=False)

    def facts(self) -> Facts:
        """The facts about a process in this place. Raises SettingError."""
        script = self.tree / Path(facts.__file__).relative_to(ROOT)
        # Outside of the checkout: so this imports the same nn_manual as a process that a test starts.
        done = self.run("-P", str(script), str(self.tree), cwd=self.folder, variables=facts.VERBOSE, capture=True)
        if done.returncode != 0:
            last = (done.stderr.strip().splitlines() or ["it printed nothing"])[-1]
            raise SettingError(f"Python ended with status {done.returncode}: {last}")
        found = facts.parsed(done.stdout)
        if Path(found.package) != (self.tree / "nn_manual").resolve():
            raise SettingError(f"nn_manual is imported from {found.package}, not from {self.tree}")
        return found


@dataclass(frozen=True)
class Setting(ABC):
    """A setting for the tests."""

    name: str
    text: str

    @abstractmethod
    def why_not(self, here: Facts) -> str:
        """Why this machine, which is `here` without the setting, can't run it; empty if it can."""

    @abstractmethod
    def made(self, place: Place, here: Facts) -> AbstractContextManager[Place]:
        """The place with this setting, as long as the tests run. Raises SettingError."""

    @abstractmethod
    def effect(self, there: Facts) -> str:
        """What a process in the place says about the setting. Raises SettingError if that isn't what was set."""
