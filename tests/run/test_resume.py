"""A run that goes on ends as one that never stopped; what can't go on is refused."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from benchmarks.reliability.kills import end_of
from mismatches import wrong_from_step
from runs import CONFIG, EVERYTHING, NUM_TENSORS, lines, names, write_config
from slow_cases import crossed
from stopped_runs import stopped

from nn_manual import Tanh, load_run
from nn_manual.config import load_config
from nn_manual.errors import ConfigError, DataError, GradientMismatch
from nn_manual.run import training_run
from nn_manual.run.keeper import origin_of
from nn_manual.run.loading import load
from nn_manual.run.new_run import run
from nn_manual.run.resume import resume
from nn_manual.run_directory.checkpoints import checkpoints_of, read_checkpoint, step_of, write_checkpoint
from nn_manual.run_directory.lock import lock
from nn_manual.run_directory.weights import read_weights

BY_STEP = ["lr_step=step", "lr_scheduler={StepLR: {step_size: 2}}"]
STEPS = "checkpoint.every=1 steps"


@pytest.fixture
def config_path(tmp_path: Path) -> Path:
    return write_config(tmp_path)


@pytest.mark.parametrize(
    ("overrides", "step"), crossed([[], EVERYTHING, [*EVERYTHING, *BY_STEP]], [1, 3, 4, 8, 9])
)
def test_the_end_is_that_of_a_run_that_never_stopped(
    config_path: Path, tmp_path: Path, overrides: list[str], step: int
) -> None:
    run(load_config(config_path, overrides), tmp_path / "whole")
    stopped(config_path, tmp_path / "run", step, *overrides)
    assert [step_of(path) for path in checkpoints_of(tmp_path / "run")] == [step]
    resume(tmp_path / "run")
    assert end_of(tmp_path / "run") == end_of(tmp_path / "whole")
    assert names(tmp_path / "run") == names(tmp_path / "whole")


def test_from_an_older_checkpoint(config_path: Path, tmp_path: Path) -> None:
    """The later ones are of a run that is given up."""
    run(load_config(config_path, [STEPS]), tmp_path / "run")
    expected = end_of(tmp_path / "run")
    assert [step_of(path) for path in checkpoints_of(tmp_path / "run")] == [9, 8, 7]
    resume(tmp_path / "run" / "checkpoints" / "step-7")
    assert end_of(tmp_path / "run") == expected
    assert len(lines(tmp_path / "run" / "gradients.jsonl")) == 9


def test_a_checkpoint_that_is_spoilt_offers_the_one_before(config_path: Path, tmp_path: Path) -> None:
    run(load_config(config_path, [STEPS]), tmp_path / "run")
    newest, older, _ = checkpoints_of(tmp_path / "run")
    data = bytearray((newest / "state.safetensors").read_bytes())
    data[-1] ^= 1
    (newest / "state.safetensors").write_bytes(data)
    with pytest.raises(DataError, match=rf"^{newest}/state\.safetensors: is corrupt") as caught:
        resume(tmp_path / "run")
    assert caught.value.__notes__ == [f"to go on from the one before it: nn-manual train --resume {older}"]
    shutil.rmtree(older)
    shutil.rmtree(older.with_name("step-7"))
    with pytest.raises(DataError) as caught:
        resume(tmp_path / "run")
    assert caught.value.__notes__ == ["there is none before it: a new run with the same config ends in the same way"]
    (tmp_path / "run" / "summary.json").unlink()
    with pytest.raises(DataError) as caught:
        resume(tmp_path / "run")
    assert caught.value.__notes__ == [f"there is none before it; without {newest} the run starts anew"]


def test_without_a_checkpoint_it_starts_anew(config_path: Path, tmp_path: Path) -> None:
    run(load_config(config_path), tmp_path / "run")
    expected = end_of(tmp_path / "run")
    shutil.rmtree(tmp_path / "run" / "checkpoints")
    (tmp_path / "run" / "summary.json").unlink()
    (tmp_path / "run" / "metrics.jsonl").write_text("torn")
    resume(tmp_path / "run")
    assert end_of(tmp_path / "run") == expected


def test_a_finished_run_is_left_alone(config_path: Path, tmp_path: Path) -> None:
    run(load_config(config_path), tmp_path / "run")
    (tmp_path / "run" / "loss.png").write_bytes(b"figure")
    before = {path: path.read_bytes() for path in (tmp_path / "run").rglob("*") if path.is_file()}
    assert resume(tmp_path / "run") == (tmp_path / "run", None)
    assert {path: path.read_bytes() for path in (tmp_path / "run").rglob("*") if path.is_file()} == before


def test_more_epochs_go_on_from_the_end(config_path: Path, tmp_path: Path) -> None:
    run(load_config(config_path, ["epochs=5"]), tmp_path / "whole")
    run(load_config(config_path), tmp_path / "run")
    resume(tmp_path / "run", ["epochs=5"])
    assert end_of(tmp_path / "run") == end_of(tmp_path / "whole")
    assert "epochs: 5\n" in (tmp_path / "run" / "config.yaml").read_text()


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (["seed=1"], "seed was 0, is 1"),
        (["optimizer.SGD.lr=0.1"], "optimizer.SGD.lr was 0.5, is 0.1"),
        (
            ["model.0.Linear.bias=false", "dtype=float64"],
            "dtype was float32, is float64\nmodel.0.Linear.bias was true, is false",
        ),
    ],
)
def test_other_differences_are_refused(config_path: Path, tmp_path: Path, overrides: list[str], message: str) -> None:
    stopped(config_path, tmp_path / "run", 4)
    before = sorted((tmp_path / "run").rglob("*"))
    with pytest.raises(ConfigError) as caught:
        resume(tmp_path / "run", overrides)
    allowed = "epochs, early_stopping, checkpoint, gradient_check, blas, threads, loop_threads, layer_folder"
    assert str(caught.value) == f"{message}\na run that goes on may only change {allowed}, and where data lie"
    assert sorted((tmp_path / "run").rglob("*")) == before
    resume(tmp_path / "run", ["seed=0", "gradient_check={every: 2, memory: 1 MB}", "checkpoint.keep=1"])
    assert [line["step"] for line in lines(tmp_path / "run" / "gradients.jsonl")] == [1, 2, 3, 4, 6, 8]
    assert "memory: 1 MB, threads: null}\n" in (tmp_path / "run" / "config.yaml").read_text()


@pytest.mark.parametrize(("memory", "differs"), [("0 kB", {"ledger"}), ("45 kB", set()), ("1 GB", set())])
def test_the_memory_of_the_check_changes_no_weight(
    config_path: Path, tmp_path: Path, memory: str, differs: set[str]
) -> None:
    """One by one, torch rounds differently. The summary has the SHA-256 of the config."""
    run(load_config(config_path), tmp_path / "whole")
    stopped(config_path, tmp_path / "run", 4)
    resume(tmp_path / "run", [f"gradient_check.memory={memory}"])
    whole, end = (end_of(tmp_path / name) for name in ("whole", "run"))
    assert {name for name in whole if whole[name] != end[name]} == {"summary", *differs}


def test_a_config_that_was_edited_is_refused(config_path: Path, tmp_path: Path) -> None:
    stopped(config_path, tmp_path / "run", 4)
    edited = (tmp_path / "run" / "config.yaml").read_text().replace("lr: 0.5", "lr: 0.25")
    (tmp_path / "run" / "config.yaml").write_text(edited)
    with pytest.raises(ConfigError, match=r"^optimizer\.SGD\.lr was 0\.5, is 0\.25\n"):
        resume(tmp_path / "run")


def test_fewer_epochs_than_are_done_are_refused(config_path: Path, tmp_path: Path) -> None:
    stopped(config_path, tmp_path / "run", 8)
    with pytest.raises(ConfigError, match=r"^epochs must be above 2, which the run has done, not 2$"):
        resume(tmp_path / "run", ["epochs=2"])


def test_other_data_are_refused(tmp_path: Path) -> None:
    (tmp_path / "points.csv").write_text("a,b,y\n" + "".join(f"{i},{i % 3},{i % 2}\n" for i in range(60)))
    data = "data: {Arrays: {file: points.csv, target: y, task: classification}}"
    stopped(write_config(tmp_path, re.sub("data: .*", data, CONFIG)), tmp_path / "run", 1)
    (tmp_path / "points.csv").write_text("a,b,y\n" + "".join(f"{i},{i % 4},{i % 2}\n" for i in range(60)))
    with pytest.raises(DataError, match=r"checkpoints/step-1: the data are not those that the run was trained on$"):
        resume(tmp_path / "run")


def test_a_log_that_is_too_short_is_refused(config_path: Path, tmp_path: Path) -> None:
    stopped(config_path, tmp_path / "run", 4)
    path = tmp_path / "run" / "gradients.jsonl"
    size = path.stat().st_size
    path.write_bytes(path.read_bytes()[:-10])
    message = f"{path}: has {size - 10:,} bytes, and had {size:,} when the checkpoint was written"
    with pytest.raises(DataError, match=f"^{re.escape(message)}$"):
        resume(tmp_path / "run")


@pytest.mark.parametrize("kind", ["nowhere", "empty"])
def test_what_is_no_run(tmp_path: Path, kind: str) -> None:
    (tmp_path / "empty").mkdir()
    message = f"{tmp_path / kind}: no such run" + (": it has no config.yaml" if kind == "empty" else "")
    with pytest.raises(DataError, match=f"^{re.escape(message)}$"):
        resume(tmp_path / kind)


def test_a_folder_that_is_no_whole_checkpoint(config_path: Path, tmp_path: Path) -> None:
    stopped(config_path, tmp_path / "run", 4)
    folder = tmp_path / "run" / "checkpoints" / "step-99"
    folder.mkdir()
    with pytest.raises(DataError, match=f"^{folder}: no such checkpoint: it has no manifest.json$"):
        resume(folder)


def test_one_process_at_a_time(config_path: Path, tmp_path: Path) -> None:
    stopped(config_path, tmp_path / "run", 4)
    with (
        lock(tmp_path / "run"),
        pytest.raises(DataError, match=rf"^{tmp_path / 'run'}: another process is training this run$"),
    ):
        resume(tmp_path / "run")


def test_what_a_killed_process_left_half_written_is_removed(config_path: Path, tmp_path: Path) -> None:
    stopped(config_path, tmp_path / "run", 4)
    (tmp_path / "run" / "checkpoints" / ".step-5.123.tmp").mkdir()
    (tmp_path / "run" / ".model.safetensors.123.tmp").write_bytes(b"half")
    resume(tmp_path / "run")
    assert not [name for name in names(tmp_path / "run") if name.startswith(".")]
    assert not [name for name in names(tmp_path / "run" / "checkpoints") if name.startswith(".")]


def test_after_a_mismatch_it_goes_on_once_the_formula_is_right(
    config_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(load_config(config_path, ["checkpoint.every=2 steps"]), tmp_path / "whole")
    right = Tanh.backward
    wrong_from_step(monkeypatch, 6, Tanh, "backward", lambda *given: 2 * right(*given))
    with pytest.raises(GradientMismatch) as caught:
        run(load_config(config_path, ["checkpoint.every=2 steps"]), tmp_path / "run")
    assert caught.value.__notes__[-1] == f"to go on from step 4: nn-manual train --resume {tmp_path / 'run'}"
    monkeypatch.setattr(Tanh, "backward", right)
    resume(tmp_path / "run")
    assert end_of(tmp_path / "run") == end_of(tmp_path / "whole")


def test_what_else_has_changed_is_noted(
    config_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    stopped(config_path, tmp_path / "run", 4)

    def other(*arguments: Any) -> dict[str, Any]:
        origin = origin_of(*arguments)
        return {**origin, "versions": {**origin["versions"], "numpy": "9.9"}, "sources": {}}

    monkeypatch.setattr("nn_manual.run.resume.origin_of", other)
    resume(tmp_path / "run")
    notes = capsys.readouterr().err.splitlines()
    assert notes[0] == f"note: numpy was {np.__version__}, is 9.9: the last bits may differ"
    assert notes[1].startswith("note: nn_manual.layers.activations, ")
    assert len(notes) == 2


def test_what_a_checkpoint_says(config_path: Path, tmp_path: Path) -> None:
    stopped(config_path, tmp_path / "run", 5)
    manifest, tensors = read_checkpoint(checkpoints_of(tmp_path / "run")[0])
    assert {name: manifest[name] for name in ("step", "epoch", "batch")} == {"step": 5, "epoch": 1, "batch": 2}
    assert "losses" not in manifest
    assert tensors["losses.safetensors"]["losses"].shape == (2, 2)
    assert manifest["tally"]["num_steps"] == 5
    assert manifest["config"] == (tmp_path / "run" / "config.yaml").read_text()
    assert manifest["blas"]["num_threads"] >= 1
    parameters = ["0.bias", "0.weight", "2.bias", "2.weight"]
    vectors = [f"momentum_buffer {name}" for name in parameters]
    assert sorted(tensors["state.safetensors"]) == [*parameters, *vectors]
    assert manifest["best"]["epoch"] == 1
    assert tensors["best.safetensors"].keys() == {"0.weight", "0.bias", "2.weight", "2.bias"}
    assert json.loads((tmp_path / "run" / "summary.json").read_text())["stopped"] == "terminated"


@pytest.mark.parametrize("step", [1, 5, 6])
def test_a_checkpoint_with_the_losses_in_its_manifest(config_path: Path, tmp_path: Path, step: int) -> None:
    """As runs wrote it once."""
    run(load_config(config_path), tmp_path / "whole")
    stopped(config_path, tmp_path / "run", step)
    (checkpoint,) = checkpoints_of(tmp_path / "run")
    manifest, tensors = read_checkpoint(checkpoint)
    del manifest["sha256"], manifest["files"], manifest["data_file"]
    losses = tensors.pop("losses.safetensors", {"losses": np.zeros((0, 2))})["losses"].tolist()
    assert len(losses) == step % 3
    write_checkpoint(tmp_path / "run", step, tensors, {**manifest, "losses": losses}, keep=3)
    resume(tmp_path / "run")
    assert end_of(tmp_path / "run") == end_of(tmp_path / "whole")


@pytest.mark.parametrize("num_losses", [0, 1, 3])
def test_other_losses_than_steps(config_path: Path, tmp_path: Path, num_losses: int) -> None:
    stopped(config_path, tmp_path / "run", 5)
    (checkpoint,) = checkpoints_of(tmp_path / "run")
    manifest, tensors = read_checkpoint(checkpoint)
    del manifest["sha256"], manifest["files"]
    tensors["losses.safetensors"]["losses"] = np.zeros((num_losses, 2))
    write_checkpoint(tmp_path / "run", 5, tensors, manifest, keep=3)
    with pytest.raises(DataError, match=f"is no checkpoint of this run: losses: there are {num_losses}, and batch is"):
        resume(tmp_path / "run")


def test_a_manifest_does_not_grow_with_the_steps_of_an_epoch(config_path: Path, tmp_path: Path) -> None:
    config = load_config(config_path)
    split, model = load(config)
    training = training_run.TrainingRun(config, split, model)
    next(iter(training.steps()))
    losses, sizes = [(value, 64.0) for value in np.random.default_rng(0).random(100_000).tolist()], []
    for training.losses in ([], losses):
        folder = write_checkpoint(tmp_path, 1, training.tensors(), training.manifest(), keep=1)
        sizes.append((folder / "manifest.json").stat().st_size)
    assert sizes[1] - sizes[0] < 200  # a count with more digits, and a file's SHA-256
    assert sizes[1] < 100_000
    manifest, tensors = read_checkpoint(folder)
    again = training_run.TrainingRun(config, *load(config))
    again.load(manifest, tensors)
    assert again.losses == losses


def test_other_entries_beside_the_checkpoints(config_path: Path, tmp_path: Path) -> None:
    stopped(config_path, tmp_path / "run", 4)
    (tmp_path / "run" / "checkpoints" / "step-10000").write_text("a file")
    (tmp_path / "run" / "checkpoints" / "step-9999").mkdir()
    resume(tmp_path / "run")
    assert len(lines(tmp_path / "run" / "metrics.jsonl")) == 3


def test_a_checkpoint_by_its_name_alone(config_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run(load_config(config_path, [STEPS]), tmp_path / "run")
    expected = end_of(tmp_path / "run")
    monkeypatch.chdir(tmp_path / "run" / "checkpoints")
    resume(Path("step-7"))
    assert end_of(tmp_path / "run") == expected


def test_it_says_where_it_goes_on(config_path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    stopped(config_path, tmp_path / "run", 4)
    capsys.readouterr()
    resume(tmp_path / "run")
    assert capsys.readouterr().out.splitlines()[0] == "going on from step 4 of 9"


def test_no_step_left_to_compare(config_path: Path, tmp_path: Path) -> None:
    """Of what was never proven, the checkpoint says what the compared steps have shown."""
    settings = ["gradient_check.every=8", "initializer=Zeros"]
    whole = run(load_config(config_path, settings), tmp_path / "whole")
    assert whole["gradient_check"]["unproven"]
    stopped(config_path, tmp_path / "run", 8, *settings)
    resume(tmp_path / "run")
    assert end_of(tmp_path / "run") == end_of(tmp_path / "whole")


@pytest.mark.parametrize("step", [4, 9])
def test_what_was_never_proven_is_known_where_the_check_is_turned_off(
    config_path: Path, tmp_path: Path, step: int
) -> None:
    """In the middle of the run, and after its end."""
    whole = run(load_config(config_path, ["initializer=Zeros", STEPS, "checkpoint.keep=9"]), tmp_path / "run")
    sentences = whole["gradient_check"]["vacuous"]
    assert len(sentences) == 7
    _, summary = resume(tmp_path / "run" / "checkpoints" / f"step-{step}", ["gradient_check.every=0", "epochs=4"])
    assert summary is not None
    check = summary["gradient_check"]
    assert (check["steps"], check["vacuous"], check["unproven"]) == (step, sentences, sentences)


def test_the_check_remembers_what_it_saw_before_it_was_turned_off(config_path: Path, tmp_path: Path) -> None:
    run(load_config(config_path, ["epochs=1"]), tmp_path / "run")
    resume(tmp_path / "run", ["gradient_check.every=0", "epochs=2"])
    before, after = (read_checkpoint(tmp_path / "run" / "checkpoints" / f"step-{step}")[0] for step in (3, 6))
    assert len(before["check"]["not_zero"]) == NUM_TENSORS
    assert after["check"] == before["check"]


@pytest.mark.parametrize("every", [1, 8])
def test_what_is_zero_in_theory_is_listed_after_a_stop(config_path: Path, tmp_path: Path, every: int) -> None:
    """Whether or not a step is left to be compared."""
    settings = [f"gradient_check.every={every}", *EVERYTHING]
    whole = run(load_config(config_path, settings), tmp_path / "whole")["gradient_check"]
    words = "0 (Linear): 0.grad_bias is zero in theory and rounding alone"
    assert (whole["unproven"], whole["vacuous"]) == ([words], [])
    stopped(config_path, tmp_path / "run", 8, *settings)
    resume(tmp_path / "run")
    assert end_of(tmp_path / "run") == end_of(tmp_path / "whole")


def test_a_finished_run_without_checkpoints_is_kept(config_path: Path, tmp_path: Path) -> None:
    run(load_config(config_path), tmp_path / "run")
    shutil.rmtree(tmp_path / "run" / "checkpoints")
    before = {path: path.read_bytes() for path in (tmp_path / "run").iterdir()}
    assert resume(tmp_path / "run")[1] is None
    with pytest.raises(DataError, match=r"run: this run has finished, and has no checkpoint to go on from$"):
        resume(tmp_path / "run", ["epochs=5"])
    assert {path: path.read_bytes() for path in (tmp_path / "run").iterdir()} == before


def test_a_mismatch_that_comes_again_has_a_bundle_of_its_own(
    config_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    right, found = Tanh.backward, list[float]()
    starts: list[Callable[[], object]] = [
        lambda: run(load_config(config_path), tmp_path / "run"),
        lambda: resume(tmp_path / "run"),
    ]
    for factor, start in zip((2, 3), starts, strict=True):
        monkeypatch.setattr(Tanh, "backward", lambda *arguments, factor=factor: factor * right(*arguments))
        with pytest.raises(GradientMismatch) as caught:
            start()
        assert caught.value.__notes__[-2].startswith("to run this step again: ")
        grads = read_weights(tmp_path / "run" / "mismatch-step-1" / "tensors.safetensors")
        found.append(np.abs(grads["grad_output 0 (Linear)"]).max())
    assert found[1] == pytest.approx(1.5 * found[0], rel=1e-6)


def test_an_edited_config_of_a_run_that_was_stopped_is_refused(config_path: Path, tmp_path: Path) -> None:
    stopped(config_path, tmp_path / "run", 4)
    load_run(tmp_path / "run")
    path = tmp_path / "run" / "config.yaml"
    path.write_text(path.read_text().replace("- Tanh", "- ReLU"))
    with pytest.raises(DataError, match=r"config\.yaml: model\.1 was Tanh, is ReLU since the checkpoint$"):
        load_run(tmp_path / "run")
