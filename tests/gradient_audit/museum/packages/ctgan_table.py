"""The README's usage: CTGAN fits a table. D's fakes are not detached: its passes fill G's gradients, which G clears."""
# package: ctgan==0.12.1
# expects: waste wasted at "loss_d.backward()"
# expects: waste wasted at "loss_g.backward()"
# expects: waste wasted at "pen.backward(retain_graph=True)"

import numpy as np
import pandas as pd
from ctgan import CTGAN

draw = np.random.default_rng(0)
size = 200
work, income = draw.choice(["private", "state"], size), draw.choice(["<=50K", ">50K"], size)
real_data = pd.DataFrame({"age": draw.normal(40, 10, size), "workclass": work, "income": income})

ctgan = CTGAN(epochs=10, batch_size=100, generator_dim=(32, 32), discriminator_dim=(32, 32))
ctgan.fit(real_data, ["workclass", "income"])
ctgan.sample(10)
