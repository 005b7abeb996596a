"""From a config to a run: the trainer, the run, its progress, the replay of a step."""
