"""docs/found.md: its scripts print what they say, where the package is installed in the version of the heading."""

from __future__ import annotations

import importlib.metadata
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from packaging.version import Version

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "found.md").read_text(encoding="utf-8")
#: The package and the version of each heading, and its scripts.
SECTIONS = re.findall(r"^## (\S+) (\S+)\n(.*?)(?=^## |\Z)", PAGE, re.M | re.S)
SCRIPTS = [
    pytest.param(package, version, script, id=f"{package} {number}")
    for package, version, text in SECTIONS
    for number, script in enumerate(re.findall(r"```python\n(.*?)```", text, re.S), start=1)
]


def test_every_script_is_run_somewhere() -> None:
    assert len(SCRIPTS) == PAGE.count("```") / 2 == 20
    extra = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    for package, version, _ in SECTIONS:
        assert f'"{package}=={version}' in extra or package == "torch"


@pytest.mark.slow
@pytest.mark.parametrize(("package", "version", "script"), SCRIPTS)
def test_a_script_prints_what_the_page_says(package: str, version: str, script: str) -> None:
    """It alone runs the page's scripts."""
    try:
        installed = Version(importlib.metadata.version(package)).base_version  # of a CPU build, too
    except importlib.metadata.PackageNotFoundError:
        pytest.skip(f"{package} isn't installed")
    if installed != version:
        pytest.skip(f"{package} {installed} is installed, the page is about {version}")
    environment = os.environ | {"PYTHONPATH": str(ROOT / "scripts")}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", script], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    said = [line.removeprefix("# ") for line in script.splitlines() if line.startswith("# ")]
    assert done.stdout.splitlines() == said
