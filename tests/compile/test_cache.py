"""Kernels on disk are found again, are never stale, and are replaced if they are damaged."""

from __future__ import annotations

import shutil
import stat
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from slow_cases import slow

from nn_manual import SGD, Linear, MSELoss, Sequential
from nn_manual.arrays import Array
from nn_manual.compile import cache
from nn_manual.compile.cache import DIRECTORY
from nn_manual.compile.compile_step import compile_step
from nn_manual.compile.plan import Plan
from nn_manual.layers import Layer


class Scaled(Layer):
    """A layer whose formula a test changes."""

    def forward(self, input: Array) -> tuple[Array, None]:
        return input * 2, None

    def backward(self, saved: None, grad_output: Array) -> Array:  # noqa: ARG002 - a layer's
        grad_input: Array = grad_output * 2
        return grad_input


class Plans:
    """Makes plans of one small net, whose kernels lie in a folder of their own."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.lines = folder, list[str]()

    def new(self) -> Plan:
        model = Sequential(Linear(2, 3), Scaled(), seed=0)
        batch = np.ones((4, 2), np.float32), np.zeros((4, 3), np.float32)
        self.lines.clear()
        return compile_step(model, MSELoss(), SGD(model, lr=0.1), *batch, report=self.lines.append)

    def loss(self) -> float:
        plan = self.new()
        coefficients = plan.optimizer.coefficients(1)
        of_steps = {f"0.{name}": np.array([value], np.float32) for name, value in coefficients.items()}
        done = plan.run(np.ones((1, 4, 2), np.float32), np.zeros((1, 4, 3), np.float32), of_steps)
        return float(done.losses[0])


@pytest.fixture
def plans(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Plans:
    monkeypatch.setenv(DIRECTORY, str(tmp_path / "kernels"))
    return Plans(tmp_path / "kernels")


@pytest.fixture(scope="module")
def kept_kernels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the kernels of the small net: to compile them takes longer than most tests."""
    folder = tmp_path_factory.mktemp("compiled") / "kernels"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(DIRECTORY, str(folder))
        Plans(folder).loss()
    return folder


@pytest.fixture
def compiled_plans(plans: Plans, kept_kernels: Path) -> Plans:
    """Plans whose kernels are compiled already."""
    shutil.copytree(kept_kernels, plans.folder)
    return plans


def test_a_second_plan_compiles_nothing(plans: Plans) -> None:
    loss = plans.loss()
    (line,) = plans.lines
    assert line.startswith("compiling ")
    files = {path: path.stat().st_mtime_ns for path in plans.folder.rglob("*") if path.is_file()}
    assert plans.loss() == loss
    assert plans.lines == []
    assert files == {path: path.stat().st_mtime_ns for path in plans.folder.rglob("*") if path.is_file()}


def test_another_formula_is_another_plan(compiled_plans: Plans, monkeypatch: pytest.MonkeyPatch) -> None:
    plans, loss = compiled_plans, compiled_plans.loss()
    assert plans.lines == []
    monkeypatch.setattr(Scaled, "forward", lambda self, input: (input * 3, None))  # noqa: ARG005
    assert plans.loss() == pytest.approx(loss * 9 / 4)


@pytest.mark.parametrize("damage", [slow(b""), slow(b"\0\xff not Python"), b"def entry("])
def test_damaged_files_are_compiled_anew(compiled_plans: Plans, damage: bytes) -> None:
    plans, loss = compiled_plans, compiled_plans.loss()
    assert plans.lines == []
    for path in plans.folder.glob("*/*.py"):
        path.write_bytes(damage)
    assert plans.loss() == loss
    (line,) = plans.lines
    assert "is damaged and compiled anew" in line


def test_damaged_machine_code_is_compiled_anew(compiled_plans: Plans) -> None:
    plans, loss = compiled_plans, compiled_plans.loss()
    assert plans.lines == []
    for path in plans.folder.glob("*/__pycache__/*.nb*"):
        path.write_bytes(b"damaged")
    assert plans.loss() == loss


def test_what_another_process_is_writing_is_no_machine_code(plans: Plans, monkeypatch: pytest.MonkeyPatch) -> None:
    load, seen = cache._module, list[Path]()

    def beside_another(path: Path) -> ModuleType:
        module = load(path)
        gone = path.parent / "__pycache__" / f"{path.stem}.entry.nbi.tmp.{len(seen)}"  # numba has renamed it already
        gone.symlink_to("gone")
        seen.append(gone)
        return module

    monkeypatch.setattr(cache, "_module", beside_another)
    plans.loss()
    assert seen
    kept = {path.suffix for path in plans.folder.glob("*/__pycache__/*") if path.exists()}
    assert kept - {".pyc"} == {".nbi", ".nbc"}


