"""What a reader or a teacher calls: start, check, hint, solution, make, grade, and the checks of notebooks."""
