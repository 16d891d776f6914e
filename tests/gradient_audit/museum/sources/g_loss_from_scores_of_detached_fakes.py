"""G's loss takes D's scores of the detached fakes: their graph ends there, and D's loss has freed it.

https://www.cnblogs.com/LXP-Never/p/13951578.html
"""
# printed: fakes_judged_again.txt
# expects: error freed at "pred_gen = discriminator("
# expects: mistake detached-fakes at "g_loss.backward()"
# cure: "adversarial_loss(pred_gen, valid)" -> "adversarial_loss(discriminator(generator(z)), valid)"

import torch
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"
generator = nn.Sequential(nn.Linear(100, 4), nn.Tanh()).to(device)
discriminator = nn.Sequential(nn.Linear(4, 5), nn.LeakyReLU(0.2), nn.Linear(5, 1)).to(device)
optimizer_G = torch.optim.Adam(generator.parameters(), lr=2e-4)
optimizer_D = torch.optim.Adam(discriminator.parameters(), lr=2e-4)
adversarial_loss = nn.BCEWithLogitsLoss()

for imgs in torch.randn(5, 6, 4):
    valid = torch.Tensor(imgs.size(0), 1).fill_(1.0).to(device)
    fake = torch.Tensor(imgs.size(0), 1).fill_(0.0).to(device)

    real_imgs = imgs.to(device)
    z = torch.randn((imgs.shape[0], 100)).to(device)

    gen_imgs = generator(z)
    pred_gen = discriminator(gen_imgs.detach())
    pred_real = discriminator(real_imgs)

    optimizer_D.zero_grad()
    real_loss = adversarial_loss(pred_real, valid)
    fake_loss = adversarial_loss(pred_gen, fake)
    d_loss = (real_loss + fake_loss) / 2

    d_loss.backward()
    optimizer_D.step()

    g_loss = adversarial_loss(pred_gen, valid)
    optimizer_G.zero_grad()
    g_loss.backward()
    optimizer_G.step()
