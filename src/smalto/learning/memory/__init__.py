"""The state of a run: statistics, stored codes and records."""
