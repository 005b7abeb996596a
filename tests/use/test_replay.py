"""A step that differed, run again: the same to the bit, and right once the formula is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from mismatches import EVERYTHING, mismatch, rewrite, wrong_from_step, wrong_tanh
from problems import problem_and_place
from runs import CONFIG, names
from slow_cases import slow

from nn_manual.arrays import Array
from nn_manual.cli import main
from nn_manual.config import load_config
from nn_manual.config.config_file import dump_yaml
from nn_manual.errors import DataError
from nn_manual.layers import Tanh
from nn_manual.optim import SGD, OneCycleLR, clip_grad_norm, clipping
from nn_manual.optim.scheduler_base import Scheduled
from nn_manual.run.bundle import read_bundle
from nn_manual.run.environment import versions
from nn_manual.run.sources import sources_of
from nn_manual.run_directory.weights import read_weights
from nn_manual.use import replay as replay_module
from nn_manual.use.replay import replay


@pytest.mark.parametrize(
    "settings", [[], slow(["dtype=float64"]), ["gradient_check.every=5"], slow(["optimizer.SGD.momentum=0"])]
)
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
        context.setattr(clipping, "clip_grad_norm", lambda grad, max_norm: clip_grad_norm(grad, 2 * max_norm))
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


def test_other_versions_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Tanh, "backward", wrong_tanh)
    mismatch(tmp_path / "run")
    now = versions()
    monkeypatch.setattr(replay_module, "versions", lambda: now | {"torch": "99.0"})
    replayed = replay(tmp_path / "run" / "mismatch-step-1")
    assert str(replayed).splitlines()[1] == f"torch was {now['torch']}, is 99.0"


def test_a_momentum_that_a_schedule_moves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The bundle has what the schedule had set in that step: of 9 steps, the third has the highest lr."""
    text = CONFIG.replace("{SGD: {lr: 0.5", "{SGD: {groups: [{parameters: '*.bias', momentum: 0.25}], lr: 0.5")
    text += "lr_step: step\nlr_scheduler:\n  OneCycleLR:\n    {max_lr: 0.5, total_steps: 9, pct_start: 0.3334}\n"
    wrong_from_step(monkeypatch, 5, Tanh, "backward", wrong_tanh)
    found = mismatch(tmp_path / "run", text)
    bundle = tmp_path / "run" / "mismatch-step-5"
    expected = OneCycleLR(0.5, 9, 0.3334).scheduled(Scheduled(0.5, 0.9), 4)
    described = read_bundle(bundle / "bundle.yaml")
    assert (described.lrs, described.momenta) == ([expected.lr] * 2, [expected.momentum] * 2)
    again = replay(bundle).report
    assert again is not None
    assert again.comparisons == found.report.comparisons
    one_momentum = yaml.safe_load((bundle / "bundle.yaml").read_text()) | {"momenta": [0.5]}
    (bundle / "bundle.yaml").write_text(dump_yaml(one_momentum))
    with pytest.raises(DataError, match=r"bundle\.yaml: has 1 momentum, config\.yaml asks for 2$"):
        replay(bundle)


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
