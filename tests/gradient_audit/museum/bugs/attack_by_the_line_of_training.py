"""A method goes backward for an attack and for training: the gradients of the attack stay, and the step adds them."""
# expects: question reused at "loss.backward()"
# cure: "self.attack(images, labels)" -> "self.attack(images, labels)\n        self.optimizer.zero_grad()"

import torch
from torch import nn
from torch.nn import functional as losses


class Trainer:
    def __init__(self):
        self.network = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 3))
        self.optimizer = torch.optim.SGD(self.network.parameters(), lr=0.1)

    def backward(self, loss):
        loss.backward()

    def attack(self, images, labels):
        for _ in range(3):
            images = images.detach().requires_grad_()
            self.backward(losses.cross_entropy(self.network(images), labels))
            images = images + 0.1 * images.grad.sign()
        return images.detach()

    def step(self, images, labels):
        self.optimizer.zero_grad()
        moved = self.attack(images, labels)
        self.backward(losses.cross_entropy(self.network(moved), labels))
        self.optimizer.step()


trainer = Trainer()
for _ in range(5):
    trainer.step(torch.randn(8, 6), torch.randint(3, (8,)))
