"""Many processes: a batch cut into slices, each process's share of them, and the sum of their gradients."""
