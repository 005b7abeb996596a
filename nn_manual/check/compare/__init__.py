"""How far two arrays lie apart: one pair in full, many at once, large ones a block at a time."""
