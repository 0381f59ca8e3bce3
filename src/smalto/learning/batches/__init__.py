"""Batches: the samples of each step, from data sets and streams."""
