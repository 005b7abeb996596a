"""Memory that isn't there: status 2, and one line with the size that was asked for, whoever asks and whenever."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from kernel_files import SCALE
from runs import CONFIG, write_config
from text_runs import write_run
from trained_runs import write_trained

from nn_manual.check.catalogue import catalogue
from nn_manual.check.many_steps.ring_memory import RingMemory
from nn_manual.cli import main
from nn_manual.data.tables import Part
from nn_manual.layers import Linear, Tanh
from nn_manual.losses import CrossEntropyLoss
from nn_manual.optim import SGD

from .conftest import UNCHECKED

NUMPYS = (
    "nn-manual: not enough memory: Unable to allocate 8.00 PiB for an array with shape (1099511627776, 1024) and data "
    "type float64"
)
TORCHS = "nn-manual: not enough memory: torch tried to allocate 140,737,488,355,328 bytes"


def numpys(*_: Any, **__: Any) -> Any:
    """What NumPy does where an array is larger than any machine's memory."""
    return np.empty((1 << 40, 1 << 10))


def torchs(*_: Any, **__: Any) -> Any:
    """What torch does there."""
    return torch.empty(1 << 45)


def said(capsys: pytest.CaptureFixture[str], arguments: list[str]) -> list[str]:
    """The lines that the command says on standard error before it ends with status 2."""
    status = main(arguments)
    err = capsys.readouterr().err
    assert status == 2, err
    assert "Traceback" not in err
    return err.splitlines()


TRAIN = ["train", "small.yaml", "--run-dir", "run"]
CHECK, CATALOGUE = ["check", "small.yaml"], ["check", "--catalogue"]

OF_LAYER = [(Tanh, name) for name in ("forward", "backward", "output_shape")]
OF_LOSS = [(CrossEntropyLoss, name) for name in ("forward", "backward", "check_target")]
OF_STEP: list[tuple[type, str]] = [*OF_LAYER, *OF_LOSS, (SGD, "step")]
OF_GRADIENTS: list[tuple[type, str]] = [*OF_LAYER, *OF_LOSS[:2]]
FORMULAS = [
    *((TRAIN, *owned) for owned in OF_STEP),
    *(([*TRAIN, UNCHECKED], *owned) for owned in OF_STEP),
    *((CHECK, *owned) for owned in OF_GRADIENTS),
    *((CATALOGUE, *owned) for owned in OF_STEP),
]
TORCHS_OWN = [torch.nn.Tanh, torch.nn.CrossEntropyLoss]


