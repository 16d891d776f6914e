"""The one-weight GAN: every gradient and every weight after every call, beside the same number worked out by hand.

G(x) = theta_G x and D(y) = theta_D y are 1x1 convolutions with one weight each. With y = G(x), L_D = D(y.detach())^2
and L_G = D(y)^2, each gradient is a formula of a few symbols. Two right update orders run here on the installed
PyTorch, next to their formulas in plain Python arithmetic, and so does R1, a penalty on the derivative of D, which is
differentiated once more. `autograd_pitfalls.py` has the mistakes, on the same GAN.

    python scripts/tools/gradient_walkthrough.py
"""

import shutil
import sys
import textwrap
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import torch
from torch import nn

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # makes `common` importable from any folder

from common.run.command_line import launch

X, THETA_G, THETA_D, LEARNING_RATE = 1.0, 0.5, 0.7, 1.0
COLUMNS = ("grad G", "grad D", "weight G", "weight D")


@dataclass(frozen=True)
class Options:
    """There are none."""


class ByHand(NamedTuple):
    """A number worked out by hand: as a formula of symbols, the same with numbers, and its value as a Python float."""

    symbols: str
    numbers: str
    value: float


@dataclass(frozen=True)
class Row:
    """The gradients and weights in PyTorch after a call, by column; a gradient never computed is None.

    `by_hand` has the columns that the call changes.
    """

    after: str
    values: dict[str, float | None]
    by_hand: dict[str, ByHand]


@dataclass(frozen=True)
class Way:
    """An update order of the one-weight GAN: a row for each call, and what they show."""

    title: str
    rows: list[Row]
    lesson: str


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
    """G and D, an SGD optimizer for each, the input x of shape (1, 1, 1, 1), and the rows noted so far."""

    def __init__(self):
        """Set the weights, and note them as the first row."""
        self.x = torch.full((1, 1, 1, 1), X)
        self.generator, self.discriminator = (nn.Conv2d(1, 1, kernel_size=1, bias=False) for _ in "GD")
        nn.init.constant_(self.generator.weight, THETA_G)
        nn.init.constant_(self.discriminator.weight, THETA_D)
        self.optimizer_g = torch.optim.SGD(self.generator.parameters(), lr=LEARNING_RATE)
        self.optimizer_d = torch.optim.SGD(self.discriminator.parameters(), lr=LEARNING_RATE)
        self.rows: list[Row] = []
        self.note("start", {})

    def note(self, after: str, by_hand: dict[str, ByHand]):
        """Note both gradients and both weights as they are now."""
        weights = self.generator.weight, self.discriminator.weight
        grads = [None if weight.grad is None else weight.grad.item() for weight in weights]
        values = dict(zip(COLUMNS, [*grads, *(weight.item() for weight in weights)], strict=True))
        self.rows.append(Row(after, values, by_hand))


def way_one() -> Way:
    """Both losses go backward before either network steps; D is frozen while L_G does."""
    gan = OneWeightGAN()
    fake = gan.generator(gan.x)
    d_loss = gan.discriminator(fake.detach()) ** 2
    g_loss = gan.discriminator(fake) ** 2
    y = THETA_G * X

    d_loss.backward()
    grad_d = grad_d_by_hand(y, THETA_D)
    gan.note("L_D.backward()", {"grad D": grad_d})

    gan.discriminator.requires_grad_(False)
    g_loss.backward()
    gan.discriminator.requires_grad_(True)
    grad_g = grad_g_by_hand(X, y, THETA_D)
    gan.note("L_G.backward()", {"grad G": grad_g})

    gan.optimizer_g.step()
    gan.note("optimizer_g.step()", {"weight G": step_by_hand("G", THETA_G, grad_g.value)})
    gan.optimizer_d.step()
    gan.note("optimizer_d.step()", {"weight D": step_by_hand("D", THETA_D, grad_d.value)})
    return Way(
        "Way one: both losses from the same weights, D frozen while L_G goes backward",
        gan.rows,
        "G's gradient comes through D as it was before its step, so either network may step first. D is frozen after "
        "the forward pass here, so PyTorch still computes D's gradient and drops it; "
        "L_G.backward(inputs=[theta_G]) gives the same numbers without that work. If D were not frozen, L_G would add "
        "to D's gradient without an error: autograd_pitfalls.py both-backward.",
    )


