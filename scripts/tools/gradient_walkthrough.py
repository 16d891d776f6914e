"""The one-weight GAN: every gradient and every weight after every call, beside the same number worked out by hand.

G(x) = theta_G x and D(y) = theta_D y are 1x1 convolutions with one weight each. With y = G(x), L_D = D(y.detach())^2
and L_G = D(y)^2, each gradient is a formula of a few symbols. Two right update orders and two mistakes run here on the
installed PyTorch, each next to its formulas in plain Python arithmetic.

    python scripts/tools/gradient_walkthrough.py
"""

import shutil
import textwrap
from dataclasses import dataclass
from typing import NamedTuple

import torch
import tyro
from torch import nn

X, THETA_G, THETA_D, LEARNING_RATE = 1.0, 0.5, 0.7, 1.0
COLUMNS = ("grad G", "grad D", "weight G", "weight D")


class ByHand(NamedTuple):
    """A number worked out by hand: in symbols, with numbers in their place, and its value in plain Python floats."""

    symbols: str
    numbers: str
    value: float


@dataclass(frozen=True)
class Checkpoint:
    """What PyTorch holds after a call, by column; a gradient never computed is None.

    `by_hand` has the columns that the call is to change.
    """

    after: str
    values: dict[str, float | None]
    by_hand: dict[str, ByHand]


@dataclass(frozen=True)
class Way:
    """A run of the one-weight GAN: its checkpoints in order, the error that ended it if one did, and what to see."""

    title: str
    checkpoints: list[Checkpoint]
    lesson: str
    error: str | None = None


def grad_d_by_hand(y: float, theta_d: float) -> ByHand:
    """dL_D/dtheta_D, for L = (theta_D y)^2."""
    return ByHand("2 y^2 theta_D", f"2 * {y:g}^2 * {theta_d:g}", 2 * y**2 * theta_d)


def grad_g_by_hand(x: float, y: float, theta_d: float) -> ByHand:
    """dL_G/dtheta_G, for L = (theta_D theta_G x)^2 and y = theta_G x."""
    return ByHand("2 y theta_D^2 x", f"2 * {y:g} * {theta_d:g}^2 * {x:g}", 2 * y * theta_d**2 * x)


def sum_by_hand(before: float, added: ByHand) -> ByHand:
    """backward() adds to the gradient that is already there."""
    return ByHand(f"grad D before + {added.symbols}", f"{before:g} + {added.numbers}", before + added.value)


def step_by_hand(network: str, theta: float, grad: float) -> ByHand:
    """One step of SGD."""
    symbols = f"theta_{network} - lr grad {network}"
    return ByHand(symbols, f"{theta:g} - {LEARNING_RATE:g} * {grad:g}", theta - LEARNING_RATE * grad)


class OneWeightGAN:
    """G and D, an SGD optimizer for each, the input x of shape (1, 1, 1, 1), and the checkpoints taken so far."""

    def __init__(self):
        """Set the weights, and note them as the first checkpoint."""
        self.x = torch.full((1, 1, 1, 1), X)
        self.generator, self.discriminator = (nn.Conv2d(1, 1, kernel_size=1, bias=False) for _ in "GD")
        nn.init.constant_(self.generator.weight, THETA_G)
        nn.init.constant_(self.discriminator.weight, THETA_D)
        self.optimizer_g = torch.optim.SGD(self.generator.parameters(), lr=LEARNING_RATE)
        self.optimizer_d = torch.optim.SGD(self.discriminator.parameters(), lr=LEARNING_RATE)
        self.checkpoints = []
        self.checkpoint("start", {})

    def checkpoint(self, after: str, by_hand: dict[str, ByHand]):
        """Note both gradients and both weights as they are now."""
        weights = self.generator.weight, self.discriminator.weight
        grads = [None if weight.grad is None else weight.grad.item() for weight in weights]
        values = dict(zip(COLUMNS, [*grads, *(weight.item() for weight in weights)], strict=True))
        self.checkpoints.append(Checkpoint(after, values, by_hand))


