"""Whose BLAS multiplies in a compiled run, on how many threads: measured once, kept, and used again."""

from __future__ import annotations

import re
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from benchmarks.reliability.kills import end_of
from runs import CONFIG, write_config

from nn_manual import SGD, CrossEntropyLoss, Linear, Sequential, Trainer, cli
from nn_manual.arrays import Array
from nn_manual.compile import blas, choosing, plan
from nn_manual.compile.cache import DIRECTORY
from nn_manual.config import load_config
from nn_manual.errors import ConfigError, Interrupted
from nn_manual.run import epochs, training_run
from nn_manual.run.loading import check_machine
from nn_manual.run.new_run import run
from nn_manual.run.resume import resume
from nn_manual.run.stop_request import StopRequest
from nn_manual.run_directory.checkpoints import checkpoints_of, read_checkpoint

#: The last batch of an epoch is smaller: numpy multiplies there.
COMPILED = CONFIG.replace("num_examples: 60", "num_examples: 55") + "gradient_check: {every: 0}\ncompiled: true\n"


class Machine:
    """Where SciPy's BLAS is the fastest, on one thread, once: to measure again is an error."""

    def __init__(self) -> None:
        self.used: list[str] = []

    def fastest(self, products: object, wanted: object, folder: object) -> tuple[str, int]:  # noqa: ARG002
        assert not self.used, "it was measured before"
        self.used.append("measured")
        return "scipy", 1


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    """Its cache has no choices; what is used is noted."""
    made, steps_of, cache = Machine(), plan.Plan.run, tmp_path / "cache"
    monkeypatch.setenv(DIRECTORY, str(cache))
    monkeypatch.setattr(choosing, "fastest", made.fastest)

    def noted(self: plan.Plan, inputs: Array, *others: Any) -> plan.Done:
        made.used.append(f"{self.blas.name} {self.threads}")
        return steps_of(self, inputs, *others)

    monkeypatch.setattr(plan.Plan, "run", noted)
    return made


