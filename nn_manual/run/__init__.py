"""The life of a run: its start, its progress, its checkpoints, and how it goes on."""
