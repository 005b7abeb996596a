"""Measures which BLAS computes the products of a step fastest, and on how many threads; keeps the result."""

from __future__ import annotations

import hashlib
import json
import math
import os
import statistics
import time
from collections import Counter
from importlib import metadata
from typing import Any, get_args

import numpy as np

from nn_manual.compile.blas import Blas, BlasName, Choice, blas_of, blases, free_cores
from nn_manual.compile.cache import Folder, Kernels, write
from nn_manual.compile.own_products import Factors, suits
from nn_manual.compile.parallel import blas_apart, product_name

#: Larger sizes are cut to this one when they are timed. Above it the speed of a product changes little, and ten
#: products of this size take some 20 ms.
LARGEST = 512
#: How often each product is timed: at least so often, and at most so often while there is time left. Small products
#: differ by less than the noise of the clock.
NUM_ROUNDS, MOST_ROUNDS = 3, 15
#: Seconds for the whole measurement, unless NUM_ROUNDS rounds take longer.
BUDGET = 0.05
#: A product is repeated until so many seconds have passed: the clock itself takes part of a microsecond.
SHORTEST = 5e-5
#: A candidate that comes later in the order (another BLAS, or more threads) must take less than this part of the time.
#: Two measurements of one product differ by up to a tenth.
MARGIN = 0.9
#: A candidate that takes so many times as long as the fastest isn't timed any more: threads that wait for a busy core
#: take a thousand times as long.
HOPELESS = 2


def choose(products: Counter[Factors], wanted: Choice, folder: Folder) -> tuple[Blas, int]:
    """The BLAS for these products, and the number of threads: what is wanted, and for the rest the fastest.

    The result is kept in the folder, under a hash of the products and of all choices. Raises NoBlas if there is no
    BLAS, or not the wanted one.
    """
    blas, threads = wanted
    if blas is None or threads is None:
        blas, threads = _fastest_once(products, wanted, folder)
    return blas_of(blas), threads


def _fastest_once(products: Counter[Factors], wanted: Choice, folder: Folder) -> tuple[BlasName, int]:
    path = folder.path(f"blas_{_key(products, wanted)}.json")
    try:
        return _kept(json.loads(path.read_text(encoding="utf-8")), wanted)
    except FileNotFoundError:
        pass
    except (OSError, KeyError, TypeError, ValueError) as error:
        folder.say(f"the choice of a BLAS in {path} is damaged and made anew: {type(error).__name__}: {error}")
    blas, threads = fastest(products, wanted, folder)
    write(path, json.dumps({"blas": blas, "threads": threads}))
    return blas, threads


def _kept(read: Any, wanted: Choice) -> tuple[BlasName, int]:
    """The kept choice. Raises KeyError, TypeError or ValueError if the file was changed."""
    blas, threads = read["blas"], read["threads"]
    is_open = blas in get_args(BlasName) and type(threads) is int and 1 <= threads <= free_cores()
    if not is_open or wanted not in (Choice(), Choice(blas), Choice(threads=threads)):
        raise ValueError(f"{blas} on {threads} threads")
    return blas, threads


def _key(products: Counter[Factors], wanted: Choice) -> str:
    """A hash of the products, the processor, the free cores and the packages that bring a BLAS."""
    import llvmlite.binding

    versions = {name: _version(name) for name in get_args(BlasName)}
    numpys = blas_of("numpy")
    limits = free_cores(), numpys.num_threads, os.environ.get("MKL_NUM_THREADS")
    machine = llvmlite.binding.get_host_cpu_name(), numpys.library, *limits
    text = repr((sorted(products.items()), wanted, versions, machine))
    return hashlib.sha256(text.encode()).hexdigest()[:24]


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def fastest(products: Counter[Factors], wanted: Choice, folder: Folder) -> tuple[BlasName, int]:
    """As `choose`, but measured now. Among equally fast ones fewer threads win, then numpy's BLAS."""
    among = [blas_of(wanted.blas)] if wanted.blas else blases()
    counts = _counts(free_cores()) if wanted.threads is None else [wanted.threads]
    candidates = [
        (blas, threads)
        for threads in counts
        for blas in among
        if threads <= blas.num_threads or wanted.threads is not None  # the user's environment may allow fewer
    ]
    products = Counter({each: count for each, count in products.items() if not suits(each)})
    if len(candidates) == 1 or not products:
        return candidates[0][0].name, candidates[0][1]
    kernels = {bits: Kernels(bits, folder) for bits in (32, 64)}
    clocks = [_Clock(products, *candidate, kernels[candidate[0].integer_bits]) for candidate in candidates]
    start = time.perf_counter()
    for i in range(MOST_ROUNDS):
        if i >= NUM_ROUNDS and time.perf_counter() - start > BUDGET:
            break
        least = min(clock.seconds for clock in clocks)
        for clock in clocks:
            if i < NUM_ROUNDS - 1 or clock.seconds <= HOPELESS * least:
                clock.measure(HOPELESS * least)
                least = min(least, clock.seconds)
    least = min(clock.seconds for clock in clocks)
    clock = next(clock for clock in clocks if clock.seconds * MARGIN <= least)
    return clock.blas.name, clock.threads


