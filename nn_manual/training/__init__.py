"""The training step, epochs of it, and what watches over both: evaluation, numbers that are not finite."""
