"""The README's Model of a network, with SGD by its name, metrics, and an evaluation after each epoch."""
# package: poutyne==1.19.0
# expects: nothing
# trains: 1

import numpy as np
from poutyne import Model
from torch import nn

train_x, valid_x = (np.random.randn(size, 20).astype("float32") for size in (160, 40))
train_y, valid_y = (np.random.randint(5, size=size).astype("int64") for size in (160, 40))
network = nn.Sequential(nn.Linear(20, 16), nn.ReLU(), nn.Linear(16, 5))
model = Model(network, "sgd", "cross_entropy", batch_metrics=["accuracy"], epoch_metrics=["f1"])
model.fit(train_x, train_y, validation_data=(valid_x, valid_y), epochs=3, batch_size=32)
loss, (accuracy, f1score) = model.evaluate(valid_x, valid_y)
