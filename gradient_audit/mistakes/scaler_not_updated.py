"""scaler.update() is missing after scaler.step()."""

MESSAGES = ("step() has already been called since the last update()",)
NOT_RUN = "It is the mistake unscaled-twice, with step() in the place of unscale_()."
WHY = "The scaler notes that it has stepped until update(), which also changes the scale; so each step needs one."
CURE = "scaler.update() once in each iteration, after all its scaler.step(), also if one was skipped."
