"""The trace: what NumPy does in one training step, recorded, operation by operation.

Read the files in this order: trace, storages, operation_log, numpy_functions, methods, traced, conversions, tracer,
step_arrays, traced_step, step. Then come the files that work with a trace: observed, substitution, comparing,
numpy_replay, proving, step_cost.
"""
