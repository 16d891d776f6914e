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


def points_between(real, fake, mix):
    return torch.stack([m * x + (1 - m) * y for m, x, y in zip(mix, real, fake, strict=True)])


def judge(order, discriminator, real, fake, mix):
    """Return D's loss, and the results of the script beside the losses."""
    on_real, on_fake = discriminator(real), discriminator(fake)
    scores = {"score/real": on_real.mean(), "score/fake": on_fake.mean()}
    if order == "r3":
        on_samples = [(lengths(discriminator, samples) ** 2).mean() for samples in (real, fake)]
        d_loss = (on_fake - on_real).exp().log1p().mean() + sum(on_samples) / 2
        return d_loss, scores | dict(zip(("penalty/real", "penalty/fake"), on_samples, strict=True))
    if order == "wgan_gp":
        penalty = ((lengths(discriminator, points_between(real, fake, mix)) - 1) ** 2).mean()
        return on_fake.mean() - on_real.mean() + 10 * penalty, scores | {"penalty": penalty}
    probabilities = {"d_real": on_real.sigmoid().mean(), "d_fake": on_fake.sigmoid().mean()}
    return (bce(on_real, 1.0) + bce(on_fake, 0.0)) / 2, probabilities


def fool(order, discriminator, real, fake):
    """Return G's loss."""
    if order == "r3":
        return (discriminator(real) - discriminator(fake)).exp().log1p().mean()
    if order == "wgan_gp":
        return -discriminator(fake).mean()
    return bce(discriminator(fake), 1.0)


def step(order, generator, discriminator, optimizer_g, optimizer_d, real, z, z_g=None, mix=None):
    """Do one step of the update order; return what its script returns, which draws z_g and mix where they are None."""
    if order == "resample" and z_g is None:
        z_g = torch.randn_like(z)
    if order == "wgan_gp":
        mix = (torch.rand(len(real)) if mix is None else mix).to(real.dtype)
    fake = generator(z)

    def of_d():
        d_loss, results = judge(order, discriminator, real, fake.detach(), mix)
        return gradients(discriminator, d_loss), results | {"d_loss": d_loss}

    def of_g():
        g_loss = fool(order, discriminator, real, generator(z if z_g is None else z_g))
        return gradients(generator, g_loss), {"g_loss": g_loss}

    if order == "generator_first":
        for_g, g_results = of_g()
        apply(generator, optimizer_g, for_g)
        for_d, d_results = of_d()  # of the fakes made before G's step
        apply(discriminator, optimizer_d, for_d)
    else:
        for_d, d_results = of_d()
        if order not in ("simultaneous", "one_stage"):
            apply(discriminator, optimizer_d, for_d)
        for_g, g_results = of_g()
        if order in ("simultaneous", "one_stage"):
            apply(discriminator, optimizer_d, for_d)
        apply(generator, optimizer_g, for_g)
    return {name: value.detach() for name, value in (d_results | g_results).items()}
