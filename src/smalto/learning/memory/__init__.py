"""What a run remembers: its state, statistics, codes and records."""
