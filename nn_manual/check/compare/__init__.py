"""How far two arrays lie apart, one pair, many at once, or a block at a time; and how far they may."""
