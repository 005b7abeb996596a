"""torch without oneDNN."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch


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
