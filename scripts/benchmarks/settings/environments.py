"""Settings of the versions: environments with other versions of what nn_manual depends on."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from abc import abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from benchmarks.processes import ROOT
from benchmarks.settings.facts import Facts
from benchmarks.settings.setting import Place, Setting, SettingError

#: The extras that the tests need.
EXTRAS = ("dev", "fast")


@dataclass(frozen=True)
class Versions(Setting):
    """An environment that pip fills. It is kept: the next time, pip only checks whether it is still right."""

    @abstractmethod
    def options(self) -> list[str]:
        """The options that tell pip which versions to take."""

    @contextmanager
    def made(self, place: Place, here: Facts) -> Iterator[Place]:
        """The place with the environment's interpreter."""
        del here
        environment = ROOT / "build" / "settings" / self.name
        python = str(environment / "bin" / "python")
        if not Path(python).exists():
            subprocess.run([sys.executable, "-m", "venv", environment], check=True)
        package = f"{place.tree}[{','.join(EXTRAS)}]"
        there = replace(place, python=python)
        only_wheels = ["--quiet", "--only-binary", ":all:"]
        command = ["-m", "pip", "install", *only_wheels, *self.options(), "--editable", package]
        done = there.run(*command, cwd=place.folder, capture=True)
        if done.returncode != 0:
            errors = [line for line in done.stderr.splitlines() if line.startswith("ERROR")]
            raise SettingError("\n".join(errors or done.stderr.splitlines()[-1:]))
        yield there

    def effect(self, there: Facts) -> str:
        """The versions."""
        return ", ".join(f"{of.name} {_version(of, there)}" for of in requirements())


@dataclass(frozen=True)
class Oldest(Versions):
    """The oldest versions that pyproject.toml allows."""

    def why_not(self, here: Facts) -> str:
        """Empty with the oldest Python: many of the oldest versions have no wheel for a newer one."""
        del here
        version, oldest = "{}.{}".format(*sys.version_info), _project()["requires-python"].removeprefix(">=")
        return "" if version == oldest else f"it takes Python {oldest}, which the oldest versions have wheels for"

    def options(self) -> list[str]:
        """Each lower bound, as the only version."""
        return [str(of).replace(">=", "==") for of in requirements()]

    def effect(self, there: Facts) -> str:
        """The versions. Raises SettingError if one isn't its lower bound."""
        for of, only in zip(requirements(), self.options(), strict=True):
            if not Requirement(only).specifier.contains(_version(of, there)):
                raise SettingError(f"{of.name} is {_version(of, there)}, not {only}")
        return super().effect(there)


@dataclass(frozen=True)
class Newest(Versions):
    """The newest versions on the registry that fit together."""

    def why_not(self, here: Facts) -> str:
        """Empty: there are newest versions for every machine."""
        del here
        return ""

    def options(self) -> list[str]:
        """The options that make pip look for newer versions of everything that is installed."""
        return ["--upgrade", "--upgrade-strategy", "eager"]


def requirements() -> list[Requirement]:
    """What the tests need on this machine, in the order of pyproject.toml."""
    project = _project()
    lines = [*project["dependencies"], *(line for extra in EXTRAS for line in project["optional-dependencies"][extra])]
    needed = map(Requirement, lines)
    return [requirement for requirement in needed if requirement.marker is None or requirement.marker.evaluate()]


def _version(requirement: Requirement, there: Facts) -> str:
    return there.versions[canonicalize_name(requirement.name)]


def _project() -> dict[str, Any]:
    project: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return project