def way_one(freeze: bool = True) -> Way:
    """Both losses go backward before either network steps; `freeze` keeps G's loss out of D's gradient."""
    gan = OneWeightGAN()
    fake = gan.generator(gan.x)
    d_loss = gan.discriminator(fake.detach()) ** 2
    g_loss = gan.discriminator(fake) ** 2
    y = THETA_G * X

    d_loss.backward()
    grad_d = grad_d_by_hand(y, THETA_D)
    gan.checkpoint("L_D.backward()", {"grad D": grad_d})

    gan.discriminator.requires_grad_(not freeze)
    g_loss.backward()
    gan.discriminator.requires_grad_(True)
    grad_g = grad_g_by_hand(X, y, THETA_D)
    by_hand = {"grad G": grad_g}
    if not freeze:
        grad_d = by_hand["grad D"] = sum_by_hand(grad_d.value, grad_d_by_hand(y, THETA_D))
    gan.checkpoint("L_G.backward()", by_hand)

    gan.optimizer_g.step()
    gan.checkpoint("optimizer_g.step()", {"weight G": step_by_hand("G", THETA_G, grad_g.value)})
    gan.optimizer_d.step()
    weight_d = step_by_hand("D", THETA_D, grad_d.value)
    gan.checkpoint("optimizer_d.step()", {"weight D": weight_d})

    if freeze:
        return Way(
            "Way one: both losses from the same weights, D frozen while L_G goes backward",
            gan.checkpoints,
            "G answers D as it was before D's step; which of the two steps first makes no difference. Frozen after the "
            "forward pass, as here, D's gradient is still computed and then dropped: L_G.backward(inputs=[theta_G]) "
            "gives the same numbers without that work.",
        )
    alone = step_by_hand("D", THETA_D, grad_d_by_hand(y, THETA_D).value)
    return Way(
        "Way one, D not frozen: wrong, and silent",
        gan.checkpoints,
        f"L_G goes backward through D and adds to D's gradient. D steps on both losses and lands on "
        f"{weight_d.value:.4f}; its own loss would have taken it to {alone.value:.4f}.",
    )


def way_two() -> Way:
    """D steps first; then a fresh D(G(x)) for G."""
    gan = OneWeightGAN()
    fake = gan.generator(gan.x)
    y = THETA_G * X

    d_loss = gan.discriminator(fake.detach()) ** 2
    d_loss.backward()
    grad_d = grad_d_by_hand(y, THETA_D)
    gan.checkpoint("L_D.backward()", {"grad D": grad_d})
    gan.optimizer_d.step()
    theta_d = step_by_hand("D", THETA_D, grad_d.value)
    gan.checkpoint("optimizer_d.step()", {"weight D": theta_d})

    g_loss = gan.discriminator(fake) ** 2
    g_loss.backward()
    grad_g = grad_g_by_hand(X, y, theta_d.value)
    added = sum_by_hand(grad_d.value, grad_d_by_hand(y, theta_d.value))
    gan.checkpoint("L_G.backward()", {"grad G": grad_g, "grad D": added})
    gan.optimizer_g.step()
    gan.checkpoint("optimizer_g.step()", {"weight G": step_by_hand("G", THETA_G, grad_g.value)})
    return Way(
        "Way two: D learns and steps, then judges the same fake again for G",
        gan.checkpoints,
        "G answers the D just updated. What L_G adds to D's gradient does no harm as long as D's zero_grad() comes "
        "before D's next backward().",
    )


