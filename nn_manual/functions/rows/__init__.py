"""What a function goes through beside the comparison of its values: rows, one family a function, few families a file.

A family is a generator: it takes a Trial and yields a name and what to run for each of its rows. What is run returns a
note or None where the function is right, and raises Wrong or Skip. A new row is one more `yield`; a new family is one
more line in `families.FAMILIES`.
"""
