"""Alternating descent for dense non-negative codes."""
