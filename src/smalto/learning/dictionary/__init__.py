"""Updates and replacement of atoms."""
