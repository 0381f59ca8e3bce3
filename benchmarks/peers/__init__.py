"""Comparisons of smalto with other libraries that solve the same problems, in one process."""
