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


def lengths(discriminator, samples):
    """Return |dD/dx| of each sample, (N,), one sample at a time, with the graph to D's weights."""
    found = []
    for sample in samples.detach():
        leaf = sample[None].clone().requires_grad_()
        (slope,) = torch.autograd.grad(discriminator(leaf).sum(), leaf, create_graph=True)
        found.append((slope * slope).sum().sqrt())
    return torch.stack(found)


def r3(generator, discriminator, optimizer_g, optimizer_d, real, z, penalty_weight=1.0):
    """Do one step of `gan_r3.py`; return what that returns."""
    fake = generator(z)
    scores = discriminator(real), discriminator(fake.detach())
    penalties = [(lengths(discriminator, samples) ** 2).mean() for samples in (real, fake)]
    d_loss = (scores[1] - scores[0]).exp().log1p().mean() + penalty_weight * sum(penalties) / 2
    apply(discriminator, optimizer_d, gradients(discriminator, d_loss))
    g_loss = (discriminator(real) - discriminator(fake)).exp().log1p().mean()
    apply(generator, optimizer_g, gradients(generator, g_loss))
    names = "d_loss", "g_loss", "score/real", "score/fake", "penalty/real", "penalty/fake"
    values = d_loss, g_loss, *(score.mean() for score in scores), *penalties
    return {name: value.detach() for name, value in zip(names, values, strict=True)}


def wgan_gp(generator, discriminator, optimizer_g, optimizer_d, real, z, mix=None, penalty_weight=10.0):
    """Do one step of `gan_wgan_gp.py` with both networks; return what that returns."""
    fake = generator(z)
    mix = (torch.rand(len(real)) if mix is None else mix).to(real.dtype)
    between = torch.stack([m * x + (1 - m) * y for m, x, y in zip(mix, real, fake, strict=True)])
    scores = discriminator(real).mean(), discriminator(fake.detach()).mean()
    penalty = ((lengths(discriminator, between) - 1) ** 2).mean()
    d_loss = scores[1] - scores[0] + penalty_weight * penalty
    apply(discriminator, optimizer_d, gradients(discriminator, d_loss))
    g_loss = -discriminator(fake).mean()
    apply(generator, optimizer_g, gradients(generator, g_loss))
    names = "d_loss", "g_loss", "score/real", "score/fake", "penalty"
    return {name: value.detach() for name, value in zip(names, (d_loss, g_loss, *scores, penalty), strict=True)}


def step(order, generator, discriminator, optimizer_g, optimizer_d, real, z, drawn=None):
    """Do one step of the update order; return what its script returns.

    drawn: G's noise for `resample`, the mix for `wgan_gp`; None draws it.
    """
    if order == "r3":
        return r3(generator, discriminator, optimizer_g, optimizer_d, real, z)
    if order == "wgan_gp":
        return wgan_gp(generator, discriminator, optimizer_g, optimizer_d, real, z, drawn)
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
            z = torch.randn_like(z) if drawn is None else drawn
        g_loss = fooled(z)
        apply(generator, optimizer_g, gradients(generator, g_loss))
    results = {"d_loss": d_loss, "g_loss": g_loss, "d_real": d_real, "d_fake": d_fake}
    return {name: value.detach() for name, value in results.items()}
