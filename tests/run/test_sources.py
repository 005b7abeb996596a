"""Which files a run's formulas stand in, and that a change of any of them shows."""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path

import pytest
from runs import CONFIG, write_config

from nn_manual.config import load_config
from nn_manual.run.sources import sources_of

LAYER = """\
from dataclasses import dataclass
import numpy as np
from my_bases import Base
from my_formulas import formulas

@dataclass(eq=False)
class Square(Base):
    pass
"""
BASE = """\
from nn_manual.layers import Layer
import my_formulas.formulas as formulas

class Base(Layer):
    def forward(self, input):
        return formulas.square(input), input
    def backward(self, saved, grad_output):
        return formulas.slope(saved) * grad_output
"""
FORMULAS = """\
def square(input):
    return input * input
def slope(input):
    return 2 * input
"""
PACKAGE = {
    "nn_manual.model.sequential", "nn_manual.layers.base", "nn_manual.layers.linear", "nn_manual.losses.base",
    "nn_manual.losses.cross_entropy", "nn_manual.optim.sgd", "nn_manual.optim.clipping",
    "nn_manual.layers.fast_forms", "nn_manual.losses.class_targets", "nn_manual.optim.groups",
    "nn_manual.layers.composite", "nn_manual.layers.with_buffers",
}  # fmt: skip - a list of names


def test_the_packages_own(tmp_path: Path) -> None:
    sources = sources_of(load_config(write_config(tmp_path)))
    of_formulas = {name for name in sources if not name.startswith("nn_manual.model.")} | {"nn_manual.model.sequential"}
    contracts = {f"nn_manual.optim.{name}" for name in ("base", "checked_settings", "l2", "parts", "scheduler_base")}
    assert of_formulas - contracts == PACKAGE | {"nn_manual.layers.activations"}
    file = Path(sys.modules["nn_manual.model.sequential"].__file__ or "")
    assert sources["nn_manual.model.sequential"] == hashlib.sha256(file.read_bytes()).hexdigest()


@pytest.mark.parametrize("changed", ["my_layers.py", "my_bases.py", "my_formulas/formulas.py"])
def test_the_users_own_and_all_that_they_import_from_their_folder(tmp_path: Path, changed: str) -> None:
    folder = tmp_path / "my code"
    (folder / "my_formulas").mkdir(parents=True)
    for name, text in {"my_layers.py": LAYER, "my_bases.py": BASE, "my_formulas/formulas.py": FORMULAS}.items():
        (folder / name).write_text(text)
    config = CONFIG.replace("- Tanh", "- Sequential: [my_layers:Square]") + "layer_folder: my code/../my code\n"
    before = sources_of(load_config(write_config(tmp_path, config)))
    mine = {"my_layers", "my_bases", "my_formulas.formulas"}
    assert before.keys() >= PACKAGE | mine
    (folder / changed).write_text((folder / changed).read_text() + "# corrected\n")
    after = sources_of(load_config(write_config(tmp_path, config)))
    assert {name for name in before if after[name] != before[name]} == {changed.removesuffix(".py").replace("/", ".")}
