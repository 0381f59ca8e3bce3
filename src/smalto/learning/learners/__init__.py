"""Learners: online, batch, and stochastic gradient descent."""
