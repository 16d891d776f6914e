"""A GAN with one weight in each network: every gradient and every weight after every call, by autograd and by hand.

    backward()    adds the derivative of the loss to the .grad of each weight, which is None at first
    step()        changes each weight by its .grad, and leaves .grad as it is
    zero_grad()   sets .grad to None, so that the next backward() does not add to it

Two right update orders run on the installed PyTorch. Each number that a call changes is worked out beside it in plain
Python, and the script fails where the two differ. Nothing is written.

    python scripts/benchmarks/gradient_walkthrough.py
"""

import math
import re
import sys
import textwrap
from pathlib import Path

import torch
from torch import nn

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # makes `common` importable from any folder

from common.options import Options
from scripts.tools.output import launch

START = {"noise": 1.0, "weight_g": 0.5, "weight_d": 0.7, "lr": 1.0}
COLUMNS = ("grad_g", "grad_d", "weight_g", "weight_d")


class OneWeightGAN:
    """fake = G(noise) = weight_g * noise and D(x) = weight_d * x, an SGD optimizer for each, and a text of each call.

    `by_hand` has every number by its name, in plain Python; `rows` has those of autograd after each call, by column.
    """

    def __init__(self):
        self.by_hand = START | {"grad_g": None, "grad_d": None, "fake": START["weight_g"] * START["noise"]}
        self.noise = torch.full((1, 1), START["noise"], dtype=torch.float64)
        self.generator, self.discriminator = (nn.Linear(1, 1, bias=False, dtype=torch.float64) for _ in "GD")
        nn.init.constant_(self.generator.weight, START["weight_g"])
        nn.init.constant_(self.discriminator.weight, START["weight_d"])
        self.optimizer_g = torch.optim.SGD(self.generator.parameters(), lr=START["lr"])
        self.optimizer_d = torch.optim.SGD(self.discriminator.parameters(), lr=START["lr"])
        self.rows: dict[str, dict[str, float | None]] = {}
        self.lines = [f"  {'after':<25}" + "".join(f"{name:>10}" for name in COLUMNS)]
        self.note("start")

    def note(self, call: str, **formulas: str) -> None:
        """Add a row, and below it each number that the call has changed: its formula, with numbers, and its value.

        formulas: by column, of names in `by_hand`. Raises ArithmeticError where autograd has another number.
        """
        weights = (self.generator.weight, self.discriminator.weight)
        numbers = [*(weight.grad for weight in weights), *weights]
        row = dict(zip(COLUMNS, (None if number is None else number.item() for number in numbers), strict=True))
        self.rows[call] = row
        self.lines.append(f"  {call:<25}" + "".join(f"{as_text(value):>10}" for value in row.values()))
        values = {name: eval(formula, {}, self.by_hand) for name, formula in formulas.items()}
        for name, formula in formulas.items():
            filled = re.sub(r"\b[a-z]\w+", lambda match: f"{self.by_hand[match[0]]:g}", formula)
            sides = dict.fromkeys([name, formula, filled, as_text(values[name])])  # without repetitions
            self.lines.append("    " + " = ".join(sides).replace("**", "^"))
        self.by_hand |= values
        for name, value in row.items():
            expected = self.by_hand[name]
            if (value is None) != (expected is None) or (value is not None and not math.isclose(value, expected)):
                raise ArithmeticError(f"after {call}: {name} is {value}, and by hand {expected}")


def as_text(value: float | None) -> str:
    """Return a number with four digits, or None."""
    return "None" if value is None else f"{value:.4f}"


def update_both(gan: OneWeightGAN) -> str:
    """D is frozen while G's loss goes backward; returns what this shows, as the other does."""
    fake = gan.generator(gan.noise)
    d_loss, g_loss = gan.discriminator(fake.detach()) ** 2, gan.discriminator(fake) ** 2
    d_loss.backward()
    gan.note("d_loss.backward()", grad_d="2 * fake**2 * weight_d")
    gan.discriminator.requires_grad_(False)
    g_loss.backward()
    gan.discriminator.requires_grad_(True)
    gan.note("g_loss.backward()", grad_g="2 * fake * weight_d**2 * noise")
    gan.optimizer_g.step()
    gan.note("optimizer_g.step()", weight_g="weight_g - lr * grad_g")
    gan.optimizer_d.step()
    gan.note("optimizer_d.step()", weight_d="weight_d - lr * grad_d")
    return """Both gradients are of the weights before the update, so either network may step first. D is frozen after
    its forward pass here, so PyTorch still computes its gradient and drops it; g_loss.backward(inputs=[weight_g])
    gives the same numbers without that work. If D were not frozen, g_loss would add to grad_d without an error: this
    is the mistake `d-steps-on-g-loss`."""


def update_d_first(gan: OneWeightGAN) -> str:
    """D sees the fake without its graph, and after its step the same fake with it."""
    fake = gan.generator(gan.noise)
    d_loss = gan.discriminator(fake.detach()) ** 2
    d_loss.backward()
    gan.note("d_loss.backward()", grad_d="2 * fake**2 * weight_d")
    gan.optimizer_d.step()
    gan.note("optimizer_d.step()", weight_d="weight_d - lr * grad_d")
    g_loss = gan.discriminator(fake) ** 2
    g_loss.backward()
    gan.note("g_loss.backward()", grad_g="2 * fake * weight_d**2 * noise", grad_d="grad_d + 2 * fake**2 * weight_d")
    gan.optimizer_g.step()
    gan.note("optimizer_g.step()", weight_g="weight_g - lr * grad_g")
    gan.optimizer_d.zero_grad()
    gan.note("optimizer_d.zero_grad()", grad_d="None")
    return """G's gradient is of the D just updated. g_loss adds to grad_d, too, which does no harm: zero_grad() clears
    it before the next d_loss.backward(). With g_loss computed before D's step and its backward() after, PyTorch raises
    an error, or is silent where the optimizer is fused: the mistakes `step-between-backwards` and `fused-step`."""


UPDATES = {
    "Way one: both losses go backward, then both networks step": update_both,
    "Way two: D steps, then g_loss is computed with the new D on the same fake": update_d_first,
}


def main(options: Options) -> None:
    """Print every gradient and weight of this GAN, call by call, with the same numbers by hand."""
    print(f"PyTorch {torch.__version__}; fake = G(noise) = weight_g * noise, D(x) = weight_d * x")
    print("d_loss = D(fake.detach())^2, g_loss = D(fake)^2; one optimizer each, SGD")
    print(", ".join(f"{name} = {value}" for name, value in START.items()))
    for title, update in UPDATES.items():
        gan = OneWeightGAN()
        lesson = textwrap.fill(" ".join(update(gan).split()), 80, initial_indent="  ", subsequent_indent="  ")
        print(f"\n\n{title}\n", *gan.lines, "", lesson, sep="\n")
    print("\nTo run a mistake on this PyTorch: python -m gradient_audit --mistake NAME")


if __name__ == "__main__":
    launch(main, Options)
