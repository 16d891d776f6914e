"""Images from files: reading, streaming, domains of a CycleGAN, and pictures to show."""
