"""What a run leaves behind: its files, written whole, and read with suspicion."""
