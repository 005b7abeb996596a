"""What is done with a run that has ended, or with a config alone: evaluated, sampled, summarised, replayed."""
