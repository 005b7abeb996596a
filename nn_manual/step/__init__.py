"""One training step: its stages; a batch cut into slices, the sum of their gradients, the processes that share them."""
