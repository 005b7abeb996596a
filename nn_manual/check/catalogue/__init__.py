"""Every component of the package, checked over all kinds of input."""
