"""The update orders that `compare_updates.py` compares: those of the scripts, and others as people write them."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from itertools import cycle

from torch import nn

from common.losses import discriminator_loss, generator_loss
from scripts import (
    gan_detach,
    gan_generator_first,
    gan_one_stage,
    gan_r3,
    gan_resample,
    gan_retain_graph,
    gan_simultaneous,
    gan_wgan_gp,
)


@contextmanager
def frozen(network: nn.Module) -> Iterator[None]:
    """Freeze the network in the block."""
    trained = nn.ParameterList(p for p in network.parameters() if p.requires_grad)
    trained.requires_grad_(False)
    yield
    trained.requires_grad_(True)


def update(optimizer, loss):
    """Change the weights that an optimizer holds, with a plain `backward()`, which adds to all other gradients, too."""
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


def d_first(generator, discriminator, optimizer_g, optimizer_d, real, z, forward=nullcontext, backward=nullcontext):
    """Make the update of `gan_detach.py` as people write it; forward, backward: contexts of D in G's passes."""
    fake = generator(z)
    update(optimizer_d, discriminator_loss(discriminator(real), discriminator(fake.detach())))
    with forward(discriminator):
        g_loss = generator_loss(discriminator(fake))
    with backward(discriminator):
        update(optimizer_g, g_loss)


def g_first(generator, discriminator, optimizer_g, optimizer_d, real, z):
    """Make the update of `gan_generator_first.py` as people write it."""
    fake = generator(z)
    update(optimizer_g, generator_loss(discriminator(fake)))
    update(optimizer_d, discriminator_loss(discriminator(real), discriminator(fake.detach())))


def one_pass(generator, discriminator, optimizer_g, optimizer_d, real, z):
    """Make the update of `gan_simultaneous.py` with plain `backward()` calls; D is frozen in G's."""
    fake = generator(z)
    real_logits, fake_logits = discriminator(real), discriminator(fake)
    d_loss = discriminator_loss(real_logits, fake_logits)
    optimizer_d.zero_grad()
    d_loss.backward(retain_graph=True)
    g_loss = generator_loss(fake_logits)
    optimizer_g.zero_grad()
    with frozen(discriminator):
        g_loss.backward()
    optimizer_d.step()
    optimizer_g.step()


def both_losses(generator, discriminator, optimizer_g, optimizer_d, real, z, in_one_sum):
    """Make the update of `gan_simultaneous.py` with two passes of the fakes through D, frozen in G's."""
    fake = generator(z)
    real_logits, fake_logits = discriminator(real), discriminator(fake.detach())
    d_loss = discriminator_loss(real_logits, fake_logits)
    optimizer_d.zero_grad()
    with frozen(discriminator):
        g_loss = generator_loss(discriminator(fake))
    optimizer_g.zero_grad()
    for loss in [d_loss + g_loss] if in_one_sum else [d_loss, g_loss]:
        loss.backward()
    optimizer_d.step()
    optimizer_g.step()


@dataclass(frozen=True)
class Order:
    """An update order, and how its step is counted."""

    train_step: Callable
    update: str  # Name of the update that it makes, which orders may share.
    period: int = 1  # Steps after which the order repeats itself.
    critic_steps: int = 1  # Steps of D from one step of G to the next.
    is_exact: bool = False  # Whether it differentiates a penalty by a double backward.


def in_turn(*train_steps: Callable) -> Callable:
    """Return a step that is each of `train_steps` in turn."""
    turns = cycle(train_steps)
    return lambda *given: next(turns)(*given)


CRITIC, BOTH = (partial(gan_wgan_gp.train_step, train_generator=trained) for trained in (False, True))
PLAIN_CRITIC, PLAIN_BOTH = (partial(step, penalty_weight=0.0) for step in (CRITIC, BOTH))
PLAIN_R3 = partial(gan_r3.train_step, penalty_weight=0.0)
LAZY_R3 = partial(gan_r3.train_step, penalty_weight=5.0)

BASELINE, G_FIRST, ONE_PASS = "detach, textbook", "generator_first, textbook", "one pass, textbook"
ORDERS = {
    "retain_graph": Order(gan_retain_graph.train_step, "D first"),
    BASELINE: Order(d_first, "D first"),
    "D frozen after its pass": Order(partial(d_first, backward=frozen), "D first"),
    "D frozen before its pass": Order(partial(d_first, forward=frozen), "D first"),
    "detach": Order(gan_detach.train_step, "D first"),
    G_FIRST: Order(g_first, "simultaneous"),
    "generator_first": Order(gan_generator_first.train_step, "simultaneous"),
    "resample": Order(gan_resample.train_step, "resample"),
    ONE_PASS: Order(one_pass, "simultaneous"),
    "both losses, two calls": Order(partial(both_losses, in_one_sum=False), "simultaneous"),
    "both losses, one sum": Order(partial(both_losses, in_one_sum=True), "simultaneous"),
    "simultaneous": Order(gan_simultaneous.train_step, "simultaneous"),
    "one_stage": Order(gan_one_stage.train_step, "simultaneous"),
    "wgan_gp, no penalty": Order(in_turn(*[PLAIN_CRITIC] * 4, PLAIN_BOTH), "critic", 5, 5),
    "wgan_gp": Order(in_turn(*[CRITIC] * 4, BOTH), "wgan_gp", 5, 5, is_exact=True),
    "r3, no penalty": Order(PLAIN_R3, "relativistic"),
    "r3, every 5th": Order(in_turn(*[PLAIN_R3] * 4, LAZY_R3), "r3, every 5th", period=5, is_exact=True),
    "r3": Order(gan_r3.train_step, "r3", is_exact=True),
}
