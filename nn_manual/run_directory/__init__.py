"""What a run leaves behind: files, metrics, weights."""
