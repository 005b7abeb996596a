"""The plan: a traced training step, compiled.

    versions.py     a trace without its dead operations, each value in a storage of its own
    nests.py        loops, what they read and write, and when two may be one
    scalar.py       what NumPy computes of numbers, as a line of Python that numba takes
    products.py     matrix products as calls of a BLAS
    own_products.py matrix products in own loops
    tiles.py        the innermost parts of these, as vectors
    reductions.py   sums, maxima and their places as nests of loops
    indexing.py     what reads and writes at indices, as nests of loops
    dims.py         views as loops: broadcast, in as few as do it, flat, overlapping
    lowering.py     an operation of NumPy as a nest of loops
    fusion.py       which loops become one
    kernels.py      nests as functions in Python, each once
    workspace.py    where in one piece of memory each temporary lies
    program.py      a step as a list of calls
    intrinsics.py   what a kernel needs that Python doesn't have: pointers, a BLAS, a fused multiply-add
    elementary.py   exp, tanh and the like, as polynomials that run on vectors
    driver.py       what runs a program: one call after the other, step by step
    gathering.py    the inputs of steps as rows of examples
    copies.py       what a program keeps of each step
    blas.py         whose BLAS multiplies, on how many threads
    choosing.py     which of them is fastest at a step's products: measured once, then kept
    cache.py        kernels on disk, each under a hash of all that it depends on
    plan.py         Plan, which runs many steps
    compiling.py    compile_step, for parts of a step too

numba is loaded when a plan is made, and not before.
"""
