"""Steps in slices: each of them, their sum, what the processes have in the end."""
