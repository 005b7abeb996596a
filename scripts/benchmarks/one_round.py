"""One process of `benchmark.py against`: the time of a plain, a checked and a compiled step of each net, as JSON."""

from __future__ import annotations

import json

from benchmarks.nets import NETS, Net, batches, microseconds, new_trainer, training

# isort: split
import numpy as np

from nn_manual.data import Examples

#: Steps before the measured ones: they load torch, make the optimizer's state, and start the threads.
NUM_WARM_UP = 3

#: Compiled epochs that are measured.
NUM_EPOCHS = 5


def time_of(net: Net, *, checked: bool) -> float:
    """Microseconds of a step."""
    step = training(net, checked=checked)
    for _ in range(NUM_WARM_UP):
        step()
    return microseconds(step, net.num_steps)


def compiled_time_of(net: Net) -> float:
    """Microseconds of a compiled step: those of an epoch over the number of its steps. The first epoch, in which the
    step is compiled, isn't measured. BLAS and threads are fixed: two trees may not measure and choose different ones.
    """
    trainer = new_trainer(net, checked=False, compiled=True, blas="numpy", threads=1)
    input, target = (np.concatenate(arrays) for arrays in zip(*batches(net, net.num_steps), strict=True))
    epochs = iter(range(1 + NUM_EPOCHS))

    def epoch() -> None:
        for _ in trainer.epoch(Examples(input, target), net.batch_size, seed=0, epoch=next(epochs)):
            pass

    epoch()
    return microseconds(epoch, NUM_EPOCHS) / net.num_steps


def main() -> None:
    """Print the times, plain steps first: they run before torch is loaded, as in a training without checks."""
    plain = {str(net): time_of(net, checked=False) for net in NETS}
    checked = {str(net): time_of(net, checked=True) for net in NETS}
    compiled = {str(net): compiled_time_of(net) for net in NETS}
    print(json.dumps({"plain": plain, "checked": checked, "compiled": compiled}))


if __name__ == "__main__":
    main()
