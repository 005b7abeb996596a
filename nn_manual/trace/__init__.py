"""The trace: what NumPy does in one training step, recorded, operation by operation.

    operation.py    an operation on views of storages, and where it stands in the formulas
    traced.py       the array that records what NumPy does to it
    step.py         a whole step: forward, loss, backward, buffers, clipping, update
    replay.py       the operations run again by NumPy: the oracle of all that is derived from a trace
"""
