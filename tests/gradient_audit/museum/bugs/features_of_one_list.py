"""A hook appends features of teacher and student to one list, of which both sides are read: the term is 0."""
# expects: question dead at "distance = "
# cure: "features_of_teacher = features" -> "features_of_teacher = [*features]; features.clear()"

import torch
from torch import nn
from torch.optim import Adam

teacher = nn.Sequential(nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 3)).requires_grad_(False)
student = nn.Sequential(nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 3))
features = []
for network in (teacher, student):
    network[1].register_forward_hook(lambda module, inputs, output: features.append(output))
optimizer = Adam(student.parameters())
for _ in range(20):
    batch, labels = torch.randn(8, 8), torch.randint(3, (8,))
    features.clear()
    teacher(batch)
    features_of_teacher = features
    scores = student(batch)
    distance = 100 * nn.functional.mse_loss(features[0], features_of_teacher[0])
    loss = nn.functional.cross_entropy(scores, labels) + distance
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
