"""What a run needs, and when it says so."""

from __future__ import annotations

from pathlib import Path

import pytest
from runs import CONFIG, write_config

from nn_manual.config import load_config
from nn_manual.run import needed_memory as the_module
from nn_manual.run.needed_memory import TORCH_ITSELF, Needed, needed_memory, note_of_memory
from nn_manual.run.new_run import run
from nn_manual.run.resume import resume

#: 42 parameters in float32, SGD with momentum, batches of 16: of an example, the layers put out 8, 8 and 2 numbers.
MODEL, STEP = 4 * 3 * 42, 4 * 18 * 16 * 3 // 2
#: The outputs, their gradients and the parameters' are there three times; torch has copies of parameters and vectors.
ALONE = 3 * (4 * 2 * 18 * 16 + 4 * 42) + 4 * 6 * 42
NEEDS = (
    "note: this run needs about 270 MB of memory, and this machine has 270 MB: 0.0005 MB for the model and its "
    "optimizer, 0.0017 MB for a step, less with a smaller batch_size, 270 MB for its proof, none with "
    "gradient_check.every=0"
)


@pytest.mark.parametrize(
    ("overrides", "proof", "plan"),
    [
        (["gradient_check.every=0"], 0, 0),
        (["gradient_check.every=10"], TORCH_ITSELF + ALONE - STEP, 0),
        # Three steps of an epoch wait, as far as there is memory.
        (["gradient_check.every=1"], TORCH_ITSELF + 3 * ALONE - STEP, 0),
        (["gradient_check.every=1", "gradient_check.memory=10 kB"], TORCH_ITSELF + 10_000 - STEP, 0),
        (["gradient_check.every=0", "compiled=true"], 0, STEP + 4 * 5 * 42),
    ],
)
def test_what_a_run_needs(tmp_path: Path, overrides: list[str], proof: int, plan: int) -> None:
    config = load_config(write_config(tmp_path), overrides)
    assert needed_memory(config, (48, 2)) == Needed(MODEL, STEP, proof, plan)


def test_what_is_compared_in_composites(tmp_path: Path) -> None:
    """A layer in one gets its input there, and the composite has an output of its own: as if there were 3 more."""
    text = CONFIG.replace("  - Tanh\n", "  - Residual: [Tanh]\n")
    proofs = [needed_memory(load_config(write_config(tmp_path, each)), (48, 2)).proof for each in (CONFIG, text)]
    assert proofs[1] - proofs[0] == 3 * 3 * 4 * 2 * (8 + 8) * 16


def test_a_batch_is_no_larger_than_the_data(tmp_path: Path) -> None:
    config = load_config(write_config(tmp_path), ["gradient_check.every=0", "batch_size=1000"])
    assert needed_memory(config, (8, 2)) == Needed(MODEL, STEP // 2, 0, 0)


UNCOUNTED = """
from dataclasses import dataclass

from nn_manual import Layer


@dataclass(eq=False)
class Uncounted(Layer):
    def num_products(self, input_shape):
        return "many"

    def forward(self, input):
        return input, None

    def backward(self, saved, grad_output):
        return grad_output
"""


def test_an_estimate_ends_no_run(tmp_path: Path) -> None:
    """Only a check would ask the layer for its products."""
    (tmp_path / "my_layers.py").write_text(UNCOUNTED)
    path = write_config(tmp_path, CONFIG.replace("- Tanh", "- my_layers:Uncounted"))
    config = load_config(path, ["batch_size=12", "epochs=1", "gradient_check.every=0"])
    assert needed_memory(config, (48, 2)) == Needed(MODEL, 0, 0, 0)
    assert run(config, tmp_path / "run")["step"] == 4


def test_it_is_said_where_the_machine_has_less(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = load_config(write_config(tmp_path), ["compiled=true"])
    needed = needed_memory(config, (48, 2))
    monkeypatch.setattr(the_module, "machine_memory", lambda: sum(needed))
    assert note_of_memory(config, (48, 2)) is None
    monkeypatch.setattr(the_module, "machine_memory", lambda: sum(needed) - 1)
    note = note_of_memory(config, (48, 2))
    assert note is not None
    assert note.endswith("for compiling it, none with compiled=false")


def test_a_run_says_it_before_its_first_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It goes on all the same: what a run needs is an estimate."""
    run(load_config(write_config(tmp_path, CONFIG), ["epochs=1"]), tmp_path / "run")
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(the_module, "machine_memory", lambda: MODEL + TORCH_ITSELF + 3 * ALONE - 1)
    run(load_config(write_config(tmp_path, CONFIG), ["epochs=1"]), tmp_path / "other")
    assert " ".join(capsys.readouterr().err.split()) == NEEDS
    resume(tmp_path / "run", ["epochs=2"])
    assert " ".join(capsys.readouterr().err.split()) == NEEDS
