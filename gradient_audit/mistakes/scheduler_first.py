"""The scheduler steps before the optimizer."""

MESSAGES = ("lr_scheduler.step() before optimizer.step()", "lr_scheduler.step() before the optimizer's step()")
NOT_RUN = "PyTorch only warns, and leaves out the first learning rate."
WHY = "No optimizer.step() ran before scheduler.step(): the order is reversed, or GradScaler skipped the first step."
CURE = "optimizer.step(), then scheduler.step(); after a step that the scaler has skipped, not the scheduler's either."
