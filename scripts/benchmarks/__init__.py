"""The benchmarks: what `python scripts/benchmark.py` runs."""
