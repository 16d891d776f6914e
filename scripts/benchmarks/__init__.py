"""What the figures and runs of this repository are made with."""
