"""The plan: a traced training step, compiled.

    versions.py     a trace without its dead operations, each value in a storage of its own
    nests.py        loops, what they read and write, and when two may be one
    lowering.py     an operation of NumPy as a nest of loops
    products.py     matrix products as calls of a BLAS
    workspace.py    where in one piece of memory each temporary lies
    scalar.py       what NumPy computes of numbers, as a line of Python that numba takes
    kernels.py      nests as functions in Python, each once
    source.py       the file that numba compiles
    intrinsics.py   what the generated file needs that Python doesn't have: pointers, a BLAS, a fused multiply-add
    elementary.py   exp, tanh and the like, as polynomials that run on vectors
    blas.py         where a BLAS is
    cache.py        generated files on disk, and what decides whether one is still right
    plan.py         compile_step and Plan

numba is loaded when a plan is made, and not before.
"""
