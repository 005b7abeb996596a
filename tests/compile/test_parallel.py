"""Which loops may be cut, and that the pieces give the same bits on any number of threads."""

from __future__ import annotations

import threading
from collections.abc import Callable

import numpy as np
import pytest
from every_component import a_whole_net

from nn_manual import SGD, AdamW, CausalSelfAttention, CrossEntropyLoss, Linear, MSELoss, Sequential
from nn_manual.arrays import Array
from nn_manual.compile import driver, parallel
from nn_manual.compile.blas import Choice
from nn_manual.compile.nests import Loop
from nn_manual.compile.own_products import Factors
from nn_manual.compile.parallel import GRAIN, PRODUCT_GRAIN, Apart, apart, blas_apart, own_apart, product_name
from nn_manual.compile.pool import Pool, helping
from nn_manual.compile.program import KernelCall, lowered
from nn_manual.trace.tracer import Tracer
from nn_manual.trainer.trainer import Trainer

THREADS = (1, 2, 3)


def loops_of(formula: Callable[..., Array], *arrays: Array) -> list[Apart | None]:
    """How each of the formula's loops may be cut."""
    with Tracer({}) as tracer:
        result = formula(*(tracer.give(f"x{i}", array) for i, array in enumerate(arrays)))
        trace = tracer.trace({"result": result})
    return [apart(item) for item in lowered(trace).items if isinstance(item, Loop)]


LARGE, WIDE = np.ones(1 << 20, np.float32), np.ones((1000, 500), np.float32)


def at_indices(x: Array, indices: Array) -> Array:
    y = np.zeros_like(x)
    y[indices] = x
    return y


@pytest.mark.parametrize(
    ("formula", "array", "expected"),
    [
        (lambda x: x * 2, LARGE, [Apart(1 << 20, GRAIN)]),
        (lambda x: np.exp(x), LARGE[:30_000], [Apart(30_000, GRAIN)]),
        (lambda x: x * 2, LARGE[:200_000], [None]),  # too little work
        (lambda x: x.sum(), LARGE, [None]),  # one sum over all iterations
        (lambda x: x.sum(axis=1), WIDE, [Apart(1000, 1)]),  # a sum in each
        (lambda x: x.T * 2, np.ones((500, 7), np.float32).repeat(80, axis=0), [Apart(40000 * 7, GRAIN)]),
        (lambda x: np.add.reduce(np.exp(x), axis=0), WIDE, [None]),
    ],
)
def test_a_loop_may_be_cut_where_its_iterations_have_their_own_elements(
    formula: Callable[..., Array], array: Array, expected: list[Apart | None]
) -> None:
    assert loops_of(formula, array) == expected


