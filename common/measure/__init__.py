"""What measuring takes: the cost of a step, finished runs, a classifier of digits."""
