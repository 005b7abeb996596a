"""Pairs and classes as students write them, right and wrong, by topic."""
