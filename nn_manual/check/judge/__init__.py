"""What a difference means: a wrong formula, rounding, or nothing proven."""
