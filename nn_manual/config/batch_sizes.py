"""How many examples of a training go through the model at once."""

from __future__ import annotations

from nn_manual.config.run_config import RunConfig
from nn_manual.step.slices.cut import cut


def smaller_sizes(config: RunConfig, num_examples: int) -> dict[int, str]:
    """How many examples go through the model at once where it isn't a whole batch; and in words, which these are."""
    slices, of = config.slices or 1, " a slice of" if config.slices not in (None, 1) else ""
    if config.sync_batch_norm:  # it is the batch that must have more than one example
        slices, of = 1, ""
    batches = {min(config.batch_size, num_examples): "a batch", num_examples % config.batch_size: "the last batch"}
    sizes: dict[int, str] = {}
    for num_rows, batch in batches.items():
        for rows in cut(num_rows, slices):
            if rows.start < rows.stop:
                sizes.setdefault(rows.stop - rows.start, f", in{of} {batch} of an epoch")
    return sizes
