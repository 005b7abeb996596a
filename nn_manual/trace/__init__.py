"""The trace: what NumPy does in one training step, recorded, operation by operation.

To be read in this order: operation, memory, recording, functions, methods, traced, conversions, tracer, step; then what
is made of a trace: observed, substitution, comparing, replay, proving, cost.
"""
