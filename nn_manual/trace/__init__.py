"""The trace: what NumPy does in one training step, recorded, operation by operation.

    operation.py    an operation on views of storages, and where it stands in the formulas
    memory.py       which arrays lie in which piece of memory
    recording.py    what is noted of a step while it runs
    functions.py    what is made of each function of NumPy
    methods.py      what is made of an array's methods that ask nobody
    traced.py       the array that records what NumPy does to it
    conversions.py  what np.array and its like make of an array of a trace
    tracer.py       what hands out the arrays, and hears of loops
    step.py         a whole step: forward, loss, backward, buffers, clipping, update
    observed.py     such a step with its source: expressions, local variables, the layers' inputs and outputs
    others.py       other values for the arrays of a step
    comparing.py    whether two traces are the same
    loops.py        marked loops are loops in the trace
    replay.py       the operations run again by NumPy: the oracle of all that is derived from a trace
    proving.py      a replay on other values is the step
    cost.py         what a step keeps alive and multiplies
"""
