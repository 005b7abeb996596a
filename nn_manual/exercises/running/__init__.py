"""A reader's code, run in a process of its own, and what a right solution computes."""
