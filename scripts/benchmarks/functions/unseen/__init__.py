"""34 wrong and 28 right functions that were written, and fixed, before their author had read the judging code."""
