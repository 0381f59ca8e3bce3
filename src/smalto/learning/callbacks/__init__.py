"""Callbacks: what is called after every step."""
