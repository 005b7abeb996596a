"""`unroll`: the trace of a step as a script of NumPy, to be read from top to bottom.

To be read in this order: text, views, forms, source, constants, expressions; loop_variables, versions, names, then
variables; formula_words, loops, statement, statements, batch, step_inputs, functions; script, formulas, wrapping,
sections, page, run, command.
"""
