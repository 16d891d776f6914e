"""Behind `training_run`: options, the command line, checkpoints, files and ranks of a run."""
