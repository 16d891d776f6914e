"""Keras on PyTorch: compile() and fit(), with Keras's own Adam."""
# package: keras==3.15.1
# expects: nothing
# trains: 1

import os

os.environ["KERAS_BACKEND"] = "torch"

import keras
import numpy as np

model = keras.Sequential([keras.layers.Dense(16, activation="relu"), keras.layers.Dense(1)])
model.compile(optimizer="adam", loss="mse")
draw = np.random.default_rng(0)
model.fit(draw.normal(size=(64, 8)), draw.normal(size=(64, 1)), batch_size=8, epochs=2, verbose=0)
