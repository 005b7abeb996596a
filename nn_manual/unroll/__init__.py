"""`unroll`: the trace of a step as a script of NumPy, to be read from top to bottom.

Read the files in this order: syntax, views, forms, source, constants, expressions; loop_variables, without_out,
versions, array_names, variables; formula_words, loops, statement, statements, batch, step_inputs, layer_pieces,
layer_functions; script, formulas, wrapping, sections, page, whole_run, command.
"""
