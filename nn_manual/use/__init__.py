"""What can be done with a run that has ended, or with a config alone: evaluate, predict, sample, summarise, replay."""
