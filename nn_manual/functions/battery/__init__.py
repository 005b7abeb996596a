"""The battery that a function goes through after the comparison of its values: rows, in families.

A family is a generator: it takes a Trial, and yields a name and a function to run for each of its rows. That function
returns a note or None if the checked function is right; otherwise it raises Wrong or Skip. A new row is one more
`yield`; a new family is one more line in `families.FAMILIES`.
"""
