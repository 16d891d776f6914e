"""How much each term of a loss moves each network: shares worked by hand, and nothing that the script could notice."""

import math
import runpy
from pathlib import Path

import pytest
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from gradient_audit import GradientAudit
from scripts import gan_r3

pytestmark = pytest.mark.usefixtures("few_objects")


class Weight(nn.Module):
    """A network of some numbers, one of which it multiplies with its input."""

    def __init__(self, *values):
        super().__init__()
        self.weight = nn.Parameter(torch.tensor(values, dtype=torch.double))

    def forward(self, x):
        return self.weight * x


def sigmoid(x):
    return 1 / (1 + math.exp(-x))


def shares(networks, loss):
    """By network: the cells of the terms of a loss, from which its optimizer steps, and their exact shares."""
    optimizer = torch.optim.SGD([p for network in networks.values() for p in network.parameters()], lr=0.0)
    with GradientAudit(**networks) as audit:
        loss(*networks.values()).backward()
        optimizer.step()
    (p,) = audit.passes
    return {name: [(term.word(name), term.shares[name]) for term in p.terms] for name in networks}


def pix2pix(generator):
    """G's weight is 0.5, D doubles: the derivatives are -2 sigmoid(-1) and 100 times -1."""
    fake = generator(torch.ones(1))
    return nn.functional.softplus(-2 * fake).mean() + 100 * nn.functional.l1_loss(fake, torch.ones(1))


def perceptual(generator):
    """Features are three times the weights (1, 2), targets 0: the derivatives are (18, 36), and half the signs."""
    fake = generator(torch.ones(2))
    return (3 * fake).square().sum() + 0.5 * fake.abs().sum()


def of_samples(generator, shape=(4,)):
    """A weight w of 1: the mean of 4 squares of w, and 3 w, which is broadcast: the derivatives are 2 and 3."""
    return (generator(torch.ones(shape)).square() + 3 * generator(torch.ones(1)).sum()).mean()


@pytest.mark.parametrize(
    ("loss", "weights", "norms", "words"),
    [
        (of_samples, [1.0], [2, 3], ["used 40%", "used 60%"]),
        (lambda generator: of_samples(generator, (4, 1)), [1.0], [2, 3], ["used 40%", "used 60%"]),
        (pix2pix, [0.5], [2 * sigmoid(-1), 100], ["used <1%", "used 99%"]),
        (perceptual, [1.0, 2.0], [18 * math.sqrt(5), 0.5 * math.sqrt(2)], ["used 98%", "used 2%"]),
    ],
)
def test_a_term_has_the_share_of_the_norm_of_its_gradient(loss, weights, norms, words):
    cells = shares({"generator": Weight(*weights)}, loss)["generator"]
    assert [word for word, _ in cells] == words
    assert [share for _, share in cells] == pytest.approx([norm / sum(norms) for norm in norms], abs=1e-12)


def test_the_penalties_of_gan_r3_beside_its_relativistic_loss():
    """D's weight is 2, real 0, fake 1: the derivatives are sigmoid(2), and 2 of the halved squared slope of each."""
    networks = {"generator": Weight(1.0), "discriminator": Weight(2.0)}
    optimizers = [torch.optim.SGD(network.parameters(), lr=0.0) for network in networks.values()]
    with GradientAudit(**networks) as audit:
        gan_r3.train_step(*networks.values(), *optimizers, torch.zeros(1, 1).double(), torch.ones(1, 1).double())
    loss = sigmoid(2)
    for term, size in zip(audit.passes[0].terms, (loss, 2, 2), strict=True):
        assert term.shares["discriminator"] == pytest.approx(size / (loss + 4), abs=1e-12)
    assert [term.word("discriminator") for term in audit.passes[0].terms] == ["used 18%", "used 41%", "used 41%"]


def test_a_term_that_comes_in_the_fifth_step_is_measured_beside_those_that_were_measured_before():
    network = Weight(1.0)
    with GradientAudit(network=network) as audit:
        for step in range(5):
            out = network(torch.ones(1))
            loss = out.sum() + 3 * out.sum()
            loss = loss + 4 * out.sum() if step == 4 else loss
            loss.backward()
    words = [[term.word("network") for term in p.terms] for p in audit.passes if p.measured]
    assert words == [["wasted 25%", "wasted 75%"]] * 2 + [["wasted 12%", "wasted 38%", "wasted 50%"]]


class Counted(torch.autograd.Function):
    calls = 0

    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, gradient):
        Counted.calls += 1
        return gradient


def saved(x, count):
    with torch.autograd.graph.saved_tensors_hooks(lambda y: y, lambda y: count() or y):
        return x.exp()


# What the script puts on a tensor; it counts what runs.
FORMS = {
    "a hook on a tensor": lambda x, count: x.register_hook(count) and x,
    "a hook on a node": lambda x, count: x.grad_fn.register_hook(count) and x,
    "a hook before a node": lambda x, count: x.grad_fn.register_prehook(count) and x,
    "a gradient that is kept": lambda x, count: x.retain_grad() or x,
    "hooks on saved tensors": saved,
    "a function": lambda x, count: Counted.apply(x),
    "a checkpoint": lambda x, count: checkpoint(lambda y: count() or y.exp(), x, use_reentrant=False),
}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_where_the_script_could_notice_it_nothing_is_measured_and_a_word_says_so(form):
    counts = []
    for audited in (False, True):
        torch.manual_seed(0)
        network, calls, Counted.calls = nn.Linear(2, 2), [], 0
        audit = GradientAudit(network=network)
        with audit if audited else torch.enable_grad():
            for _ in range(3):
                out = form(network(torch.ones(1, 2)), lambda *_, calls=calls: calls.append(1))
                (out.sum() + out.square().sum()).backward()
        counts.append((len(calls), Counted.calls, network.weight.grad.tolist()))
    assert counts[0] == counts[1]
    assert not any(p.measured for p in audit.passes)
    assert "were not measured: " in audit.table


MUSEUM = Path(__file__).parent / "museum" / "clean"
LOOPS = """accumulation arguments_by_name bicycle dcgan domain_heads ema_teacher encoder_with_two_heads equilibrium
    lazy_r1 sharpness_aware two_penalties vae_gan_limited wgan_gp_critic_steps"""


def bits(script, audited):
    """All numbers that the variables of a script lead to at its end, with gradients, and the state of the generator."""
    torch.manual_seed(0)
    with GradientAudit.of_script() if audited else torch.enable_grad():
        variables = runpy.run_path(str(script), run_name="__main__")
    modules = [value for value in variables.values() if isinstance(value, nn.Module)]
    tensors = [value for value in variables.values() if isinstance(value, torch.Tensor)]
    tensors += [tensor for module in modules for tensor in (*module.parameters(), *module.buffers())]
    tensors += [tensor.grad for tensor in tensors if tensor.is_leaf and tensor.grad is not None]
    return [tensor.detach().clone() for tensor in (*tensors, torch.get_rng_state())]


@pytest.mark.numerics
@pytest.mark.parametrize("loop", LOOPS.split())
def test_a_loop_computes_the_same_bits_with_and_without_the_audit(loop):
    alone, beside = (bits(MUSEUM / f"{loop}.py", audited) for audited in (False, True))
    assert len(alone) == len(beside) > 3
    assert all(torch.equal(*pair) for pair in zip(alone, beside, strict=True))
