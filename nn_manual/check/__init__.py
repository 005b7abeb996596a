"""The check: torch's autograd, anchored at our activations, against every value that a step computed."""
