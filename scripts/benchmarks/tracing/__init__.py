"""Random programs of operations, which a trace, and everything that is made from one, must repeat."""