@pytest.mark.slow
def test_what_was_measured_is_kept(machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In config.yaml and in checkpoints. The run of that config.yaml has the same bytes, without the cache too; so has
    the next run of the first config, and one that was stopped and went on.
    It alone measures for a run.
    """
    config = write_config(tmp_path, COMPILED)
    run(load_config(config), tmp_path / "run")
    assert machine.used[0] == "measured"
    assert {*machine.used[1:]} == {"scipy 1"}
    resolved = (tmp_path / "run" / "config.yaml").read_text()
    assert "blas: scipy\nthreads: 1\n" in resolved
    manifest, _ = read_checkpoint(checkpoints_of(tmp_path / "run")[0])
    assert manifest["config"] == resolved
    assert manifest["blas"]["compiled_blas"] == blas.blas_of("scipy").library
    assert manifest["blas"]["compiled_threads"] == 1

    run(load_config(config), tmp_path / "later")
    stop_at(3, load_config(config), tmp_path / "stopped", monkeypatch)
    monkeypatch.setattr(choosing, "_fastest_once", None)  # so that to look for a choice is an error
    resume(tmp_path / "stopped")
    run(load_config(tmp_path / "run" / "config.yaml"), tmp_path / "again")
    for name in ("later", "stopped", "again"):
        assert end_of(tmp_path / name) == end_of(tmp_path / "run")
    assert {*machine.used[1:]} == {"scipy 1"}


def stop_at(step: int, config: Any, directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that a signal asks to stop after a step."""
    steps, request = training_run.TrainingRun.steps, StopRequest()

    def asked(training: Any) -> Any:
        training.trainer.stop_every = step
        for result in steps(training):
            if result.number == step:
                request.signum = 15
            yield result

    with monkeypatch.context() as patch:
        patch.setattr(training_run.TrainingRun, "steps", asked)
        patch.setattr(epochs, "stop_request", lambda: nullcontext(request))
        with pytest.raises(Interrupted):
            run(config, directory)


@pytest.mark.slow
def test_the_config_decides(machine: Machine, tmp_path: Path) -> None:
    """It alone gives each BLAS in a config."""
    text = COMPILED + "blas: numpy\nthreads: 1\n"
    run(load_config(write_config(tmp_path, text)), tmp_path / "run")
    assert {*machine.used} == {"numpy 1"}  # not measured
    assert "blas: numpy\nthreads: 1\n" in (tmp_path / "run" / "config.yaml").read_text()


@pytest.mark.slow
def test_a_run_that_goes_on_may_take_another(
    machine: Machine, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It alone resumes with another BLAS."""
    run(load_config(write_config(tmp_path, COMPILED)), tmp_path / "run")
    resume(tmp_path / "run", ["epochs=4", "blas=numpy"])
    assert machine.used[-1] == "numpy 1"
    was, now = (blas.blas_of(name).library for name in ("scipy", "numpy"))
    assert f"note: compiled_blas was {was}, is {now}: the last bits may differ\n" in capsys.readouterr().err
    assert "blas: numpy\n" in (tmp_path / "run" / "config.yaml").read_text()


def test_what_isnt_compiled_has_none(machine: Machine, tmp_path: Path) -> None:
    run(load_config(write_config(tmp_path, COMPILED), ["compiled=false"]), tmp_path / "run")
    assert machine.used == []
    manifest, _ = read_checkpoint(checkpoints_of(tmp_path / "run")[0])
    assert "blas: null\nthreads: null\n" in manifest["config"]
    assert not [key for key in manifest["blas"] if key.startswith("compiled")]


HAND = "; pip install 'nn_manual[mkl]' brings it; at hand: numpy, scipy"


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ("blas: mkl\n", f"12:1: blas is mkl, which isn't there{HAND}"),
        ("threads: 3\n", "12:1: threads must be 1 to 2, .*, not 3"),
        ("threads: 0\n", "12:1: threads .*0.*"),
        ("blas: openblas\n", "12:1: blas must be 'numpy', 'scipy' or 'mkl', not the text 'openblas'"),
        ("compiled: false\nblas: numpy\n", "12:1: blas is a setting of compiled steps: it needs compiled: true"),
        ("compiled: false\nthreads: 1\n", "12:1: threads is a setting of compiled steps: it needs compiled: true"),
    ],
)
def test_bad_input(
    more: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """One line with the key's place, exit status 2, and no run directory."""
    monkeypatch.setitem(blas._FINDERS, "mkl", lambda: None)
    monkeypatch.setattr(blas, "free_cores", lambda: 2)
    text = COMPILED if "compiled" not in more else COMPILED.replace("compiled: true\n", "")
    refused(text + more, message, tmp_path, capsys)


@pytest.mark.parametrize("compiled", ["", "compiled: true\n"])
def test_the_proof_takes_no_more_threads_than_there_are_cores(
    compiled: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(blas, "free_cores", lambda: 2)
    text = COMPILED.replace("gradient_check: {every: 0}\ncompiled: true\n", "gradient_check: {threads: 3}\n" + compiled)
    refused(text, "10:18: gradient_check.threads must be 1 to 2, .*, not 3", tmp_path, capsys)


def test_all_wrong_numbers_of_threads_are_reported_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the order of their lines. Of a run that goes on, a note says what to add to the command."""
    monkeypatch.setattr(blas, "free_cores", lambda: 2)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    text = COMPILED.replace("gradient_check: {every: 0}\n", "") + "threads: 4\nloop_threads: 5\n"
    config = load_config(write_config(tmp_path, text + "gradient_check: {threads: 3}\n"))
    for goes_on in (False, True):
        with pytest.raises(ConfigError) as caught:
            check_machine(config, goes_on=goes_on)
        assert [line.partition("small.yaml:")[2] for line in str(caught.value).splitlines()] == [
            "11:1: threads must be 1 to 2, the cores that are free, not 4",
            "12:1: loop_threads must be 1 to 2, the cores that are free, not 5",
            "13:18: gradient_check.threads must be 1 to 2, the cores that are free, not 3",
        ]
        added = "gradient_check.threads=null threads=null loop_threads=null"
        advice = [f"to go on with what this machine has, add: {added}"] if goes_on else []
        assert getattr(caught.value, "__notes__", []) == advice


def test_of_two_keys_of_one_name_the_message_says_which(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """An override is named, and no line of the file that doesn't have it."""
    monkeypatch.setattr(blas, "free_cores", lambda: 2)
    path = write_config(tmp_path, COMPILED)
    for override, message in (
        ("gradient_check.threads=3", "gradient_check.threads must be 1 to 2, the cores that are free, not 3"),
        ("threads=3", "threads must be 1 to 2, the cores that are free, not 3"),
    ):
        monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
        for command in (["train", "--run-dir", str(tmp_path / "run")], ["summary"], ["check"]):
            assert cli.main([*command, str(path), override]) == 2
            assert capsys.readouterr() == ("", f"nn-manual: override {override!r}: {message}\n")


@pytest.mark.parametrize("command", [["summary"], ["summary", "--measure"], ["check"]])
def test_more_memory_for_the_proof_than_there_is_is_refused_once(
    command: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    memory = "gradient_check={memory: 999999999 GB}"
    assert cli.main([*command, str(write_config(tmp_path)), memory]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert re.fullmatch(r"nn-manual: override .*: gradient_check\.memory is 999999999 GB, and .* has .* GB", line)


def refused(text: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The config is refused with one line that has the place, and there is no run directory."""
    path = write_config(tmp_path, text)
    assert cli.main(["train", str(path), "--run-dir", str(tmp_path / "run")]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    wanted = re.escape(message) if "*" not in message else message
    assert re.fullmatch(f"nn-manual: {re.escape(str(path))}:{wanted}", line)
    assert not (tmp_path / "run").exists()


@pytest.mark.slow
def test_a_blas_that_is_gone_is_refused_when_a_run_goes_on(
    machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It alone resumes without its BLAS."""
    run(load_config(write_config(tmp_path, COMPILED)), tmp_path / "run")
    assert machine.used
    monkeypatch.setitem(blas._FINDERS, "scipy", lambda: None)
    capsys.readouterr()
    assert cli.main(["train", "--resume", str(tmp_path / "run"), "epochs=4"]) == 2
    line, advice = capsys.readouterr().err.splitlines()
    assert re.search(r"config\.yaml:\d+:1: blas is scipy, which isn't there; at hand: numpy", line)
    assert advice == "to go on with what this machine has, add: blas=null"


def test_a_trainer_takes_them() -> None:
    model = Sequential(Linear(2, 3), seed=0)
    given: list[dict[str, Any]] = [{"blas": "numpy"}, {"threads": 1}, {"loop_threads": 1}]
    for settings in given:
        with pytest.raises(ValueError, match=r"^blas, threads and loop_threads are settings of compiled steps"):
            Trainer(model, CrossEntropyLoss(), SGD(model, lr=0.1), check_every=0, **settings)
    bad: list[dict[str, Any]] = [{"threads": 0}, {"loop_threads": 0}]
    for settings in bad:
        (name,) = settings
        with pytest.raises(ConfigError, match=rf"^{name} must be 1 to \d+, .*, not 0$"):
            Trainer(model, CrossEntropyLoss(), SGD(model, lr=0.1), check_every=0, compiled=True, **settings)
