"""The plan: a traced training step, compiled.

Read the files in this order: single_assignment, nests, scalar, dims, operands, elementwise, products, reductions,
indexing, lowering, own_products, tiles, fusion, kernel_arguments, parallel, kernels, workspace, program. Then come the
files that run the program: intrinsics, gemm, elementary, atomics, driver, pool, gathering, step_copies, blas, choosing,
cache, plan, compile_step. At last come the files that a trainer uses: plans, stacked_batches, boundaries,
kept_for_buffers.

numba is loaded when a plan is made, and not before.
"""
