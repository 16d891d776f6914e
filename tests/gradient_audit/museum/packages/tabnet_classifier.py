"""The README's TabNetClassifier: gradients set to None by hand, and clipped; a BatchNorm is never called."""
# package: pytorch-tabnet==4.1.0
# expects: question unreached at "self._optimizer.step()"
# trains: 1

import numpy as np
from pytorch_tabnet.tab_model import TabNetClassifier

draw = np.random.default_rng(0)
X_train, X_valid = draw.normal(size=(256, 8)).astype(np.float32), draw.normal(size=(64, 8)).astype(np.float32)
y_train, y_valid = (X_train[:, 0] > 0).astype(int), (X_valid[:, 0] > 0).astype(int)

clf = TabNetClassifier(n_d=4, n_a=4, verbose=0)
clf.fit(X_train, y_train, eval_set=[(X_valid, y_valid)], max_epochs=3, batch_size=64, virtual_batch_size=32)
clf.predict(X_valid)
