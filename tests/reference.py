"""A reference for every update order, written with `torch.autograd.grad` and label tensors."""

import torch
import torch.nn.functional as F


def gradients(network, loss):
    """Return the gradient of `loss` for each parameter of `network`, None where it is frozen or not reached."""
    asked = [p for p in network.parameters() if p.requires_grad]
    found = dict(zip(asked, torch.autograd.grad(loss, asked, allow_unused=True), strict=True))
    return [found.get(p) for p in network.parameters()]


def apply(network, optimizer, gradients):
    """Let `optimizer` step on these gradients of `network`."""
    for parameter, gradient in zip(network.parameters(), gradients, strict=True):
        parameter.grad = gradient
    optimizer.step()


def bce(logits, label):
    """Return the binary cross-entropy of what `logits` say with one label for all of them."""
    probability = logits.sigmoid()
    return F.binary_cross_entropy(probability, torch.full_like(probability, label))


def step(order, generator, discriminator, optimizer_g, optimizer_d, real, z, z_g=None):
    """Do one step of the update order; return the losses and mean probabilities that its script returns."""
    fake = generator(z)

    def judged():
        real_logits, fake_logits = discriminator(real), discriminator(fake.detach())
        d_loss = (bce(real_logits, 1.0) + bce(fake_logits, 0.0)) / 2
        return d_loss, real_logits.sigmoid().mean(), fake_logits.sigmoid().mean()

    def fooled(z):
        return bce(discriminator(generator(z)), 1.0)

    if order in ("simultaneous", "one_stage"):
        (d_loss, d_real, d_fake), g_loss = judged(), fooled(z)
        for_d, for_g = gradients(discriminator, d_loss), gradients(generator, g_loss)
        apply(discriminator, optimizer_d, for_d)
        apply(generator, optimizer_g, for_g)
    elif order == "generator_first":
        g_loss = fooled(z)
        apply(generator, optimizer_g, gradients(generator, g_loss))
        d_loss, d_real, d_fake = judged()  # of the fakes made before G's step
        apply(discriminator, optimizer_d, gradients(discriminator, d_loss))
    else:
        d_loss, d_real, d_fake = judged()
        apply(discriminator, optimizer_d, gradients(discriminator, d_loss))
        if order == "resample":
            z = torch.randn_like(z) if z_g is None else z_g
        g_loss = fooled(z)
        apply(generator, optimizer_g, gradients(generator, g_loss))
    results = {"d_loss": d_loss, "g_loss": g_loss, "d_real": d_real, "d_fake": d_fake}
    return {name: value.detach() for name, value in results.items()}
