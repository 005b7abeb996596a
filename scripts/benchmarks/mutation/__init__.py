"""How good the check is: mistakes planted on purpose, and training in which there is none."""
