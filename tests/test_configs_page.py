"""docs/configs.md: every key, type and default in it is the code's, nothing is left out, and its commands work."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import sysconfig
from pathlib import Path

import numpy as np
import pytest
from config_page import PAGE, Key, keys_of_components, keys_of_config, keys_of_page, section

from nn_manual.config import load_config
from nn_manual.config.run_config import InitFrom
from nn_manual.data import Dataset
from nn_manual.layers import Layer
from nn_manual.losses import Loss
from nn_manual.model.initializers import Initializer
from nn_manual.optim import Optimizer, Scheduler
from nn_manual.registry import KINDS

DOCS = Path(__file__).parents[1] / "docs"

SECTIONS: dict[str, type] = {
    "Data": Dataset,
    "Layers": Layer,
    "Losses": Loss,
    "Optimizers": Optimizer,
    "Schedules": Scheduler,
    "Initializers": Initializer,
}


def test_the_keys_of_a_config() -> None:
    assert set(keys_of_page("Keys")) == set(keys_of_config())
    assert Key("", "epochs", "integer", "needed") in keys_of_page("Keys")


def test_every_kind_of_component_has_a_section() -> None:
    assert set(SECTIONS.values()) == KINDS.keys()


@pytest.mark.parametrize("heading", SECTIONS)
def test_the_keys_of_components(heading: str) -> None:
    stated = list(keys_of_page(heading))
    assert len(stated) == len(set(stated))
    assert set(stated) == set(keys_of_components(SECTIONS[heading]))


def test_every_row_says_what_it_is() -> None:
    rows = [row.split("|") for row in re.findall(r"^\|( [*`].*)\|$", PAGE, re.MULTILINE)]
    assert len(rows) > 150
    assert [row for row in rows if len(row) != 4 or not row[3].strip()] == []


def test_the_configs_shown_are_some(tmp_path: Path) -> None:
    """A whole one, and keys that can stand behind it."""
    whole, start = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
    (tmp_path / "shown.yaml").write_text(whole + start)
    config = load_config(tmp_path / "shown.yaml")
    assert config.epochs == 20
    assert config.init_from == InitFrom(
        tmp_path / "mine.safetensors", {"0.weight": "hidden.w", "2.weight": "head.w.T", "2.bias": None}
    )


def output_of(blocks: list[str], folder: Path) -> str:
    """What the page's commands print when they run in the folder; they say nothing on standard error but notes."""
    path = os.pathsep.join([str(Path(sys.executable).parent), sysconfig.get_path("scripts"), os.environ["PATH"]])
    done = subprocess.run(
        ["bash", "-e", "-c", "\n".join(blocks)],
        cwd=folder, env=os.environ | {"PATH": path}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, re.sub(r"note: .*\n", "", done.stderr)) == (0, "")
    return done.stdout


@pytest.mark.slow
def test_a_csv_is_trained_on_as_the_page_says(tmp_path: Path) -> None:
    """It alone runs the page's commands on a CSV file."""
    blocks = re.findall(r"```sh\n(.*?)```", section("Train on your own CSV"), re.DOTALL)
    assert len(blocks) == 4
    stdout = output_of(blocks, tmp_path)
    assert stdout.startswith("sepal_length,sepal_width,petal_length,petal_width,species\n5.1,3.5,1.4,0.2,0\n")
    accuracies = [float(accuracy) for accuracy in re.findall(r"accuracy ([\d.]+)% after", stdout)]
    assert accuracies[-1] > 90
    assert {"config.yaml", "loss.png"} <= {path.name for path in (tmp_path / "iris").iterdir()}
    assert (tmp_path / "iris.svg").exists()
    *_, error = re.findall(r"validation loss ([\d.]+) after", stdout)
    assert float(error) < 0.5


@pytest.mark.slow
def test_several_classes_are_trained_on_as_the_page_says(tmp_path: Path) -> None:
    """It alone runs the page's commands on a class for each time."""
    stdout = output_of(re.findall(r"```sh\n(.*?)```", section("Several classes for each example"), re.DOTALL), tmp_path)
    (accuracy,) = re.findall(r"best weights: .*accuracy ([\d.]+)%", stdout)
    assert float(accuracy) > 99
    with np.load(tmp_path / "predicted.npz") as predicted, np.load(tmp_path / "digits.npz") as given:
        is_there = np.arange(20) < given["lengths"][:, np.newaxis]
        assert predicted["probabilities"].shape == (1000, 20, 3)
        assert (predicted["predicted_class"] == given["steps"])[is_there].mean() > 0.99


def test_no_two_pages_write_one_file() -> None:
    """Whoever follows both in a folder would get the other one's columns."""
    pages = [page.read_text(encoding="utf-8") for page in sorted(DOCS.glob("*.md"))]
    written = [set(re.findall(r"(?:> |open\(\")(\w+\.csv)", page)) for page in pages]
    names = [name for found in written for name in found]
    assert {"iris.csv", "flowers.csv", "clouds.csv"} <= set(names)
    assert len(names) == len(set(names))
