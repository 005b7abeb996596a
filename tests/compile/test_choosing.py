"""The choice of BLAS and threads: the fastest for the products of a step, measured once."""

from __future__ import annotations

import copy
import dataclasses
import json
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from nn_manual import SGD, CausalSelfAttention, Linear, MSELoss, ReLU, Sequential
from nn_manual.compile import choosing
from nn_manual.compile.blas import MEASURED, Blas, BlasName, Choice, blas_of
from nn_manual.compile.cache import DIRECTORY, Folder, Kernels
from nn_manual.compile.choosing import MOST_ROUNDS, choose, fastest
from nn_manual.compile.own_products import Factors, vector_bytes
from nn_manual.compile.program import lowered
from nn_manual.trace.step import trace_step

PRODUCTS = Counter({Factors("f4", False, True, 8, 4, 3): 2, Factors("f8", True, False, 3, 5, 2000): 1})


class Machine:
    """A machine with four cores, numpy's BLAS and mkl's. `seconds` has the time of a product by BLAS and threads."""

    def __init__(self) -> None:
        self.seconds: dict[tuple[str, int], float] = {}
        self.timed: Counter[tuple[str, int]] = Counter()

    def blas(self, name: BlasName) -> Blas:
        address = ("numpy", "mkl").index(name)  # nobody calls it
        return dataclasses.replace(blas_of("numpy"), name=name, num_threads=4, sgemm=address, dgemm=address)

    def time(self, timed: choosing._Timed) -> float:
        running = ("numpy", "mkl")[timed._arguments[0]], timed.threads
        self.timed[running] += 1
        return self.seconds[running]


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    made = Machine()
    monkeypatch.setattr(choosing, "blases", lambda: [made.blas("numpy"), made.blas("mkl")])
    monkeypatch.setattr(choosing, "blas_of", made.blas)
    monkeypatch.setattr(choosing, "free_cores", lambda: 4)
    monkeypatch.setattr(choosing._Timed, "_time", lambda timed, _: made.time(timed))
    return made


@pytest.mark.parametrize(
    ("numpys", "mkls", "wanted", "choice"),
    [
        ((1.0, 1.0, 1.0), (0.7, 1.0, 1.0), MEASURED, ("mkl", 1)),
        ((1.0, 1.0, 1.0), (0.95, 1.0, 1.0), MEASURED, ("numpy", 1)),  # two measurements of the same differ by as much
        ((1.0, 0.6, 0.4), (1.0, 0.6, 0.3), MEASURED, ("mkl", 4)),
        ((1.0, 0.6, 0.58), (1.0, 0.6, 0.58), MEASURED, ("numpy", 2)),  # more threads gain nothing
        ((1.0, 0.6, 0.4), (1.0, 0.6, 0.3), Choice("numpy"), ("numpy", 4)),
        ((1.0, 0.6, 0.4), (0.5, 0.6, 0.3), Choice(threads=2), ("numpy", 2)),
        ((1.0, 0.6, 0.4), (0.5, 0.4, 0.3), Choice(threads=2), ("mkl", 2)),
        ((1.0, 1000, 1000), (1.0, 1000, 0.8), MEASURED, ("mkl", 4)),
    ],
)
def test_the_fastest(
    machine: Machine,
    numpys: tuple[float, ...],
    mkls: tuple[float, ...],
    wanted: Choice,
    choice: tuple[BlasName, int],
) -> None:
    for name, seconds in (("numpy", numpys), ("mkl", mkls)):
        machine.seconds |= {(name, threads): each for threads, each in zip((1, 2, 4), seconds, strict=True)}
    assert fastest(PRODUCTS, wanted, Folder(print)) == choice


def test_who_is_hopeless_is_timed_no_more(machine: Machine) -> None:
    machine.seconds = {(name, threads): 1e-3 for name in ("numpy", "mkl") for threads in (1, 2, 4)}
    machine.seconds["mkl", 4] = 20
    assert fastest(PRODUCTS, MEASURED, Folder(print)) == ("numpy", 1)
    assert machine.timed["numpy", 1] == len(PRODUCTS) * (2 + MOST_ROUNDS)  # two to wake up
    assert machine.timed["mkl", 4] == 4  # one product: two calls to wake up, and two rounds


