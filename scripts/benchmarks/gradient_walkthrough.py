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

WAYS = {  # Each has its lines, with what they change beside them, and what this shows.
    "Way one: both losses go backward, then both networks step": """\
fake = generator(noise)
d_loss = discriminator(fake.detach()) ** 2
g_loss = discriminator(fake) ** 2
d_loss.backward()  # grad_d = 2 * fake**2 * weight_d
discriminator.requires_grad_(False)
g_loss.backward()  # grad_g = 2 * fake * weight_d**2 * noise
discriminator.requires_grad_(True)
optimizer_g.step()  # weight_g = weight_g - lr * grad_g
optimizer_d.step()  # weight_d = weight_d - lr * grad_d

Both gradients are of the weights before the update, so either network may step first. D is frozen after its forward
pass here, so PyTorch still computes its gradient and drops it; g_loss.backward(inputs=[weight_g]) gives the same
numbers without that work. If D were not frozen, g_loss would add to grad_d without an error: this is the mistake
`d-steps-on-g-loss`.""",
    "Way two: D steps, then g_loss is computed with the new D on the same fake": """\
fake = generator(noise)
d_loss = discriminator(fake.detach()) ** 2
d_loss.backward()  # grad_d = 2 * fake**2 * weight_d
optimizer_d.step()  # weight_d = weight_d - lr * grad_d
g_loss = discriminator(fake) ** 2
g_loss.backward()  # grad_g = 2 * fake * weight_d**2 * noise; grad_d = grad_d + 2 * fake**2 * weight_d
optimizer_g.step()  # weight_g = weight_g - lr * grad_g
optimizer_d.zero_grad()  # grad_d = None

G's gradient is of the D just updated. g_loss adds to grad_d, too, which does no harm: zero_grad() clears it before the
next d_loss.backward(). With g_loss computed before D's step and its backward() after, PyTorch raises an error, or is
silent where the optimizer is fused: the mistakes `step-between-backwards` and `fused-step`.""",
}


def run_way(source: str) -> tuple[list[str], dict[str, float | None]]:
    """Run the lines of a way; return the table of what they change, and the gradients and weights at the end, by name.

    Below the row of a call is each number that it changes: its formula, with numbers, and its value. Raises
    ArithmeticError where autograd has another number than the formulas.
    """
    generator, discriminator = (nn.Linear(1, 1, bias=False, dtype=torch.float64) for _ in "GD")
    weights = [nn.init.constant_(generator.weight, START["weight_g"])]
    weights += [nn.init.constant_(discriminator.weight, START["weight_d"])]
    optimizer_g, optimizer_d = (torch.optim.SGD([weight], lr=START["lr"]) for weight in weights)
    noise = torch.full((1, 1), START["noise"], dtype=torch.float64)
    names = {"generator": generator, "discriminator": discriminator, "noise": noise}
    names |= {"optimizer_g": optimizer_g, "optimizer_d": optimizer_d}
    by_hand = START | {"grad_g": None, "grad_d": None, "fake": START["weight_g"] * START["noise"]}
    lines = [f"  {'after':<25}" + "".join(f"{name:>10}" for name in COLUMNS)]
    for line in ["  # start", *source.splitlines()]:
        call, _, comment = line.partition("  # ")
        exec(call, names)
        if not comment:
            continue
        numbers = [*(weight.grad for weight in weights), *weights]
        row = dict(zip(COLUMNS, (None if number is None else number.item() for number in numbers), strict=True))
        lines.append(f"  {call or comment:<25}" + "".join(f"{as_text(value):>10}" for value in row.values()))
        changes = [work_out(change, by_hand) for change in comment.split("; ") if call]
        lines += [text for _, _, text in changes]
        by_hand |= {name: value for name, value, _ in changes}
        for name, value in row.items():
            expected = by_hand[name]
            if (value is None) != (expected is None) or (value is not None and not math.isclose(value, expected)):
                raise ArithmeticError(f"after {call}: {name} is {value}, and by hand {expected}")
    return lines, row


def work_out(change: str, numbers: dict[str, float | None]) -> tuple[str, float | None, str]:
    """Return the name and the value of a change, as "x = 2 * y", and a text with its formula, also with the numbers."""
    name, formula = change.split(" = ")
    value = eval(formula, {}, numbers)
    filled = re.sub(r"\b[a-z]\w+", lambda match: f"{numbers[match[0]]:g}", formula)
    sides = dict.fromkeys([name, formula, filled, as_text(value)])  # without repetitions
    return name, value, "    " + " = ".join(sides).replace("**", "^")


def as_text(value: float | None) -> str:
    """Return a number with four digits, or None."""
    return "None" if value is None else f"{value:.4f}"


def main(options: Options) -> None:
    """Print every gradient and weight of this GAN, call by call, with the same numbers by hand."""
    print(f"PyTorch {torch.__version__}; fake = G(noise) = weight_g * noise, D(x) = weight_d * x")
    print("d_loss = D(fake.detach())^2, g_loss = D(fake)^2; one optimizer each, SGD")
    print(", ".join(f"{name} = {value}" for name, value in START.items()))
    for title, way in WAYS.items():
        source, lesson = way.split("\n\n")
        text = textwrap.fill(lesson, 80, initial_indent="  ", subsequent_indent="  ")
        print(f"\n\n{title}\n", *run_way(source)[0], "", text, sep="\n")
    print("\nTo run a mistake on this PyTorch: python -m gradient_audit --mistake NAME")


if __name__ == "__main__":
    launch(main, Options)
