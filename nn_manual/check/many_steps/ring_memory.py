"""The memory that the rings of all shapes share: taken when the first step is kept, and no more than is needed."""

from __future__ import annotations

import numpy as np

from nn_manual.arrays import Array

#: Where a step is proven by itself, ours of the tensors that are compared wait for torch's run, which takes twice as
#: much: its values and gradients, and what it keeps for its backward. By the memory of whole processes: 2.0 in a net of
#: wide layers with a batch of 8,192 examples, 2.3 with 2,048, 2.0 in config/gpt.yaml.
OF_TORCH_ALONE = 2

#: The most bytes of a step. Copies of more bytes cost as much as the saved calls of torch: the step of the
#: 784-512-512-10 net, with 12 MB, takes 1.15 times as long as alone, that of config/digits_convnet.yaml, with 2.8 MB,
#: 1.3 times; that of the 784-128-10 net, with 2.4 MB, 0.7 times.
LARGEST_STEP = 2_500_000


def proven_alone(tensors: int, parameters: int, vectors: int) -> int:
    """The bytes of a step that is proven by itself, at their peak, from those of the tensors that are compared, of the
    parameters, and of the optimizer's vectors: torch has copies of both, and of where the update starts from.
    """
    return (1 + OF_TORCH_ALONE) * tensors + 4 * parameters + 2 * vectors


class RingMemory:
    """Memory for steps that wait and for torch's versions of them, up to `limit` bytes. Only the steps lie in what is
    taken here: those of one ring at a time, because the steps of one are proven before another one is used.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        #: How many steps wait at most, those of an epoch; None where nobody knows.
        self.most: int | None = None
        self._bytes = np.empty(0, np.uint8)

    @property
    def num_bytes(self) -> int:
        """How many bytes are taken."""
        return self._bytes.nbytes

    def taken(self, num_bytes: int) -> Array:
        """At least so many bytes. Where they are more than before, they are new: other rings have the old ones. Raises
        MemoryError, with a note that names the setting.
        """
        if num_bytes > self.num_bytes:
            size = max(num_bytes, min(2 * self.num_bytes, self.limit))  # shapes that grow are many
            try:
                self._bytes = np.empty(size, np.uint8)
            except MemoryError as error:
                error.add_note("for the steps that are proven together: a smaller gradient_check.memory takes less")
                raise
        return self._bytes