def test_threads_of_the_environment_are_no_more_than_it_says(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    limited = dataclasses.replace(machine.blas("numpy"), num_threads=2)
    monkeypatch.setattr(choosing, "blases", lambda: [limited])
    machine.seconds = {("numpy", 1): 1.0, ("numpy", 2): 0.5}
    assert fastest(PRODUCTS, MEASURED, Folder(print)) == ("numpy", 2)
    monkeypatch.setattr(choosing, "free_cores", lambda: 1)
    assert fastest(PRODUCTS, MEASURED, Folder(print)) == ("numpy", 1)


def test_the_products_of_a_step_are_timed() -> None:
    """Zero calls take no time, and twice as many calls take twice as long."""
    numpys = blas_of("numpy")
    clock = choosing._Clock(PRODUCTS, numpys, 1, Kernels(numpys.integer_bits, Folder(print)))
    assert clock.seconds == np.inf
    clock.measure(np.inf)
    assert 0 < clock.seconds < 1
    (small, large) = sorted(clock._timed, key=lambda timed: timed.multiplications)
    assert (small.weight, small.multiplications) == (2, 8 * 4 * 3)
    assert (large.weight, large.multiplications) == (2000 / 512, 3 * 5 * 512)  # cut
    assert clock.seconds == 2 * small.seconds + 2000 / 512 * large.seconds


@pytest.fixture
def lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The reports of choices that are made in a new folder."""
    monkeypatch.setenv(DIRECTORY, str(tmp_path / "kernels"))
    return []


class Measured:
    """Stands in for `fastest`: counts its calls and returns scipy."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count = 0
        monkeypatch.setattr(choosing, "fastest", self)

    def __call__(self, products: Counter[Factors], wanted: Choice, folder: Folder) -> tuple[BlasName, int]:  # noqa: ARG002
        self.count += 1
        return wanted.blas or "scipy", wanted.threads or 1


def test_it_is_measured_once(lines: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    measured = Measured(monkeypatch)
    for products, wanted, count in [
        (PRODUCTS, MEASURED, 1),
        (copy.copy(PRODUCTS), MEASURED, 1),
        (PRODUCTS + PRODUCTS, MEASURED, 2),
        (PRODUCTS, Choice("numpy"), 3),
        (PRODUCTS, Choice("numpy"), 3),
        (PRODUCTS, Choice("numpy", 1), 3),  # nothing is left to be measured
    ]:
        blas, threads = choose(products, wanted, Folder(lines.append))
        assert (blas.name, threads) == (wanted.blas or "scipy", 1)
        assert measured.count == count
    monkeypatch.setattr(choosing, "free_cores", lambda: 64)  # another machine
    choose(PRODUCTS, MEASURED, Folder(lines.append))
    assert measured.count == 4
    assert lines == []


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "{}",
        '{"blas": "mine", "threads": 1}',
        '{"blas": "numpy", "threads": 0}',
        '{"blas": "numpy", "threads": 1e0}',
        '{"blas": "numpy", "threads": 1000000}',
        '{"blas": "numpy", "threads": true}',
    ],
)
def test_a_damaged_choice_is_made_anew(
    text: str, tmp_path: Path, lines: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    measured = Measured(monkeypatch)
    choose(PRODUCTS, MEASURED, Folder(lines.append))
    (path,) = (tmp_path / "kernels").iterdir()
    path.write_text(text)
    blas, _ = choose(PRODUCTS, MEASURED, Folder(lines.append))
    assert (blas.name, measured.count) == ("scipy", 2)
    (line,) = lines
    assert line.startswith(f"the choice of a BLAS in {path} is damaged and made anew: ")
    assert json.loads(path.read_text()) == {"blas": "scipy", "threads": 1}


def test_a_folder_that_cant_be_written(tmp_path: Path, lines: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    Measured(monkeypatch)
    (tmp_path / "kernels").write_text("a file in the place of the folder")
    blas, threads = choose(PRODUCTS, MEASURED, Folder(lines.append))
    assert (blas.name, threads) == ("scipy", 1)
    (line,) = lines
    assert line.startswith("compiled code is kept for this run alone: ")


def test_the_products_of_a_multilayer_net() -> None:
    model = Sequential(Linear(6, 8), ReLU(), Linear(8, 4), seed=0)
    batch = np.ones((5, 6), np.float32), np.zeros((5, 4), np.float32)
    trace = trace_step(model, MSELoss(), SGD(model, lr=0.1), *batch)
    assert lowered(trace).products == Counter(
        {
            Factors("f4", False, True, 5, 8, 6): 1,  # input @ weight.T
            Factors("f4", False, True, 5, 4, 8): 1,
            Factors("f4", True, False, 4, 8, 5): 1,  # grad_output.T @ input
            Factors("f4", False, False, 5, 8, 4): 1,  # grad_output @ weight
            Factors("f4", True, False, 8, 6, 5): 1,
        }
    )


def test_products_in_loops_are_counted() -> None:
    """Attention needs seven products per head and example: it computes the scores again in backward."""
    model = Sequential(CausalSelfAttention(embed_dim=10, num_heads=2), seed=0, dtype="float64")
    batch = np.random.default_rng(0).standard_normal((3, 4, 10)), np.zeros((3, 4, 10))
    products = lowered(trace_step(model, MSELoss(), SGD(model, lr=0.1), *batch)).products
    of_heads = {each: count for each, count in products.items() if {each.m, each.n, each.k} == {4, 5}}
    assert sum(of_heads.values()) == 7 * 2 * 3
    assert sum(products.values()) - sum(of_heads.values()) == 2 + 3  # of the two linear maps; no grad_input


def test_a_net_without_products() -> None:
    assert fastest(Counter(), MEASURED, Folder(print)) == ("numpy", 1)


@pytest.mark.skipif(not vector_bytes(), reason="own loops are for processors with AVX2")
def test_own_loops_are_not_timed(machine: Machine) -> None:
    """They are the same with every BLAS."""
    machine.seconds = {(name, threads): 1e-3 for name in ("numpy", "mkl") for threads in (1, 2, 4)}
    products = Counter({Factors("f4", False, True, 64, 64, 64): 1})
    for wanted in (Choice(threads=1), MEASURED):
        assert fastest(products, wanted, Folder(print)) == ("numpy", 1)
    assert not machine.timed
    assert fastest(products | PRODUCTS, MEASURED, Folder(print)) == ("numpy", 1)
    assert set(machine.timed) == set(machine.seconds)
