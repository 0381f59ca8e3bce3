"""Does `select` find the number of atoms, and how fast is `consensus`?"""
