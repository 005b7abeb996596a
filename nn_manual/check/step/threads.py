"""How many of torch's threads a check uses."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch

#: A step of fewer multiplications forward than this is over before a second thread has heard of it: that of the
#: 64-64-10 net takes 0.85 times as long on one thread, that of the 784-128-10 net, at 6.5 million, 1.1 times.
FEW_PRODUCTS = 1 << 20


@contextmanager
def threads_for(num_products: int) -> Iterator[None]:
    """The context in which torch works on one thread, if it has so little to multiply, and else on those it had."""
    num_threads = torch.get_num_threads()
    if num_products >= FEW_PRODUCTS or num_threads == 1:
        yield
        return
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(num_threads)
