"""A step that differed, run again: the same to the bit, right once the formula is, refused where corrupt."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mismatches import EVERYTHING, mismatch, wrong_from_step, wrong_tanh
from problems import problem_and_place
from runs import CONFIG, names

from nn_manual.arrays import Array
from nn_manual.cli import main
from nn_manual.config import load_config
from nn_manual.errors import ConfigError, DataError
from nn_manual.layers import Tanh
from nn_manual.optim import SGD, clip_grad_norm
from nn_manual.run_directory.files import read_weights, write_weights
from nn_manual.running import replay as replay_module
from nn_manual.running import trainer
from nn_manual.running.bundle import read_bundle, versions
from nn_manual.running.replay import replay
from nn_manual.running.sources import sources_of


@pytest.mark.parametrize("settings", [[], ["dtype=float64"], ["gradient_check.every=5"], ["optimizer.SGD.momentum=0"]])
def test_the_same_step_to_the_bit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: list[str]) -> None:
    """Step 5 of 9: in the second epoch, with momentum, a scheduled lr and a clipped gradient."""
    with monkeypatch.context() as context:
        wrong_from_step(context, 5, Tanh, "backward", wrong_tanh)
        found = mismatch(tmp_path / "run", EVERYTHING, *settings)
    bundle = tmp_path / "run" / "mismatch-step-5"
    assert names(bundle) == ["bundle.yaml", "config.yaml", "tensors.safetensors"]

    monkeypatch.setattr(Tanh, "backward", wrong_tanh)
    replayed = replay(bundle)
    assert not replayed.passed
    assert replayed.report is not None
    assert replayed.report.comparisons == found.report.comparisons
    assert replayed.report.failures[0].name == "1.grad_input"
    assert replayed.deviations == {f"grad_output {label}": 0.0 for label in ("0 (Linear)", "1 (Tanh)", "2 (Linear)")}
    assert str(replayed) == (
        "step 5 was: wrong first in 1 (Tanh): 1.grad_input\n"
        f"the gradients between the layers are the recorded ones, bit for bit\n\n{found}"
    )


def test_right_once_the_formula_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as context:
        wrong_from_step(context, 5, Tanh, "backward", wrong_tanh)
        mismatch(tmp_path / "run")
    now = sources_of(load_config(tmp_path / "run" / "config.yaml"))
    monkeypatch.setattr(replay_module, "sources_of", lambda _: now | {"nn_manual.layers.activations": "corrected"})
    replayed = replay(tmp_path / "run" / "mismatch-step-5")
    assert replayed.passed
    assert [name for name, deviation in replayed.deviations.items() if deviation] == ["grad_output 0 (Linear)"]
    assert str(replayed).splitlines()[0] == "step 5 was: wrong first in 1 (Tanh): 1.grad_input"
    assert str(replayed).splitlines()[1].startswith("grad_output 0 (Linear) differs by ")
    last = "step 5 is: equal to torch's, since nn_manual.layers.activations changed"
    assert str(replayed).splitlines()[2:] == ["", last]


def test_right_with_the_sources_that_it_was_wrong_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing says that it is put right."""
    with monkeypatch.context() as context:
        wrong_from_step(context, 5, Tanh, "backward", wrong_tanh)
        mismatch(tmp_path / "run")
    bundle = tmp_path / "run" / "mismatch-step-5"
    replayed = replay(bundle)
    assert replayed.report is None
    assert not replayed.passed
    assert main(["check", "--replay", str(bundle)]) == 6
    out, err = capsys.readouterr()
    assert out.splitlines()[-1] == "step 5 is: equal to torch's, but not reproduced"
    assert err == (
        "nn-manual: step 5 is not reproduced: it equals torch's with the very sources that it was wrong with; "
        "does a layer keep a state of its own between steps?\n"
    )


def test_a_wrong_optimizer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    right = SGD.move

    def wrong_in_the_second_epoch(self: SGD, param: Array, grad: Array, *others: Any) -> None:
        right(self, param, grad, *others)
        if self.lr == 0.25:
            param -= grad

    with monkeypatch.context() as context:
        context.setattr(SGD, "move", wrong_in_the_second_epoch)
        found = mismatch(tmp_path / "run", EVERYTHING)
    assert found.report.failures[0].name == "updated 0.weight"
    bundle = tmp_path / "run" / "mismatch-step-4"
    assert replay(bundle).report is None
    monkeypatch.setattr(SGD, "move", wrong_in_the_second_epoch)
    again = replay(bundle).report
    assert again is not None
    assert again.comparisons == found.report.comparisons


