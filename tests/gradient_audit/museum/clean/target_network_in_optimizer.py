"""A DQN's target network is a part of the agent, so the optimizer holds it; it has no gradient, and is synchronised."""
# expects: question unreached at "optimizer.step()"

import torch
from torch import nn


class Agent(nn.Module):
    def __init__(self):
        super().__init__()
        self.online, self.target = nn.Linear(4, 2), nn.Linear(4, 2)
        self.synchronise()

    def synchronise(self):
        self.target.load_state_dict(self.online.state_dict())


agent = Agent()
optimizer = torch.optim.Adam(agent.parameters())
for step in range(8):
    state, action, reward, following = torch.randn(8, 4), torch.randint(2, (8, 1)), torch.randn(8), torch.randn(8, 4)
    with torch.no_grad():
        goal = reward + 0.99 * agent.target(following).amax(1)
    loss = nn.functional.mse_loss(agent.online(state).gather(1, action)[:, 0], goal)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 4 == 0:
        agent.synchronise()
