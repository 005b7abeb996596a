"""Why a gradient is wrong: changes of the right formula, until one gives the reader's numbers."""
