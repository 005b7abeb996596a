"""One step: what ran, and what torch makes of the same."""
