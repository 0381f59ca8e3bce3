"""A campaign of random problems against what the library promises, judged by a referee."""
