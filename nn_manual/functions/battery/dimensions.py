"""The rows of other sizes: a dimension empty, 1, odd, prime, past a block, and long."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace

from nn_manual.errors import first_words_of, raise_if_nobodys_fault
from nn_manual.functions.battery.lengths import Choice, free_dimensions
from nn_manual.functions.battery.time_and_memory import peak_of_reference
from nn_manual.functions.battery.trial import Run, Skip, Trial, agree
from nn_manual.functions.callables import floats, is_array
from nn_manual.functions.function_case import FunctionCase

#: Sizes that kernels get wrong: 0, for a dimension that comes first in an input, such as the batch; 1; odd and prime
#: numbers; blocks, and the sizes on both sides of a block.
SIZES = (0, 1, 2, 3, 7, 13, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 129, 255, 256, 257)

#: Large blocks, and the sizes on both sides of them: a published norm is wrong from 2,049 on. From 1,024 on, a sum in
#: 16 bits shows its error: for random terms, the error as a fraction of the sum grows like the root of their number,
#: since each addition rounds the sum so far.
LONG, BEFORE_IT = (511, 512, 513, 1023, 1024, 1025, 2047, 2048, 2049, 4096, 4097), SIZES[-1]
#: Once a long size takes so many seconds of the processor, longer ones are skipped: up to 8 times longer, they may take
#: 64 times as long. On two dimensions that leaves a battery below 20 s.
MOST_SECONDS = 0.5
#: A long size is skipped if the reference alone might take more bytes than this; they may grow like its square.
MOST_BYTES = 1 << 28

#: Two dimensions past a block of 16, 64 or 128 at once: they leave a tile in the corner, which is cut on two sides.
CORNER = (129, 131)

#: Once all sizes are 1: it shows a function that takes one number for another case, or squeezes too many axes. And once
#: all are EQUAL: it shows a function that compares two sizes to tell the axes apart.
ONE, EQUAL = 1, 8

#: The sizes in each of the other dtypes: 1, and one past a block.
FEW = (1, 129)


def sizes(trial: Trial) -> Iterator[tuple[str, Run]]:
    """Each dimension empty, 1, odd, prime, past a block, and long, the others small; each two past a block; all 1;
    and all equal.
    """
    if not callable(trial.inputs):
        yield "", _no_sizes
        return
    free, seconds = free_dimensions(trial.sizes), dict[str, float]()
    for name, given in trial.sizes.items():
        for size in given if isinstance(given, Choice) else SIZES if _leads(trial, name) else SIZES[1:]:
            yield f"{name}={size}", lambda name=name, size=size: _size(trial, {name: size})  # type: ignore[misc] # defaults
        for size in LONG if name in free else ():
            yield f"{name}={size}", lambda name=name, size=size: _long(trial, name, size, seconds)  # type: ignore[misc] # defaults
    several = [dict(zip(names, CORNER, strict=True)) for names in itertools.combinations(free, 2)]
    if len(free) > 1:
        several += [dict.fromkeys(free, size) for size in (ONE, EQUAL)]
    for changed in several:
        called = ",".join(f"{name}={size}" for name, size in changed.items())
        yield called, lambda changed=changed: _size(trial, changed)  # type: ignore[misc] # a default


def few_sizes(trial: Trial) -> Iterator[tuple[str, Run]]:
    """Each dimension 1, and past a block, the others small: for dtypes in which no other sizes are tried."""
    if callable(trial.inputs):
        alone, past_a_block = FEW
        for name in free_dimensions(trial.sizes):
            yield f"{name}={alone}", lambda name=name: _size(trial, {name: alone})  # type: ignore[misc] # a default
            yield f"{name}={past_a_block}", lambda name=name: _past(case_of_sizes(trial, {name: past_a_block}))  # type: ignore[misc] # a default


def _leads(trial: Trial, name: str) -> bool:
    """Whether the dimension comes first in the first input, or in an input of integers. Such a dimension is a batch, or
    counts indices, and can be empty; the features of an input or of a weight can't.
    """
    sizes = trial.small_sizes
    try:
        cases = [trial.at({**sizes, name: sizes[name] + more}) for more in (0, 1)]
    except Exception as error:  # the user's own function of the sizes may raise anything
        raise_if_nobodys_fault(error)
        return False
    one, other = (_lengths(case) for case in cases)
    return one != other


def _lengths(case: FunctionCase) -> list[int]:
    arrays = [leaf for leaf in case.arguments.leaves if is_array(leaf) and leaf.ndim]
    return [leaf.shape[0] for i, leaf in enumerate(arrays) if i == 0 or not floats(leaf)]


def _no_sizes() -> None:
    raise Skip("the inputs are given; a function of a generator and sizes that makes them is tried on others")


def _size(trial: Trial, changed: Mapping[str, int]) -> None:
    agree(replace(case_of_sizes(trial, changed), drawn=True))


def _long(trial: Trial, name: str, size: int, seconds: dict[str, float]) -> None:
    """`seconds` are those that the size before it took, by dimension."""
    if seconds.get(name, 0) > MOST_SECONDS:
        raise Skip(f"the size before took over {MOST_SECONDS} s; name the size in `sizes` to try it")
    raise_if_much_memory(trial, name, size)
    start = time.process_time()
    try:
        _past(case_of_sizes(trial, {name: size}))
    finally:
        seconds[name] = time.process_time() - start


def raise_if_much_memory(trial: Trial, name: str, size: int) -> None:
    """Raise Skip for a long size at which the reference alone may take more than MOST_BYTES."""
    if peak_of_reference(case_of_sizes(trial, {name: BEFORE_IT})) * (size / BEFORE_IT) ** 2 > MOST_BYTES:
        raise Skip("it may take much memory; name the size in `sizes` to try it")


def _past(case: FunctionCase) -> None:
    # In 16 bits, the excuse by terms would also excuse what the reference computes in more bits, such as positions. So
    # it is off here, as it is at the full size. Small sizes need it: a norm over one feature, for example.
    agree(replace(case, drawn=True, excuses_terms=not case.is_low))


def case_of_sizes(trial: Trial, changed: Mapping[str, int]) -> FunctionCase:
    """The case of the small sizes, without those that are changed. Raises Skip where there are no such inputs."""
    try:
        return trial.at({**trial.small_sizes, **changed})
    except Exception as error:  # anyone's function may raise anything
        raise_if_nobodys_fault(error)
        raise Skip(f"no such inputs: {first_words_of(error)}") from error
