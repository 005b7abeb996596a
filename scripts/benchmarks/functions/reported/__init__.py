"""26 wrong functions after public reports and 32 right ones, written beside the judging code."""
