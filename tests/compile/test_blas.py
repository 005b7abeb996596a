"""The BLAS libraries: the addresses of their products, and their numbers of threads."""

from __future__ import annotations

import ctypes
import os
import re
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest

from nn_manual import SGD, Linear, MSELoss, Sequential
from nn_manual.arrays import Array
from nn_manual.compile import blas
from nn_manual.compile.blas import BlasName, Choice, NoBlas, blas_of, blases, check_choice, free_cores
from nn_manual.compile.compile_step import compile_step
from nn_manual.errors import ConfigError

#: mkl is an extra and has no module. Its libraries are found in the package's list of files.
NAMES = [name for name in get_args(BlasName) if name != "mkl" or blas._mkls() is not None]

#: Arguments of cblas_?gemm: row major, not transposed, transposed.
ROW_MAJOR, AS_IT_IS, TRANSPOSED = 101, 111, 112


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("dtype", "real"), [(np.float32, ctypes.c_float), (np.float64, ctypes.c_double)])
def test_the_products_are_where_it_says(name: BlasName, dtype: Any, real: Any) -> None:
    found = blas_of(name)
    assert found.name == name
    integer = ctypes.c_int64 if found.integer_bits == 64 else ctypes.c_int32
    pointer, kind = ctypes.c_void_p, ctypes.c_int
    kinds = [kind, kind, kind, integer, integer, integer, real, pointer, integer, pointer, integer, real, pointer]
    address = found.sgemm if dtype is np.float32 else found.dgemm
    gemm = ctypes.CFUNCTYPE(None, *kinds, integer)(address)
    a: Array = np.arange(12, dtype=dtype).reshape(3, 4)
    b: Array = np.arange(20, dtype=dtype).reshape(5, 4)
    c: Array = np.full((3, 5), np.nan, dtype)
    at_a, at_b, at_c = (array.ctypes.data for array in (a, b, c))
    gemm(ROW_MAJOR, AS_IT_IS, TRANSPOSED, 3, 5, 4, 1.0, at_a, 4, at_b, 4, 0.0, at_c, 5)
    np.testing.assert_array_equal(c, a @ b.T)  # whole numbers: exact


def test_those_at_hand_are_numpys_first() -> None:
    assert [found.name for found in blases()] == NAMES
    assert re.match(r"\w+ \d+\.\d+", blases()[0].library)


@pytest.mark.parametrize("name", NAMES)
def test_threads_are_those_of_the_context(name: BlasName) -> None:
    found = blas_of(name)
    before = found._controller.num_threads
    with found.threads(2):
        assert found._controller.num_threads == 2
        with found.threads(1):
            assert found._controller.num_threads == 1
        assert found._controller.num_threads == 2
        with pytest.raises(ZeroDivisionError), found.threads(1):
            raise ZeroDivisionError
        assert found._controller.num_threads == 2
    assert found._controller.num_threads == before


def test_a_plan_has_its_threads_and_each_calls_a_blas_on_one(monkeypatch: pytest.MonkeyPatch) -> None:
    model = Sequential(Linear(2, 3), seed=0)
    optimizer, batch = SGD(model, lr=0.1), (np.ones((4, 2), np.float32), np.zeros((4, 3), np.float32))
    plan = compile_step(model, MSELoss(), optimizer, *batch, choice=Choice("scipy", 2))
    assert (plan.blas.name, plan.threads) == ("scipy", 2)
    before, seen, steps_of = plan.blas._controller.num_threads, [], plan._steps_of

    def noted(*arguments: Any) -> int:
        seen.append(plan.blas._controller.num_threads)
        return steps_of(*arguments)

    monkeypatch.setattr(plan, "_steps_of", noted)
    coefficients = optimizer.coefficients(1)
    of_steps: dict[str, Array] = {f"0.{name}": np.array([value], np.float32) for name, value in coefficients.items()}
    done = plan.run(batch[0][np.newaxis], batch[1][np.newaxis], of_steps)
    assert (done.num_steps, seen, plan.blas._controller.num_threads) == (1, [1], before)


def test_a_blas_that_isnt_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(blas._FINDERS, "mkl", lambda: None)
    message = "blas is mkl, which isn't there; pip install 'nn_manual[mkl]' brings it; at hand: numpy, scipy"
    for ask in (lambda: blas_of("mkl"), lambda: check_choice(Choice("mkl"))):
        with pytest.raises(NoBlas) as error:
            ask()
        assert str(error.value) == message
    for name in get_args(BlasName):
        monkeypatch.setitem(blas._FINDERS, name, lambda: None)
    with pytest.raises(NoBlas, match=r"^no BLAS was found"):
        blases()
    with pytest.raises(NoBlas, match=r"^blas is scipy, which isn't there; at hand: none$"):
        blas_of("scipy")


def test_a_package_of_mkl_whose_library_cant_be_loaded(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    broken = tmp_path / "libmkl_rt.so.2"
    broken.write_bytes(b"no library")

    class File:
        name = broken.name

        def locate(self) -> object:
            return broken

    monkeypatch.setattr("importlib.metadata.files", lambda package: [File()] if package == "mkl" else None)
    assert blas._mkls() is None


@pytest.mark.parametrize(
    ("cores", "variable", "count"),
    [
        ({0, 1, 2, 5}, "", 4),
        ({0, 1, 2, 5}, "3", 3),
        ({0, 1}, "16", 2),
        ({0, 1, 2, 5}, "2,4", 2),
        ({0, 1}, "0", 2),
        ({0, 1}, "x", 2),
    ],
)
def test_free_cores(cores: set[int], variable: str, count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: cores, raising=False)  # noqa: ARG005
    monkeypatch.setenv("OMP_NUM_THREADS", variable)
    assert free_cores() == count
    check_choice(Choice(threads=count))
    with pytest.raises(ConfigError, match=rf"^threads must be 1 to {count}, .*, not {count + 1}$"):
        check_choice(Choice(threads=count + 1))


def test_free_cores_where_a_process_is_not_kept_to_some(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 3)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    assert free_cores() == 3
