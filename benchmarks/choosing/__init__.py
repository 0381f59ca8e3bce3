"""How often `select` finds the number of atoms, and how fast `consensus` is."""