def stale_graph(hide_step: bool = False) -> Way:
    """D steps between computing L_G and its backward pass; `hide_step` makes the step one that autograd cannot see."""
    gan = OneWeightGAN()
    fake = gan.generator(gan.x)
    d_loss = gan.discriminator(fake.detach()) ** 2
    g_loss = gan.discriminator(fake) ** 2
    y = THETA_G * X

    d_loss.backward()
    grad_d = grad_d_by_hand(y, THETA_D)
    gan.checkpoint("L_D.backward()", {"grad D": grad_d})
    theta_d = step_by_hand("D", THETA_D, grad_d.value)
    if hide_step:
        gan.discriminator.weight.data -= LEARNING_RATE * gan.discriminator.weight.grad
        gan.checkpoint("D's step, by .data", {"weight D": theta_d})
    else:
        gan.optimizer_d.step()
        gan.checkpoint("optimizer_d.step()", {"weight D": theta_d})

    title = "The stale graph: L_G computed before D's step, its backward() after"
    try:
        g_loss.backward()
    except RuntimeError as error:
        lesson = (
            "The way back to G leads through theta_D as it was in the forward pass, but the step has overwritten it. "
            "PyTorch counts the changes of every tensor and refuses. Compute L_G after D's step, as way two does."
        )
        return Way(title, gan.checkpoints, lesson, error=f"{type(error).__name__}: {error}")

    mixed = ByHand(
        "2 y theta_D_old theta_D_new x",
        f"2 * {y:g} * {THETA_D:g} * {theta_d.value:g} * {X:g}",
        2 * y * THETA_D * theta_d.value * X,
    )
    added = sum_by_hand(grad_d.value, grad_d_by_hand(y, THETA_D)._replace(symbols="2 y^2 theta_D_old"))
    gan.checkpoint("L_G.backward()", {"grad G": mixed, "grad D": added})
    gan.optimizer_g.step()
    gan.checkpoint("optimizer_g.step()", {"weight G": step_by_hand("G", THETA_G, mixed.value)})
    old, new = grad_g_by_hand(X, y, THETA_D).value, grad_g_by_hand(X, y, theta_d.value).value
    return Way(
        "The stale graph without the check: wrong, and silent",
        gan.checkpoints,
        "PyTorch 1.2 returned this: until 1.5 optimizers stepped where autograd does not look, as a step through .data "
        "does to this day. One theta_D comes from the square, which saved D(y) before the step; the other from the "
        f"convolution, which reads its weight when it goes backward. So grad G is {mixed.value:.4f}, neither the "
        f"{old:.4f} of the old D nor the {new:.4f} of the new one.",
    )


def ways() -> list[Way]:
    """Run all of them, in the order in which they are told."""
    return [way_one(), way_one(freeze=False), way_two(), stale_graph(), stale_graph(hide_step=True)]


def describe(way: Way) -> str:
    """Write a run as a table: a row a checkpoint, and under it by hand what the call has changed."""
    width = min(shutil.get_terminal_size().columns, 100)
    lines = [way.title, "", f"  {'after':<20}" + "".join(f"{column:>10}" for column in COLUMNS)]
    for checkpoint in way.checkpoints:
        values = ("none" if value is None else f"{value:.4f}" for value in checkpoint.values.values())
        lines.append(f"  {checkpoint.after:<20}" + "".join(f"{value:>10}" for value in values))
        for column, by_hand in checkpoint.by_hand.items():
            lines.append(f"    {column} = {by_hand.symbols} = {by_hand.numbers} = {by_hand.value:.4f}")
    for text in (way.error, way.lesson):
        if text:
            lines += ["", textwrap.fill(text, width, initial_indent="  ", subsequent_indent="  ")]
    return "\n".join(lines) + "\n"


def main():
    """Print every gradient and weight of the one-weight GAN, call by call, beside the same number by hand."""
    print(f"PyTorch {torch.__version__}")
    print(f"G(x) = theta_G x with theta_G = {THETA_G}, D(y) = theta_D y with theta_D = {THETA_D}")
    print(f"x = {X}, y = G(x), L_D = D(y.detach())^2, L_G = D(y)^2; SGD with lr = {LEARNING_RATE}\n")
    print("\n\n".join(map(describe, ways())), end="")


if __name__ == "__main__":
    tyro.cli(main)
