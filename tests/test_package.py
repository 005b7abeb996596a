"""The package as others install it: a wheel and an sdist that have all they need, and nothing else."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
BUILD = """
import sys
from setuptools import build_meta
folder = sys.argv[1]  # setuptools changes the arguments
build_meta.build_wheel(folder)
build_meta.build_sdist(folder)
"""


#: The suffixes of the files beside the package that a wheel is built from.
PARTS = {".toml", ".md", ".py", ""}


@pytest.mark.slow
def test_a_wheel_trains_in_an_environment_of_its_own(tmp_path: Path) -> None:
    """It alone builds and installs the package."""
    source, built = tmp_path / "source", tmp_path / "built"
    for path in sorted(ROOT.glob("nn_manual/**/*")) + [path for path in ROOT.iterdir() if path.suffix in PARTS]:
        if path.is_file() and "__pycache__" not in path.parts:
            (source / path.relative_to(ROOT)).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, source / path.relative_to(ROOT))  # the checkout may be read-only
    subprocess.run([sys.executable, "-c", BUILD, str(built)], cwd=source, capture_output=True, check=True)
    sdist, wheel = sorted(built.iterdir(), key=lambda path: path.suffix)  # .gz, .whl
    names = zipfile.ZipFile(wheel).namelist()
    assert {"nn_manual/py.typed", "_nn_manual_pytest_plugin.py"} <= set(names)
    assert any(name.endswith("licenses/LICENSE") for name in names)
    assert {name.partition("/")[0] for name in names if "dist-info" not in name} == {
        "nn_manual",
        "_nn_manual_pytest_plugin.py",
    }
    with tarfile.open(sdist) as archive:
        assert any(name.endswith("/nn_manual/cli/commands.py") for name in archive.getnames())

    home = tmp_path / "home"
    venv.create(home, with_pip=False)
    site = next((home / "lib").glob("python*/site-packages"))
    zipfile.ZipFile(wheel).extractall(site)
    (site / "others.pth").write_text(sysconfig.get_path("purelib"))  # numpy and the like, but no editable install
    program = "import nn_manual, sys; print(nn_manual.__file__); from nn_manual.cli import main; sys.exit(main())"
    config = ROOT / "config" / "diabetes.yaml"
    done = subprocess.run(
        [home / "bin" / "python", "-c", program, "train", str(config), "epochs=2", "--run-dir", "run"],
        cwd=tmp_path,
        env={name: value for name, value in os.environ.items() if name != "PYTHONPATH"},  # it may name the checkout
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(str(site))
    assert "every gradient right: " in done.stdout
