"""Within a backward pass, another thread makes a whole step of its own network: neither has to do with the other."""
# expects: nothing

import threading

import torch
from torch import nn
from torch.optim import SGD

first, second = nn.Linear(4, 4), nn.Linear(4, 4)
optimizer_first, optimizer_second = SGD(first.parameters(), lr=0.1), SGD(second.parameters(), lr=0.1)
asked, done = threading.Semaphore(0), threading.Semaphore(0)


def other():
    while asked.acquire():
        answer = second(torch.randn(5, 4))
        optimizer_second.zero_grad()
        answer.square().mean().backward()
        optimizer_second.step()
        done.release()


def meanwhile(_gradient):
    asked.release()
    done.acquire(timeout=1)


threading.Thread(target=other, daemon=True).start()
for _ in range(20):
    output = first(torch.randn(5, 4))
    output.register_hook(meanwhile)
    loss = nn.functional.cross_entropy(output, torch.randint(4, (5,)))
    optimizer_first.zero_grad()
    loss.backward()
    optimizer_first.step()
