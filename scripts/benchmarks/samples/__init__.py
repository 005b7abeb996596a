"""torch's own samples of its modules and optimizers, run by our classes of the same names."""
