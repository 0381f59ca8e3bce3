"""How atoms are updated and replaced."""
