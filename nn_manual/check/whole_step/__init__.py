"""A whole step, checked at once: every value, clipping, the update, and what steps have shown so far."""
