"""What torch is set to while it runs a step: how many threads, and no oneDNN."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch

#: A forward of fewer multiplications than this is faster on one thread: a second one takes longer to start. On one
#: thread the step of the 64-64-10 net takes 0.85 times as long, that of the 784-128-10 net, at 6.5 million, 1.1 times.
FEW_PRODUCTS = 1 << 20


@contextmanager
def threads_for(num_products: int) -> Iterator[None]:
    """The context in which torch uses one thread for few products, and for many the threads that it had."""
    num_threads = torch.get_num_threads()
    if num_products >= FEW_PRODUCTS or num_threads == 1:
        yield
        return
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(num_threads)


@contextmanager
def without_onednn() -> Iterator[None]:
    """torch computes without oneDNN meanwhile, and so more exactly.

    On processors with AVX-512, oneDNN's gradient of a convolution's weight was 1.4e-4 of its largest element off, where
    50,000 terms cancel; torch's own is 3e-6 off, ours 1e-6. And a whole LSTM is one operation in oneDNN.
    """
    flags = torch.backends.mkldnn.set_flags(_enabled=False)  # type: ignore[no-untyped-call]  # torch has no annotations
    try:
        yield
    finally:
        torch.backends.mkldnn.set_flags(_enabled=flags[0])  # type: ignore[no-untyped-call]  # as above
