"""What the figures and runs of this repository are made with, and a walk through every gradient of the smallest GAN."""
