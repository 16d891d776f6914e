"""Each layer has an optimizer of its own and is trained in a method of its own, in turn: a column for each."""
# expects: waste graph at "return self(x).detach()"
# networks: layer, self.layers[1]

import torch
from torch import nn


class Layer(nn.Linear):
    def __init__(self, inputs, outputs):
        super().__init__(inputs, outputs)
        self.optimizer = torch.optim.Adam(self.parameters(), lr=0.03)

    def train(self, x):
        for _ in range(4):
            loss = torch.relu(self(x)).pow(2).mean()
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
        return self(x).detach()


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = []
        for _ in range(2):
            self.layers += [Layer(6, 6)]

    def train(self, x):
        for layer in self.layers:
            x = layer.train(x)


Net().train(torch.randn(4, 6))
