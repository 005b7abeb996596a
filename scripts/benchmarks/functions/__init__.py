"""Wrong and right backward passes of functions, and who catches which."""
