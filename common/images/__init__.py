"""Images: reading and streaming files, the domains and the pool of a CycleGAN, sample grids."""
