"""Measurements: the cost of a step, the networks of finished runs, a classifier of digits."""
