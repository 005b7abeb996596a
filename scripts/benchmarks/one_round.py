"""One process of `benchmark.py against`: the time of a plain and of a checked step of each net, as JSON."""

from __future__ import annotations

import json

from benchmarks.nets import NETS, Net, microseconds, training

#: Steps before the measured ones: they load torch, make the optimizer's state, and start the threads.
NUM_WARM_UP = 3


def time_of(net: Net, *, checked: bool) -> float:
    """Microseconds of a step."""
    step = training(net, checked=checked)
    for _ in range(NUM_WARM_UP):
        step()
    return microseconds(step, net.num_steps)


def main() -> None:
    """Print the times, plain steps first: they run before torch is loaded, as in a training without checks."""
    plain = {str(net): time_of(net, checked=False) for net in NETS}
    checked = {str(net): time_of(net, checked=True) for net in NETS}
    print(json.dumps({"plain": plain, "checked": checked}))


if __name__ == "__main__":
    main()