def test_where_indices_say_what_is_written_the_loop_stays_whole() -> None:
    """Two iterations may write to one element."""
    assert loops_of(at_indices, LARGE, np.arange(1 << 20) // 2) == [Apart(1 << 20, GRAIN), None]


def test_pieces_are_multiples_of_a_grain() -> None:
    assert Apart(1000, 64).size(2) == 512
    assert Apart(1000, 64).size(4) == 256
    assert Apart(100, 64).size(4) == 64
    assert Apart(100, 1).size(3) == 34
    assert Apart(64, 64).size(2) == 64


def test_the_longer_side_of_a_product_is_cut() -> None:
    for (m, n), side in (((512, 256), "rows"), ((256, 512), "columns")):
        factors = Factors("f4", False, False, m, n, 64)
        assert blas_apart(factors) == Apart(512, PRODUCT_GRAIN, moves_bits=True)
        assert product_name(factors) == f"f4_product_{side}"
    small = Factors("f8", False, False, 32, 32, 32)
    assert blas_apart(small) is None
    assert own_apart(small) == Apart(32, 32)
    assert product_name(small) == "f8_product"


def trained(net: Callable[[], tuple[Sequential, Array, Array]], threads: int, loop_threads: int) -> list[bytes]:
    """The bits of parameters, gradients and vectors after some compiled steps."""
    model, input, target = net()
    optimizer = AdamW(model, lr=0.01)
    loss = CrossEntropyLoss() if target.dtype.kind == "i" else MSELoss()
    trainer = Trainer(model, loss, optimizer, clip_grad_norm=0.5, check_every=0, compiled=True, threads=1)
    compiled = trainer._compiled
    assert compiled is not None
    # More threads than cores, and that is what the bits must not depend on.
    compiled.plans.choice, compiled.plans.loop_threads = Choice("numpy", threads), loop_threads
    for _ in trainer.epoch((input, target), len(input) // 4, seed=0, epoch=0):
        pass
    assert not compiled.plans.reason
    plan = next(iter(compiled.plans._plans.values()))
    assert plan is not None
    assert any(isinstance(call, KernelCall) and call.apart for call in plan.program.calls)
    return [model.param_arena.tobytes(), model.grad_arena.tobytes(), *map(bytes, optimizer.vectors.values())]


def whole_net() -> tuple[Sequential, Array, Array]:
    generator = np.random.default_rng(0)
    return a_whole_net(), generator.standard_normal((36, 6), np.float32), generator.integers(0, 7, 36)


def attention() -> tuple[Sequential, Array, Array]:
    generator = np.random.default_rng(0)
    model = Sequential(CausalSelfAttention(embed_dim=12, num_heads=3), Linear(12, 12), seed=1)
    input = generator.standard_normal((12, 10, 12), np.float32)
    return model, input, np.zeros_like(input)


def wide() -> tuple[Sequential, Array, Array]:
    """Its products are large enough for several threads."""
    generator = np.random.default_rng(0)
    input = generator.standard_normal((800, 200), np.float32)
    return Sequential(Linear(200, 300), seed=2), input, np.zeros((800, 300), np.float32)


@pytest.mark.slow
@pytest.mark.parametrize("net", [whole_net, attention, wide])
@pytest.mark.parametrize("threads", [1, 2])
def test_the_bits_depend_on_no_number_of_loop_threads(
    net: Callable[[], tuple[Sequential, Array, Array]], threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It alone compares whole plans on one thread and on several."""
    monkeypatch.setattr(parallel, "LEAST_WORK", 1)
    monkeypatch.setattr(parallel, "GRAIN", 16)  # these loops run on vectors, and have a rest
    one, *others = [trained(net, threads, loop_threads) for loop_threads in THREADS]
    assert all(other == one for other in others)


def test_one_plan_at_a_time_has_the_threads() -> None:
    with helping(2) as control:
        assert control
        with helping(2) as other:
            assert not other
    with helping(2) as again:
        assert again == control
    with helping(1) as alone:
        assert not alone


def test_pieces_run_once_each_whoever_runs_them() -> None:
    """Many short loops, begun and ended by several threads at once, each with a pool of its own."""
    text = """
@cfunc("int64(CPointer(int64), int64, int64)", error_model="numpy", cache=True)
def entry(arguments, first, last):
    counts = i8_at(arguments[0])
    for i in range(first, last):
        counts[i] += 1
    return 0
"""
    from nn_manual.compile.cache import Folder, Kernels

    address = Kernels(64, Folder(print)).address(text, "a test's")
    found = []

    def run(pool: Pool) -> None:
        counts = np.zeros(1001, np.int64)
        calls, arguments = np.array([[address, 0, 1001, 100]]), np.array([counts.ctypes.data])
        for _ in range(50):
            with pool.helping() as control:
                own = calls.ctypes.data, 1, 0, 0, arguments.ctypes.data
                assert driver.run(0, 100, *own, control) == 100
        found.append(counts.tolist())

    threads = [threading.Thread(target=run, args=(Pool(2),)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [[5000] * 1001] * 2


def test_a_system_may_grant_no_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refused)
    with Pool(2).helping() as control:
        assert control


def test_a_loop_whose_threads_are_elsewhere_runs_alone() -> None:
    model = Sequential(Linear(200, 300), seed=2)
    generator = np.random.default_rng(0)
    input, target = generator.standard_normal((200, 200), np.float32), np.zeros((200, 300), np.float32)

    def step() -> bytes:
        own = Sequential(Linear(200, 300), seed=2)
        trainer = Trainer(own, MSELoss(), SGD(own, lr=0.1), check_every=0, compiled=True, threads=1)
        compiled = trainer._compiled
        assert compiled is not None
        compiled.plans.choice, compiled.plans.loop_threads = Choice("numpy", 2), 2
        for _ in trainer.epoch((input, target), 50, seed=0, epoch=0):
            pass
        return own.param_arena.tobytes()

    helped = step()
    with helping(2):
        alone = step()
    assert helped == alone != model.param_arena.tobytes()
