"""What a difference means: a wrong formula, rounding, conduct, or nothing proven."""
