"""The text of an exercise: the file that is started, what it states, and what hints uncover."""