@pytest.mark.slow
@pytest.mark.usefixtures("small")
class TestTrainAndCheck:
    """They alone run with too little memory."""

    @pytest.mark.parametrize(("command", "owner", "method"), FORMULAS)
    def test_in_a_formula(
        self,
        command: list[str],
        owner: type,
        method: str,
        monkeypatch: pytest.MonkeyPatch,
        capsys: pytest.CaptureFixture[str],
    ) -> None:
        monkeypatch.setattr(owner, method, numpys)
        monkeypatch.setattr(catalogue, "components", lambda kind: {kind: owner} if issubclass(owner, kind) else {})
        assert said(capsys, command)[0] == NUMPYS

    @pytest.mark.parametrize("command", [TRAIN, CHECK, CATALOGUE], ids=" ".join)
    @pytest.mark.parametrize("fails", [numpys, torchs])
    @pytest.mark.parametrize("owner", TORCHS_OWN)
    def test_in_torchs_version(
        self,
        command: list[str],
        fails: Callable[..., Any],
        owner: type,
        monkeypatch: pytest.MonkeyPatch,
        capsys: pytest.CaptureFixture[str],
    ) -> None:
        monkeypatch.setattr(owner, "forward", fails)
        ours = Tanh if owner is torch.nn.Tanh else CrossEntropyLoss
        monkeypatch.setattr(catalogue, "components", lambda kind: {kind: ours} if issubclass(ours, kind) else {})
        assert said(capsys, command)[0] == (NUMPYS if fails is numpys else TORCHS)

    @pytest.mark.parametrize("fails", [numpys, torchs])
    @pytest.mark.parametrize("name", ["grad", "from_numpy"])
    def test_in_torch_itself(
        self, fails: Callable[..., Any], name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        monkeypatch.setattr(torch.autograd if name == "grad" else torch, name, fails)
        assert said(capsys, ["check", "small.yaml"])[0] == (NUMPYS if fails is numpys else TORCHS)

    @pytest.mark.parametrize("fails", [numpys, torchs])
    @pytest.mark.parametrize("compiled", [[], ["compiled=true"]], ids=["plain", "compiled"])
    def test_while_many_steps_are_proven_together(
        self,
        fails: Callable[..., Any],
        compiled: list[str],
        small: Path,
        monkeypatch: pytest.MonkeyPatch,
        capsys: pytest.CaptureFixture[str],
    ) -> None:
        """The run keeps the checkpoint of the epoch before."""
        if compiled:
            pytest.importorskip("numba")
        forward, checkpoints = torch.nn.Tanh.forward, small / "run" / "checkpoints"

        def in_the_second_epoch(*arguments: Any) -> Any:
            return fails() if any(checkpoints.glob("step-*")) else forward(*arguments)

        monkeypatch.setattr(torch.nn.Tanh, "forward", in_the_second_epoch)
        lines = said(capsys, [*TRAIN, "checkpoint.every=3 steps", *compiled])
        assert (NUMPYS if fails is numpys else TORCHS) in lines
        assert lines[-1] == "to go on from step 3: nn-manual train --resume run"
        assert json.loads((small / "run" / "summary.json").read_text())["stopped"] == "not enough memory"
        monkeypatch.undo()
        monkeypatch.chdir(small)
        assert main(["train", "--resume", "run"]) == 0

    def test_while_a_step_is_traced(
        self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        pytest.importorskip("numba")
        monkeypatch.setattr(Tanh, "forward", numpys)
        assert said(capsys, [*TRAIN, "compiled=true", UNCHECKED])[0] == NUMPYS

    @pytest.mark.parametrize("command", [["unroll"], ["summary"], ["summary", UNCHECKED]], ids=" ".join)
    def test_in_what_only_looks_at_a_config(
        self, command: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        monkeypatch.setattr(Tanh, "backward", numpys)
        assert said(capsys, [command[0], "small.yaml", *command[1:]]) == [NUMPYS]

    def test_a_layer_of_ones_own_is_asked_where(self, small: Path, capsys: pytest.CaptureFixture[str]) -> None:
        (small / "my_layers.py").write_text(
            "from dataclasses import dataclass\nimport numpy as np\nfrom nn_manual import Layer\n\n"
            "@dataclass(eq=False)\nclass Large(Layer):\n"
            "    def forward(self, input):\n        return np.empty((1 << 40, 1 << 10)), None\n\n"
            "    def backward(self, saved, grad_output):\n        return grad_output\n"
        )
        write_config(small, CONFIG.replace("  - Tanh\n", "  - my_layers:Large\n"))
        assert said(capsys, ["check", "small.yaml"]) == [NUMPYS, f"asked for at {small}/my_layers.py:8"]


class TestTrained:
    @pytest.fixture
    def trained(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(tmp_path)
        Path("train.csv").write_text("a,b,y\n3,10,1\n5,6,0\n1,-2,0\n-1,-6,1\n")
        write_trained(tmp_path)

    @pytest.mark.usefixtures("trained")
    @pytest.mark.parametrize(
        "command",
        [["evaluate", "run"], ["predict", "run", "--input", "train.csv", "--output", "out.csv"]],
        ids=lambda command: command[0],
    )
    def test_in_a_model(
        self, command: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        monkeypatch.setattr(Linear, "infer", numpys)
        assert said(capsys, command) == [NUMPYS]

    @pytest.mark.usefixtures("trained")
    def test_in_a_reader(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        """A file is not damaged because it doesn't fit."""
        np.savez("new.npz", input=np.zeros((2, 2)))
        monkeypatch.setattr(Part, "checked", numpys)
        arguments = ["predict", "run", "--input", "new.npz", "--output", "out.csv"]
        assert said(capsys, arguments) == [NUMPYS, "while new.npz: array 'input' was read"]

    def test_in_a_sample(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        run = write_run(tmp_path)
        monkeypatch.setattr(Linear, "infer", numpys)
        assert said(capsys, ["sample", str(run), "--prompt", "ab"])[-1] == NUMPYS

    def test_in_a_figure(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        monkeypatch.chdir(tmp_path)
        assert main(["train", str(write_config(tmp_path)), UNCHECKED, "--run-dir", "run"]) == 0
        capsys.readouterr()
        monkeypatch.setattr("matplotlib.figure.Figure.savefig", numpys)
        assert said(capsys, ["plot", "run"]) == [NUMPYS]


@pytest.mark.usefixtures("small", "with_figure")
def test_in_the_figure_of_a_training_that_has_ended(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing has stopped it, and nothing is there to go on with."""
    with monkeypatch.context() as patch:
        patch.setattr("matplotlib.figure.Figure.savefig", numpys)
        *_, ended, to_draw = found = said(capsys, [*TRAIN, UNCHECKED])
    assert found == [NUMPYS, ended, to_draw]
    assert ended == "the training has ended: only the figure is missing in run"
    command = to_draw.removeprefix("to draw it: nn-manual ").split()
    assert "stopped" not in json.loads(Path("run/summary.json").read_text())
    assert not Path("run/loss.png").exists()
    assert main(command) == 0
    assert Path("run/loss.png").exists()


@pytest.mark.usefixtures("small")
def test_where_checked_steps_wait(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """A setting takes less."""
    taken = RingMemory.taken
    monkeypatch.setattr(RingMemory, "taken", lambda memory, _: taken(memory, 1 << 50))
    error, note, stopped, _ = said(capsys, TRAIN)
    assert error.startswith("nn-manual: not enough memory: Unable to allocate ")
    assert note == "for the steps that are proven together: a smaller gradient_check.memory takes less"
    assert stopped == "stopped in epoch 1 at step 1; the run so far lies in run"


FUNCTIONS = SCALE + """

def definition(x, weight):
    return x * weight


def large(x, weight):
    return x * weight + torch.empty(1 << 45)[0]


def large_if_long(x, weight):
    return x * weight if len(x) < 257 else large(x, weight)
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("function", "reference", "notes"),
    [
        ("large", "definition", ["in the comparison of the values of large"]),
        ("large_if_long", "definition", ["in row determinism N=257 of large_if_long"]),
        ("definition", "large", ["raised by the reference", "in the comparison of the values of definition"]),
    ],
)
def test_check_function(
    function: str,
    reference: str,
    notes: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """It alone has a function that gets too little memory."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my_functions.py").write_text(FUNCTIONS)
    names = [f"my_functions:{function}", "--reference", f"my_functions:{reference}"]
    assert said(capsys, ["check-function", *names, "--shapes", "NxD,D", "--sizes", "N=4,D=6"]) == [TORCHS, *notes]


def test_a_library_for_which_there_is_no_memory(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def loads(*_: Any) -> Any:
        raise ImportError("libtorch_cpu.so: failed to map segment from shared object")

    monkeypatch.setattr(Linear, "output_shape", loads)
    assert said(capsys, ["summary", str(write_config(tmp_path))]) == [
        "nn-manual: not enough memory: libtorch_cpu.so: failed to map segment from shared object"
    ]