def _counts(most: int) -> list[int]:
    """The numbers of threads that are tried: 1, 2, 4, ..., and `most`."""
    return [*(2**i for i in range(most.bit_length()) if 2**i < most), most]


class _Clock:
    """Times the products of a step with one BLAS and one number of threads."""

    def __init__(self, products: Counter[Factors], blas: Blas, threads: int, kernels: Kernels) -> None:
        self.blas, self.threads = blas, threads
        timed = [_Timed(factors, count, blas, threads, kernels) for factors, count in products.items()]
        #: The longest come first: they show soonest that a BLAS is too slow.
        self._timed = sorted(timed, key=lambda each: -each.weight * each.multiplications)

    @property
    def seconds(self) -> float:
        """The seconds of all products of a step, from medians; infinite until each product was timed."""
        return sum(each.weight * each.seconds for each in self._timed)

    def measure(self, limit: float) -> None:
        """Time each product; stop when they take longer than `limit` seconds."""
        total = 0.0
        with self.blas.threads(1):
            for each in self._timed:
                each.measure()
                total += each.weight * each.seconds
                if total > limit:
                    return


class _Timed:
    """Times one kind of product of a BLAS, on memory of its own, as a plan on so many threads would run it. `weight` is
    the work of a step in such products, divided by the work of the one that is timed.
    """

    def __init__(self, factors: Factors, count: int, blas: Blas, threads: int, kernels: Kernels) -> None:
        from nn_manual.compile import driver
        from nn_manual.compile.pool import helping

        m, n, k = (min(extent, LARGEST) for extent in factors[3:])
        self.multiplications = m * n * k
        self.weight = count * math.prod(factors[3:]) / max(1, self.multiplications)
        self._times, self._repeats, self._run = list[float](), 0, driver.run
        # Random numbers: a product of zeros may be faster, and one of memory that was never written is.
        generator = np.random.default_rng(0)
        dtype = np.float32 if factors.dtype == "f4" else np.float64
        self._arrays = [generator.random(size, dtype) for size in (m * k, k * n, m * n)]
        at_a, at_b, at_c = (array.ctypes.data for array in self._arrays)
        gemm = blas.sgemm if dtype is np.float32 else blas.dgemm
        rows = (m if factors.transposed_a else k), (k if factors.transposed_b else n), n
        flags = int(factors.transposed_a), int(factors.transposed_b)
        arguments = (gemm, *flags, m, n, k, at_a, rows[0], at_b, rows[1], at_c, rows[2])
        self._arguments = np.array(arguments, np.int64)
        timed = factors._replace(m=m, n=n, k=k)
        cut, address = blas_apart(timed), kernels.address(driver.text_of(product_name(timed)), "a product")
        self._calls = np.array([address, 0, *((cut.extent, cut.size(threads)) if cut else (1, 1))], np.int64)
        self.threads, self._helping = threads, helping

    @property
    def seconds(self) -> float:
        """The median: cores that are busy most of the time count, a single stall doesn't."""
        return statistics.median(self._times) if self._times else math.inf

    def measure(self) -> None:
        """Time it. The first call wakes threads up, and finds how often the product must be repeated."""
        if not self._repeats:
            self._time(1)
            self._repeats = min(100, 1 + int(SHORTEST / self._time(1)))
        self._times.append(self._time(self._repeats))

    def _time(self, repeats: int) -> float:
        start = time.perf_counter()
        with self._helping(self.threads) as control:
            self._run(0, repeats, self._calls.ctypes.data, 1, 0, 0, self._arguments.ctypes.data, control)
        return (time.perf_counter() - start) / repeats
