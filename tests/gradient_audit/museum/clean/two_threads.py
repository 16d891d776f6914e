"""Two threads train a network each, at the same time."""
# expects: nothing

import threading

import torch
from torch import nn
from torch.optim import SGD


def train(network, optimizer):
    for _ in range(20):
        loss = nn.functional.cross_entropy(network(torch.randn(5, 4)), torch.randint(4, (5,)))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


first, second = nn.Linear(4, 4), nn.Linear(4, 4)
optimizer_first, optimizer_second = SGD(first.parameters(), lr=0.1), SGD(second.parameters(), lr=0.1)
thread = threading.Thread(target=train, args=(second, optimizer_second), daemon=True)
thread.start()
train(first, optimizer_first)
thread.join()
