"""Modules that are copied as one file: each is used alone, in a folder and a process without anything else of ours."""

import subprocess
import sys

import torch
from helpers import ROOT

from common.optimizers import fused_adam

USES = {
    "losses": """
real, fake = torch.full((3, 1), 2.0), torch.full((3, 1), -1.0)
assert torch.allclose(losses.discriminator_loss(real, fake), (torch.tensor([-2.0, -1.0]).exp().log1p()).mean())
assert torch.allclose(losses.generator_loss(fake), torch.tensor(1.0).exp().log1p())
""",
    "models": """
for make in models.MODELS.values():
    generator, discriminator = make((1, 28, 28), 8)
    assert discriminator(generator(torch.randn(2, 8))).shape == (2, 1)
try:
    models.conv((1, 30, 30), 8)
except ValueError as error:
    assert "30x30" in str(error)
else:
    raise AssertionError("not refused")
""",
    "cyclegan_models": """
a_to_b, b_to_a, of_a, of_b = cyclegan_models.cyclegan_networks((1, 12, 12), width=2, blocks=1, halvings=1)
images = torch.zeros(2, 1, 12, 12)
assert b_to_a(a_to_b(images)).shape == images.shape
""",
    "penalties": """
linear = torch.nn.Linear(4, 1)
real = torch.randn(3, 4, requires_grad=True)
assert torch.allclose(penalties.zero_centred_penalty(linear(real), real), linear.weight.square().sum())
assert torch.allclose(penalties.interpolation_penalty(linear, real, -real), (linear.weight.norm() - 1) ** 2)
""",
    "optimizers": """
network = torch.nn.Linear(1, 1)
optimizer = optimizers.fused_adam(network.parameters(), 1e-3, (0.0, 0.999))
network(torch.ones(1, 1)).sum().backward()
optimizer.step()
assert network.weight._version > 0
rate = optimizers.linear_decay(6, 3)
assert [rate(done) for done in range(7)] == [1, 1, 1, 1, 2 / 3, 1 / 3, 0]
rate = optimizers.linear_decay(2, 2)
assert [rate(done) for done in range(2)] == [1, 1]
""",
    "per_sample": """
passes, discriminator = [], torch.nn.Linear(2, 1)
discriminator.register_forward_hook(lambda *_: passes.append(call))
for call in range(1, 20):
    per_sample.require_per_sample(discriminator, torch.randn(4, 2))
assert passes == [1, 2, 4, 8, 16]
try:
    per_sample.require_per_sample(torch.nn.Sequential(torch.nn.BatchNorm1d(2)), torch.randn(4, 2))
except ValueError:
    pass
else:
    raise AssertionError("not refused")
""",
}


def test_each_leaf_copied_alone_is_used_alone(tmp_path):
    """Each in a folder that holds nothing else; one process for all, which has no other folder of ours on its path."""
    program = ["import importlib, sys", "import torch"]
    for leaf, use in USES.items():
        folder = tmp_path / leaf
        folder.mkdir()
        (folder / f"{leaf}.py").write_bytes((ROOT / "common" / f"{leaf}.py").read_bytes())
        program += [f"sys.path.append({str(folder)!r})", f"import {leaf}", use, "sys.path.pop()"]
        program += [f"del sys.modules[{leaf!r}]"]
    done = subprocess.run(
        [sys.executable, "-I", "-c", "\n".join(program)], cwd=tmp_path, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr


def test_a_step_of_fused_adam_raises_the_version_of_the_weights_of_every_group():
    weights = [torch.nn.Parameter(torch.ones(2)) for _ in range(3)]
    optimizer = fused_adam([{"params": weights[:1]}, {"params": weights[1:]}], 1e-3, (0.0, 0.9))
    (weights[0].sum() + weights[1].sum()).backward()
    optimizer.step()
    assert [weight._version > 0 for weight in weights] == [True, True, False]  # the last one has no gradient
