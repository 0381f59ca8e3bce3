"""Where the samples of each step come from."""
