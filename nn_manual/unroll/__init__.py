"""`unroll`: the trace of a step as a script of NumPy, to be read from top to bottom.

    text.py         names and expressions, the pieces of the page
    views.py        where views lie, and whether two are the same
    forms.py        the text that makes one view of another
    source.py       what the source says of an operation
    constants.py    settings by their names, and numbers as the source has them
    expressions.py  an operation as an expression
    carried.py      what local variables show in a loop over time
    versions.py     the arrays of the script: who makes, reads and writes each
    names.py        what the formulas call an array
    showing.py      which variable shows which array, from operation to operation
    saying.py       what an operation computes, in the words of its formula
    loops.py        statements that repeat, as a loop
    statement.py    a line of the step
    statements.py   from operations to statements: what becomes a line, and what a part of another one
    batch.py        what depends on the size of the batch
    given.py        what the step gets: parameters, state, noise, the numbers of the update
    functions.py    layers of one kind as functions
    script.py       the script of a step, for batches of any size
    formulas.py     the formulas of a docstring
    wrapping.py     lines that are short enough
    sections.py     the step in its sections, under its formulas
    page.py         settings, functions, and the step
    run.py          the whole run behind the step
    command.py      `unroll`: the script, proven beside the step
"""
