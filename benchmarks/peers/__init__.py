"""smalto beside the libraries that solve the same problems, on one machine, in one process."""
