"""Notebooks that are written, run by jupyter, and read back."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

#: What a notebook is run with; an extra, because users have it where they have notebooks.
NEEDED = ("nbformat", "nbconvert", "ipykernel", "ipywidgets")


def executed(folder: Path, sources: list[str]) -> list[Any]:
    """Run a notebook with a cell for each source, and return the outputs of each cell. Skips the test where jupyter is
    missing.
    """
    for module in NEEDED:
        pytest.importorskip(module, reason=f"no {module}: pip install 'nn_manual[notebook]'")
    import nbformat

    cells = [nbformat.v4.new_code_cell(source) for source in sources]
    nbformat.write(nbformat.v4.new_notebook(cells=cells), folder / "written.ipynb")
    # The kernel of this Python, and none of the settings of whoever runs the tests.
    folders = ("JUPYTER_DATA_DIR", "JUPYTER_CONFIG_DIR", "JUPYTER_RUNTIME_DIR", "IPYTHONDIR")
    own = {"JUPYTER_PREFER_ENV_PATH": "1", **dict.fromkeys(folders, str(folder))}
    command = [sys.executable, "-m", "nbconvert", "--to", "notebook", "--execute", "written.ipynb", "--output", "run"]
    done = subprocess.run(command, cwd=folder, env=os.environ | own, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return [cell.outputs for cell in nbformat.read(folder / "run.ipynb", as_version=4).cells]
