"""What the tests of the audit share: two tiny networks, a textbook step, a script, and what an audit of it says."""

import inspect
import re
from pathlib import Path

import torch
from torch import nn

from common.losses import discriminator_loss, generator_loss
from gradient_audit import GradientAudit

D_ONLY, G_ONLY = ("-", "used"), ("used", "-")  # the cells of a backward pass: generator, discriminator
NETWORK = """
import torch
net = torch.nn.Linear(2, 1)
optimizer = torch.optim.SGD(net.parameters(), 0.1)
"""
LOOP = """
for step in range(5):
    optimizer.zero_grad()
    net(torch.ones(1, 2)).sum().backward()
    optimizer.step()
"""


def make_networks():
    torch.manual_seed(0)
    generator = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 4))
    discriminator = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
    return generator, discriminator


def make_all():
    networks = make_networks()
    return *networks, *(torch.optim.Adam(network.parameters(), lr=0.01) for network in networks)


def batch(seed=0):
    noise = torch.Generator().manual_seed(seed)
    return torch.randn(6, 4, generator=noise), torch.randn(6, 3, generator=noise)


def audit_of(train_step, *parts, steps=3):
    """The audit of a step with the signature of the training scripts."""
    generator, discriminator, *_ = parts = parts or make_all()
    with GradientAudit(generator=generator, discriminator=discriminator) as audit:
        for step in range(steps):
            train_step(*parts, *batch(step))
    return audit


def cells(audit):
    """The table, cell by cell: a row for each pass."""
    return [tuple(p.cells.values()) for p in audit.passes]


def found(audit):
    """The findings as (name, networks)."""
    return {(finding.kind, finding.networks) for finding in audit.findings}


def findings(done):
    """The kinds of the findings that were printed."""
    return re.findall(r"^- \*\*(\S+)\*\*", done.stdout, flags=re.MULTILINE)


def table(done, script):
    """The columns' names, and for each backward pass the line of the script that is named, its count and its cells."""
    lines = script.read_text().splitlines()
    printed = [line for line in done.stdout.splitlines() if line.startswith(("| backward", f"| `{script.name}:"))]
    header, *rows = [[cell.strip() for cell in line.strip("| ").split(" | ")] for line in printed]
    assert header[:2] == ["backward pass", "times"]
    return header[2:], [(lines[int(re.search(r":(\d+) ", row[0])[1]) - 1].strip(), *row[1:]) for row in rows]


def line_of(function, text):
    lines, start = inspect.getsourcelines(function)
    file = Path(inspect.getsourcefile(function)).name
    return f"{file}:{start + next(i for i, line in enumerate(lines) if text in line)}"


def textbook_detach(generator, discriminator, optimizer_g, optimizer_d, real, z):
    fake = generator(z)
    optimizer_d.zero_grad()
    discriminator_loss(discriminator(real), discriminator(fake.detach())).backward()
    optimizer_d.step()
    optimizer_g.zero_grad()
    generator_loss(discriminator(fake)).backward()
    optimizer_g.step()
