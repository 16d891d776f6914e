"""Mistakes in a GAN's training loop that raise no error, each as a change to `scripts/gan_detach.py`."""

from dataclasses import dataclass

from common.run.options import GanOptions

REAL = "real_logits, fake_logits = discriminator(real), discriminator(fake.detach())"
D_LOSS = "d_loss = discriminator_loss(real_logits, fake_logits)"
G_LOSS = "g_loss = generator_loss(discriminator(fake))"
D_ZERO = "    optimizer_d.zero_grad()\n"
G_ZERO = "    optimizer_g.zero_grad()\n"
D_BACKWARD = "d_loss.backward()"
G_BACKWARD = "g_loss.backward(inputs=[p for p in generator.parameters() if p.requires_grad])"
MAKE_D = "optimizer_d = fused_adam(discriminator.parameters(), lr_d, options.betas)"
PLACED = "generator, discriminator = (run.place(network) for network in networks)"
R1 = """(slope,) = torch.autograd.grad(discriminator(points).sum(), points{keep})
    d_loss = d_loss + 5 * slope.square().sum((1, 2, 3)).mean()"""


@dataclass(frozen=True)
class Mistake:
    """A change to gan_detach.py that keeps it running: pairs of old and new text, and options for the command line."""

    name: str
    text: str  # what is wrong, in a phrase
    edits: tuple[tuple[str, str], ...] = ()
    arguments: tuple[str, ...] = ()

    def apply(self, source: str) -> str:
        """Return the source of gan_detach.py with this mistake; raises ValueError where the text to replace is not."""
        for old, new in self.edits:
            if source.count(old) != 1:
                raise ValueError(f"{self.name}: gan_detach.py has {source.count(old)} times {old!r}")
            source = source.replace(old, new)
        return source


RATE = GanOptions().lr  # of G; D has a third of it
IMPORT = ("from torch.optim.swa_utils", "import torch\nfrom torch.optim.swa_utils")


def penalty(keep: str) -> tuple[tuple[str, str], ...]:
    """Return the edits that add an R1 penalty to D's loss; keep: `, create_graph=True`, or nothing, the mistake."""
    added = f"{D_LOSS}\n    points = real.clone().requires_grad_()\n    {R1.format(keep=keep)}"
    return (IMPORT, (D_LOSS, added))


def batch_norm(then: str = "") -> tuple[tuple[str, str], ...]:
    """Return the edits that give G batch normalisation; then: a statement to add once the networks are placed."""
    return (IMPORT, ("def train_step(", MAKE_NETWORKS + "\n\ndef train_step("), MODEL, (PLACED, PLACED + then))


MODEL = ("MODELS[options.model](", "make_networks(")
MAKE_NETWORKS = """def make_networks(image_shape, z_dim):
    generator, discriminator = MODELS["conv"](image_shape, z_dim)
    for name, layer in list(generator.named_modules()):
        if isinstance(layer, torch.nn.GroupNorm):
            generator.set_submodule(name, torch.nn.BatchNorm2d(layer.num_channels))
    return generator, discriminator
"""

MISTAKES = (
    Mistake("healthy", "none: gan_detach.py as it is"),
    Mistake(
        "sigmoid-twice",
        "D ends with a sigmoid, and its loss takes logits",
        (
            (REAL, "real_logits, fake_logits = discriminator(real).sigmoid(), discriminator(fake.detach()).sigmoid()"),
            (G_LOSS, "g_loss = generator_loss(discriminator(fake).sigmoid())"),
        ),
    ),
    Mistake(
        "labels-broadcast",
        "labels (2N,) against logits (2N, 1): the difference is (2N, 2N)",
        (
            IMPORT,
            (
                D_LOSS,
                "logits = torch.cat([real_logits, fake_logits])\n"
                "    labels = torch.cat([torch.ones(len(real)), torch.zeros(len(fake))]).to(logits.device)\n"
                "    d_loss = (logits.sigmoid() - labels).square().mean()",
            ),
        ),
    ),
    Mistake(
        "d-steps-on-g-loss",
        "optimizer_d.zero_grad() runs before g_loss.backward(), which fills D's gradients again",
        (
            (D_ZERO, ""),
            ("    optimizer_d.step()\n", "    optimizer_d.step()\n    optimizer_d.zero_grad()\n"),
            (G_BACKWARD, "g_loss.backward()"),
        ),
    ),
    Mistake("no-zero-grad", "zero_grad() is never called", ((D_ZERO, ""), (G_ZERO, ""))),
    Mistake(
        "detached-fakes",
        "G's loss is computed on detached fakes",
        ((G_LOSS, "g_loss = generator_loss(discriminator(fake.detach()))"), (G_BACKWARD, "g_loss.backward()")),
    ),
    Mistake(
        "stale-graph",
        "G's loss uses logits from before D's step; D's plain fused optimizer hides it",
        (
            IMPORT,
            (REAL, "real_logits, fake_logits = discriminator(real), discriminator(fake)"),
            (D_BACKWARD, "d_loss.backward(retain_graph=True)"),
            (G_LOSS, "g_loss = generator_loss(fake_logits)"),
            (MAKE_D, "optimizer_d = torch.optim.Adam(discriminator.parameters(), lr_d, options.betas, fused=True)"),
        ),
    ),
    Mistake("r1-penalty", "none: R1 penalty on D, as it should be", penalty(", create_graph=True")),
    Mistake("penalty-without-graph", "R1 penalty without create_graph=True: a constant for autograd", penalty("")),
    Mistake("d-too-fast", "D's learning rate is 20 times the default", arguments=("--lr-d", f"{20 * RATE / 3:g}")),
    Mistake(
        "g-too-fast",
        "G's learning rate is 20 times the default",
        arguments=("--lr", f"{20 * RATE:g}", "--lr-d", f"{RATE / 3:g}"),
    ),
    Mistake(
        "images-in-0-1",
        "real images in [0, 1], G's output in [-1, 1]",
        (("    fake = generator(z)\n", "    fake, real = generator(z), (real + 1) / 2\n"),),
    ),
    Mistake("batch-norm", "none: batch normalisation in G", batch_norm()),
    Mistake(
        "eval-left-on",
        "G with batch normalisation is in evaluation mode while it trains",
        batch_norm("\n    generator.eval()"),
    ),
)