def test_a_wrong_clipping(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as context:
        context.setattr(trainer, "clip_grad_norm", lambda grad, max_norm: clip_grad_norm(grad, 2 * max_norm))
        found = mismatch(tmp_path / "run", EVERYTHING)
        again = replay(tmp_path / "run" / "mismatch-step-1").report
    assert again is not None
    assert again.comparisons == found.report.comparisons
    assert again.failures[0].name == "clipped gradient"
    assert replay(tmp_path / "run" / "mismatch-step-1").report is None


@pytest.mark.parametrize("method", ["forward", "backward"])
def test_a_layer_that_raises(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: str) -> None:
    def raising(*_: Any) -> Any:
        raise ZeroDivisionError("no way")

    with monkeypatch.context() as context:
        wrong_from_step(context, 2, Tanh, method, raising)
        found = mismatch(tmp_path / "run")
    assert problem_and_place(found.report)[0] == f"1 (Tanh): {method} raised ZeroDivisionError: no way"
    bundle = tmp_path / "run" / "mismatch-step-2"
    assert replay(bundle).report is None
    monkeypatch.setattr(Tanh, method, raising)
    again = replay(bundle)
    assert again.report is not None
    assert again.report.problem == found.report.problem
    # A forward that raises leaves no gradient to compare.
    assert ("bit for bit" in str(again)) == (method == "backward")


def test_what_a_layer_raises_may_be_any_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def raising(*_: Any) -> Any:
        raise ValueError("two\nlines, \x1b[1mbold")

    monkeypatch.setattr(Tanh, "forward", raising)
    mismatch(tmp_path / "run")
    found = replay(tmp_path / "run" / "mismatch-step-1").bundle.found
    assert found.startswith("1 (Tanh): forward raised ValueError: two lines, \\x1b[1mbold (")


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


def test_another_step_than_the_recorded_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A gradient that came before the wrong tensor is not the recorded one: no change of a file explains it away."""
    with monkeypatch.context() as context:
        wrong_from_step(context, 5, Tanh, "backward", wrong_tanh)
        mismatch(tmp_path / "run")
    bundle = tmp_path / "run" / "mismatch-step-5"
    tensors = read_weights(bundle / "tensors.safetensors")
    tensors["grad_output 1 (Tanh)"] *= np.float32(1.3)
    rewrite(bundle, tensors)
    monkeypatch.setattr(replay_module, "sources_of", lambda _: {})
    replayed = replay(bundle)
    assert not replayed.passed
    message = "grad_output 1 (Tanh) is not the recorded one, though it was computed before 1.grad_input"
    assert replayed.not_reproduced == message
    tensors["grad_output 1 (Tanh)"] /= np.float32(1.3)
    tensors["grad_output 0 (Linear)"] *= 2  # what the wrong formula returned, and nobody has to compute again
    rewrite(bundle, tensors)
    assert replay(bundle).passed


def rewrite(bundle: Path, tensors: dict[str, Any]) -> None:
    """Put other tensors into a bundle, with their checksum."""
    before = read_bundle(bundle / "bundle.yaml").sha256
    sha256 = write_weights(bundle / "tensors.safetensors", tensors)
    described = bundle / "bundle.yaml"
    described.write_text(described.read_text().replace(before, sha256))


def test_other_versions_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Tanh, "backward", wrong_tanh)
    mismatch(tmp_path / "run")
    now = versions()
    monkeypatch.setattr(replay_module, "versions", lambda: now | {"torch": "99.0"})
    replayed = replay(tmp_path / "run" / "mismatch-step-1")
    assert str(replayed).splitlines()[1] == f"torch was {now['torch']}, is 99.0"


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bundle to copy and spoil."""
    directory = tmp_path_factory.mktemp("wrong") / "run"
    with pytest.MonkeyPatch.context() as monkeypatch:
        wrong_from_step(monkeypatch, 2, Tanh, "backward", wrong_tanh)
        mismatch(directory)
    return directory / "mismatch-step-2"


def flip_a_bit(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[-3] ^= 4
    path.write_bytes(data)


def replace(old: str, new: str) -> Callable[[Path], None]:
    def replace(path: Path) -> None:
        text = path.read_text()
        assert old in text
        path.write_text(text.replace(old, new))

    return replace


@pytest.mark.parametrize(
    ("file", "spoil", "error", "message"),
    [
        ("bundle.yaml", Path.unlink, DataError, "bundle.yaml: can't be read: No such file"),
        ("config.yaml", Path.unlink, DataError, "config.yaml: is missing from the bundle"),
        ("tensors.safetensors", Path.unlink, DataError, "tensors.safetensors: can't be read: No such file"),
        ("tensors.safetensors", flip_a_bit, DataError, "tensors.safetensors: is corrupt: its SHA-256 is "),
        ("bundle.yaml", lambda path: path.write_bytes(b"\xff"), DataError, "description of a bundle: 'utf-8' codec"),
        ("bundle.yaml", lambda path: path.write_text(""), DataError, "is no whole description of a bundle: "),
        ("bundle.yaml", lambda path: path.write_text("step: ["), DataError, "is no whole description of a bundle: "),
        ("bundle.yaml", replace("step: 2", "step: two"), DataError, "is no whole description of a bundle: step: "),
        ("bundle.yaml", replace("lrs:", "rates:"), DataError, "whole description of a bundle: lrs: Field required"),
        ("bundle.yaml", replace("lrs: [", "lrs: [1.0, "), DataError, "has 2 lrs, config.yaml asks for 1"),
        ("bundle.yaml", replace("float32: ", "float16: "), DataError, "bundle.yaml: has no tolerance for float32"),
        ("config.yaml", replace("dtype: float32", "dtype: float64"), DataError, "is float64, its input float32"),
        ("config.yaml", replace("out_features: 8", "out_features: 9"), ConfigError, "in_features=8"),
        ("config.yaml", replace("s: 8", "s: 9"), DataError, "tensors.safetensors: doesn't fit config.yaml: parameter"),
        ("config.yaml", replace("seed: 0", "seed: -1"), ConfigError, "config.yaml:1:1: seed must be at least 0"),
    ],
)
def test_what_is_no_bundle(
    bundle: Path, tmp_path: Path, file: str, spoil: Callable[[Path], None], error: type[Exception], message: str
) -> None:
    spoilt = shutil.copytree(bundle, tmp_path / "spoilt")
    spoil(spoilt / file)
    with pytest.raises(error) as caught:
        replay(spoilt)
    assert message in str(caught.value)
    assert str(spoilt) in str(caught.value)
    assert not hasattr(caught.value, "__notes__")  # nothing about layers of one's own, of which there are none


def test_tensors_of_a_bundle_that_lacks_some(bundle: Path, tmp_path: Path) -> None:
    """Whole by its checksum, and still not what a step needs."""
    spoilt = shutil.copytree(bundle, tmp_path / "spoilt")
    tensors = read_weights(bundle / "tensors.safetensors")

    def without(name: str) -> str:
        rewrite(spoilt, {other: tensor for other, tensor in tensors.items() if other != name})
        with pytest.raises(DataError) as caught:
            replay(spoilt)
        return str(caught.value).partition("config.yaml: ")[2]

    assert without("target") == "there is no target"
    assert without("parameter 0.bias") == "missing parameter '0.bias' in the state dict"
    assert without("momentum_buffer 2.bias") == "missing parameter '2.bias' in the state dict"


def test_tensors_of_a_bundle_that_fit_no_step(bundle: Path, tmp_path: Path) -> None:
    """Whole by its checksum, and the loss or the model refuses them."""
    spoilt = shutil.copytree(bundle, tmp_path / "spoilt")
    tensors = read_weights(bundle / "tensors.safetensors")

    def with_other(name: str, tensor: Any) -> str:
        rewrite(spoilt, {**tensors, name: tensor})
        with pytest.raises(DataError) as caught:
            replay(spoilt)
        return str(caught.value).partition("config.yaml: ")[2]

    input, target = tensors["input"], tensors["target"]
    assert with_other("input", input.astype(np.float64)) == "the model is float32, its input float64"
    assert with_other("input", input[:3]) == (
        "CrossEntropyLoss takes a prediction (batch, classes) and a target (batch,), not (3, 2) and (16,)"
    )
    assert with_other("target", target * 0 + 2) == "CrossEntropyLoss: label 2 at index 0 is outside 0 ... 1"
    assert with_other("target", target.astype(np.float32)) == (
        "CrossEntropyLoss takes int64 class indices as target, not float32"
    )


def test_the_lrs_of_groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each is the one that the schedule had set."""
    text = CONFIG.replace("{SGD: {lr: 0.5", "{SGD: {groups: [{parameters: '*.bias', lr: 0.125}], lr: 0.5")
    wrong_from_step(monkeypatch, 5, Tanh, "backward", wrong_tanh)
    found = mismatch(tmp_path / "run", text + "lr_scheduler: {StepLR: {step_size: 1, gamma: 0.5}}\n")
    bundle = tmp_path / "run" / "mismatch-step-5"
    assert read_bundle(bundle / "bundle.yaml").lrs == [0.25, 0.0625]
    again = replay(bundle).report
    assert again is not None
    assert again.comparisons == found.report.comparisons