def way_two() -> Way:
    """D steps first; then L_G is computed anew from the same fake."""
    gan = OneWeightGAN()
    fake = gan.generator(gan.x)
    y = THETA_G * X

    d_loss = gan.discriminator(fake.detach()) ** 2
    d_loss.backward()
    grad_d = grad_d_by_hand(y, THETA_D)
    gan.note("L_D.backward()", {"grad D": grad_d})
    gan.optimizer_d.step()
    theta_d = step_by_hand("D", THETA_D, grad_d.value)
    gan.note("optimizer_d.step()", {"weight D": theta_d})

    g_loss = gan.discriminator(fake) ** 2
    g_loss.backward()
    grad_g = grad_g_by_hand(X, y, theta_d.value)
    added = sum_by_hand(grad_d.value, grad_d_by_hand(y, theta_d.value))
    gan.note("L_G.backward()", {"grad G": grad_g, "grad D": added})
    gan.optimizer_g.step()
    gan.note("optimizer_g.step()", {"weight G": step_by_hand("G", THETA_G, grad_g.value)})
    return Way(
        "Way two: D steps, then L_G is computed with the new D on the same fake",
        gan.rows,
        "G's gradient comes through the updated D. What L_G adds to D's gradient is harmless if D's zero_grad() comes "
        "before D's next backward(). With L_G computed before D's step and its backward() after, PyTorch raises an "
        "error: autograd_pitfalls.py step-between-backwards.",
    )


def r1() -> Way:
    """D's loss with R1, half the squared derivative of D at a real x, whose own gradient takes a second derivative."""
    gan = OneWeightGAN()
    fake = gan.generator(gan.x).detach()
    gan.discriminator(fake).square().backward()
    grad_d = grad_d_by_hand(THETA_G * X, THETA_D)
    gan.note("L_D.backward()", {"grad D": grad_d})

    real = gan.x.clone().requires_grad_()
    (slope,) = torch.autograd.grad(gan.discriminator(real).sum(), real, create_graph=True)
    penalty = slope.square().sum() / 2
    gan.note("grad(D(x), x)", {})
    penalty.backward(inputs=[gan.discriminator.weight])
    added = sum_by_hand(grad_d.value, ByHand("theta_D", f"{THETA_D:g}", THETA_D))
    gan.note("R1.backward()", {"grad D": added})
    gan.optimizer_d.step()
    gan.note("optimizer_d.step()", {"weight D": step_by_hand("D", THETA_D, added.value)})
    return Way(
        "R1: a penalty on the derivative of D at a real x",
        gan.rows,
        "dD/dx = theta_D, so R1 = (dD/dx)^2 / 2 = theta_D^2 / 2, and its gradient is theta_D; for D(x) = w x with "
        "vectors it is w. create_graph=True makes dD/dx a graph that ends at theta_D; to compute it changes no "
        "gradient. Without it dD/dx is a plain number: R1.backward() raises, and added to L_D it trains nothing "
        "without an error: autograd_pitfalls.py silent-penalty.",
    )


def describe(way: Way) -> str:
    """Return an update order as text: its rows, and under each row by hand what the call has changed."""
    width = min(shutil.get_terminal_size().columns, 100)
    lines = [way.title, "", f"  {'after':<20}" + "".join(f"{column:>10}" for column in COLUMNS)]
    for row in way.rows:
        values = ("none" if value is None else f"{value:.4f}" for value in row.values.values())
        lines.append(f"  {row.after:<20}" + "".join(f"{value:>10}" for value in values))
        for column, by_hand in row.by_hand.items():
            lines.append(f"    {column} = {by_hand.symbols} = {by_hand.numbers} = {by_hand.value:.4f}")
    lines += ["", textwrap.fill(way.lesson, width, initial_indent="  ", subsequent_indent="  ", break_on_hyphens=False)]
    return "\n".join(lines) + "\n"


def main(options: Options) -> None:
    """Print every gradient and weight of the one-weight GAN, call by call, beside the same number by hand."""
    print(f"PyTorch {torch.__version__}")
    print(f"G(x) = theta_G x with theta_G = {THETA_G}, D(y) = theta_D y with theta_D = {THETA_D}")
    print(f"x = {X}, y = G(x), L_D = D(y.detach())^2, L_G = D(y)^2; SGD with lr = {LEARNING_RATE}\n")
    print("\n\n".join(map(describe, (way_one(), way_two(), r1()))), end="")


if __name__ == "__main__":
    launch(main, Options)
