"""What a reader's code computed beside what is right, on a screen."""
