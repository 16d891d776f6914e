"""Mistakes that raise no error, as changes of a few lines to `gan_detach.py`, which still trains.

`publish_runs.py --what mistakes` makes a run of each. The names are those of `python -m gradient_audit --list`, where a
mistake is in both.
"""

from dataclasses import dataclass, field

REAL = "real_logits, fake_logits = discriminator(real), discriminator(fake.detach())"
D_LOSS = "d_loss = discriminator_loss(real_logits, fake_logits)"
D_STEP = "    optimizer_d.step()\n"
D_ZERO = "    optimizer_d.zero_grad()\n"
G_LOSS = "g_loss = generator_loss(discriminator(fake))"
G_BACKWARD = "g_loss.backward(inputs=[p for p in generator.parameters() if p.requires_grad])"


@dataclass(frozen=True)
class Mistake:
    """A change to gan_detach.py that keeps it running: new text for old, and options for the command line."""

    name: str
    text: str  # what is wrong, in a phrase
    sign: str  # what its curves and samples look like beside those of `healthy`
    cure: str
    edits: dict[str, str] = field(default_factory=dict)
    arguments: tuple[str, ...] = ()

    def note(self) -> str:
        """Return the text that TensorBoard shows of this run, as Markdown."""
        compare = "tick `healthy` and one other run on the left; seed and data are the same in all"
        parts = {"Mistake": self.text, "Sign": self.sign, "Cure": self.cure, "Compare": compare}
        return "\n\n".join(f"**{title}:** {part}." for title, part in parts.items())

    def change(self, source: str) -> str:
        """Return the source with the edits; raises ValueError unless each old text is there once."""
        for old, new in self.edits.items():
            if source.count(old) != 1:
                raise ValueError(f"{self.name}: there is {source.count(old)} times {old!r} in the source")
            source = source.replace(old, new)
        return source


def penalty(keep: str) -> dict[str, str]:
    """Return the edits that add an R1 penalty to D's loss; keep: `, create_graph=True`, or nothing, the mistake."""
    added = f"""{D_LOSS}
    points = real.clone().requires_grad_()
    (slope,) = torch.autograd.grad(discriminator(points).sum(), points{keep})
    d_loss = d_loss + 5 * slope.square().sum((1, 2, 3)).mean()"""
    return {D_LOSS: added}


MISTAKES = (
    Mistake(
        "healthy",
        "none: gan_detach.py as it is",
        "D's loss is a little below 0.69, G's near 0.9; both probabilities are near 0.5; the samples are digits",
        "none is needed",
    ),
    Mistake(
        "sigmoid-twice",
        "D ends with a sigmoid, and its loss takes logits",
        "both probabilities stay above one half, and G's loss below 0.69; the samples are digits, a little worse",
        "end D with its last linear layer; the loss applies the sigmoid itself",
        {
            REAL: "real_logits, fake_logits = discriminator(real).sigmoid(), discriminator(fake.detach()).sigmoid()",
            G_LOSS: "g_loss = generator_loss(discriminator(fake).sigmoid())",
        },
    ),
    Mistake(
        "labels-broadcast",
        "labels (2N,) against logits (2N, 1): the difference is (2N, 2N)",
        "D's loss stays at 0.25 and both probabilities at 0.5: D learns the mean label; the samples are dots",
        "give labels the shape of the logits, torch.ones_like(logits), or take a loss without labels",
        {
            D_LOSS: """logits = torch.cat([real_logits, fake_logits])
    labels = torch.cat([torch.ones(len(real)), torch.zeros(len(fake))]).to(logits.device)
    d_loss = (logits.sigmoid() - labels).square().mean()"""
        },
    ),
    Mistake(
        "d-steps-on-g-loss",
        "optimizer_d.zero_grad() runs before g_loss.backward(), which fills D's gradients again",
        "D calls real and fake alike real, both at 0.75; D's loss is above 0.8 and flat, G's near 0.3",
        "call zero_grad() right before the backward pass that the step is for",
        {D_ZERO: "", D_STEP: D_STEP + D_ZERO, G_BACKWARD: "g_loss.backward()"},
    ),
    Mistake(
        "no-zero-grad",
        "zero_grad() is never called",
        "D's loss falls to 0 and G's stays high, as D(G(z)) is 0; the samples are black, or one pattern of dots",
        "call zero_grad() before each backward pass, or at the start of the step",
        {D_ZERO: "", "    optimizer_g.zero_grad()\n": ""},
    ),
    Mistake(
        "detached-fakes",
        "G's loss is computed on detached fakes",
        "D's loss falls to 0 and G's rises without end, D(G(z)) is 0; the samples are the first noise: G never moves",
        "detach the fakes in D's loss alone; compute G's loss on discriminator(fake)",
        {G_LOSS: "g_loss = generator_loss(discriminator(fake.detach()))", G_BACKWARD: "g_loss.backward()"},
    ),
    Mistake(
        "r1-penalty",
        "none: R1 penalty on D, as it should be",
        "D's loss is flat at 0.69, both probabilities at 0.5: this weight holds D back",
        "none is needed; compare with `penalty-without-graph`",
        penalty(", create_graph=True"),
    ),
    Mistake(
        "penalty-without-graph",
        "R1 penalty without create_graph=True: a constant for autograd",
        "D's loss is higher by the penalty, which grows; all other curves are those of `healthy`, to the bit",
        "pass create_graph=True to torch.autograd.grad",
        penalty(""),
    ),
    Mistake(
        "d-too-fast",
        "D's learning rate is 20 times the default",
        "D's loss is 0.69 or more for 300 steps; the FID is nearly twice that of `healthy`",
        "lower `--lr-d`; D's rate is G's by default",
        arguments=("--lr-d", "0.1"),
    ),
    Mistake(
        "g-too-fast",
        "G's learning rate is 20 times the default",
        "D's loss falls to 0 and G's rises without end, as D(G(z)) is 0; the samples are black",
        "lower `--lr`; judge the samples, not the losses",
        arguments=("--lr", "0.1", "--lr-d", "0.005"),
    ),
    Mistake(
        "images-in-0-1",
        "real images in [0, 1], G's output in [-1, 1]",
        "none in the curves; the samples are grey where digits are black, as the real images that D saw",
        "scale real images to [-1, 1], the range of G's output",
        {"    fake = generator(z)\n": "    fake, real = generator(z), (real + 1) / 2\n"},
    ),
)
