"""A step whose batch is cut into slices, on one process or on several: the parts, their sums, the processes."""
