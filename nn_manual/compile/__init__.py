"""The plan: a traced training step, compiled.

To be read in this order: versions, nests, scalar, dims, operands, elementwise, products, reductions, indexing,
lowering, own_products, tiles, fusion, kernels, workspace, program; what runs it: intrinsics, gemm, elementary, driver,
gathering, copies, blas, choosing, cache, plan, compiling; what a trainer asks for: plans, stacked_batches, boundaries,
kept_for_buffers.

numba is loaded when a plan is made, and not before.
"""