def test_a_changed_byte_of_machine_code_is_never_run(compiled_plans: Plans) -> None:
    plans, loss = compiled_plans, compiled_plans.loss()
    assert plans.lines == []
    for path in plans.folder.glob("*/__pycache__/*.nbc"):
        code = bytearray(path.read_bytes())
        code[len(code) // 2] ^= 0xFF
        path.write_bytes(code)
    assert plans.loss() == loss
    (line,) = plans.lines
    assert line.endswith("is damaged and compiled anew: its machine code has changed")


def test_code_that_was_left_without_its_hash_is_compiled_again(compiled_plans: Plans) -> None:
    plans, loss = compiled_plans, compiled_plans.loss()
    assert plans.lines == []
    hashes = {path: path.read_text() for path in plans.folder.glob("*/*.sha256")}
    for path in hashes:
        path.unlink()
    assert plans.loss() == loss
    assert not plans.lines
    again = set(plans.folder.glob("*/*.sha256"))
    assert again
    assert again <= hashes.keys()  # without the kernels that only measured a BLAS


@pytest.mark.slow
def test_code_that_another_process_removes_serves_this_one(plans: Plans, monkeypatch: pytest.MonkeyPatch) -> None:
    """It has compiled the same, and found this code without its hash. It alone has code removed in that moment."""
    right = cache._machine_code

    def removed(path: Path) -> list[Path]:
        found = right(path)
        for code in found:
            code.unlink()
        return found

    with monkeypatch.context() as context:
        context.setattr(cache, "_machine_code", removed)
        loss = plans.loss()
    assert not list(plans.folder.glob("*/*.sha256"))
    assert plans.loss() == loss


def test_a_folder_that_cant_be_written(plans: Plans) -> None:
    plans.folder.parent.joinpath("kernels").write_text("a file in the place of the folder")
    plans.loss()
    assert [line for line in plans.lines if "is kept for this run alone" in line]
    assert stat.S_ISREG(plans.folder.stat().st_mode)


@pytest.fixture
def helped(monkeypatch: pytest.MonkeyPatch) -> dict[Path, bool]:
    """For each kernel: whether it was already compiled when this process needed it. Two processes share the kernels."""
    found: dict[Path, bool] = {}
    module = cache._module

    def noted(path: Path) -> object:
        found.setdefault(path, any(path.parent.glob(f"__pycache__/{path.stem}*.nbi")))
        return module(path)

    monkeypatch.setattr(cache, "_module", noted)
    monkeypatch.setattr(cache, "free_cores", lambda: 2)
    monkeypatch.setattr(cache, "SHARE", 2)
    return found


@pytest.mark.slow
def test_other_processes_help_to_compile(plans: Plans, helped: dict[Path, bool]) -> None:
    """It alone compiles in several processes."""
    loss = plans.loss()
    (line,) = plans.lines
    num_kernels = int(line.split()[1])
    assert sum(helped.values()) == num_kernels // 2 > 0
    assert loss == plans.loss()


def test_helpers_that_fail_are_done_without(
    plans: Plans, helped: dict[Path, bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.executable", "/bin/false")
    assert np.isfinite(plans.loss())
    assert not any(helped.values())


@pytest.mark.parametrize(
    ("platform", "variables", "folder"),
    [
        ("linux", {"HOME": "/home/me"}, "/home/me/.cache/nn_manual"),
        ("linux", {"HOME": "/home/me", "XDG_CACHE_HOME": "/caches"}, "/caches/nn_manual"),
        ("darwin", {"HOME": "/Users/me"}, "/Users/me/Library/Caches/nn_manual"),
        ("win32", {"HOME": "/me", "LOCALAPPDATA": "/me/AppData/Local"}, "/me/AppData/Local/nn_manual"),
        ("win32", {"HOME": "/me", "LOCALAPPDATA": "/me", DIRECTORY: "/mine"}, "/mine"),
    ],
)
def test_where_kernels_lie(
    platform: str, variables: dict[str, str], folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in (DIRECTORY, "XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys, "platform", platform)
    assert cache.directory() == Path(folder)
