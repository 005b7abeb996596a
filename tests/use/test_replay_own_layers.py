"""A step of a layer of one's own, run again."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest
from mismatches import mismatch
from runs import CONFIG

from nn_manual.cli import main

USER_LAYER = """\
from dataclasses import dataclass
import numpy as np
from nn_manual.layers import Layer

@dataclass(eq=False)
class Square(Layer):
    def forward(self, input):
        return input * input, input
    def backward(self, saved, grad_output):
        return 3 * grad_output * saved
    def reference(self, input):
        return input * input
"""


def test_a_layer_of_ones_own_on_another_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir()
    (here / "my_layers.py").write_text(USER_LAYER)
    mismatch(here / "run", CONFIG.replace("- Tanh", "- my_layers:Square"))
    there.mkdir()
    shutil.move(here / "run" / "mismatch-step-1", there)
    shutil.move(here / "my_layers.py", there)
    shutil.rmtree(here)

    monkeypatch.delitem(sys.modules, "my_layers")  # another machine has not imported it
    bundle = str(there / "mismatch-step-1")
    assert main(["check", "--replay", bundle]) == 2
    err = capsys.readouterr().err
    assert "no module 'my_layers' in" in err
    assert err.splitlines()[-1].endswith("add layer_folder=/path/to/them")
    assert main(["check", "--replay", bundle, f"layer_folder={there}"]) == 3
    assert "wrong first in 1 (Square): 1.grad_input" in capsys.readouterr().out
    (there / "my_layers.py").write_text(USER_LAYER.replace("3 * ", "2 * "))
    assert main(["check", f"layer_folder={there}", "--replay", bundle]) == 0
    assert capsys.readouterr().out.endswith("step 1 is: equal to torch's, since my_layers changed\n")


STATEFUL = """\
from dataclasses import dataclass
import numpy as np
from nn_manual.layers import Layer

@dataclass(eq=False)
class Forgetful(Layer):
    num_calls = 0
    def forward(self, input):
        self.num_calls += 1
        return (input if self.num_calls < 5 else 1.5 * input), input
    def backward(self, saved, grad_output):
        return grad_output.copy()
    def reference(self, input):
        return input
"""


@pytest.mark.parametrize("wrong_in", ["forward", "backward"])
def test_a_fault_that_depends_on_what_a_layer_keeps(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], wrong_in: str
) -> None:
    """The fifth call is wrong, and in the replay it is the first."""
    text = STATEFUL
    if wrong_in == "backward":
        text = text.replace("return (input if self.num_calls < 5 else 1.5 * input), input", "return input, input")
        text = text.replace("grad_output.copy()", "grad_output * (1 if self.num_calls < 5 else 1.5)")
    (tmp_path / "my_layers.py").write_text(text)
    mismatch(tmp_path / "run", CONFIG.replace("- Tanh", "- my_layers:Forgetful"))
    (bundle,) = (tmp_path / "run").glob("mismatch-step-*")
    assert main(["check", "--replay", str(bundle)]) == 6
    assert "does a layer keep a state of its own between steps?" in capsys.readouterr().err


SMALL_PART = """\
from dataclasses import dataclass
import numpy as np
import torch
from nn_manual.layers import Layer, Linear

@dataclass(eq=False)
class Shrunk(Layer):
    def forward(self, input):
        return input * np.array([1, 1e-7], input.dtype), None
    def backward(self, saved, grad_output):
        return grad_output * np.array([1, 1e-7], grad_output.dtype)
    def reference(self, input):
        return input * torch.tensor([1, 1e-7], dtype=input.dtype)

@dataclass(eq=False)
class Doubled(Linear):
    def backward_parameters(self, saved, grad_output):
        super().backward_parameters(saved, grad_output)
        self.grad.weight[:, 1] *= 2
    def reference(self, input, weight, bias):
        return torch.nn.functional.linear(input, weight, bias)
"""


def test_a_small_part_that_a_closer_look_found(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The tensor agrees on its own scale, in the replay, too: that looks as closely."""
    (tmp_path / "small_part.py").write_text(SMALL_PART)
    text = CONFIG.replace("- Linear: {in_features: 2,", "- small_part:Shrunk\n  - small_part:Doubled: {in_features: 2,")
    found = mismatch(tmp_path / "run", text)
    assert [failure.name for failure in found.report.failures] == ["1.grad_weight"]
    (bundle,) = (tmp_path / "run").glob("mismatch-step-*")
    assert main(["check", "--replay", str(bundle)]) == 3
    assert "wrong first in 1 (Doubled): 1.grad_weight" in capsys.readouterr().out
