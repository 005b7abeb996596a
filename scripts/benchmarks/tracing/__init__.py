"""Programs of operations, drawn at random: what a trace, and what is made of one, must repeat."""
