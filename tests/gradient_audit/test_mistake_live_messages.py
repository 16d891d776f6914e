"""Messages that PyTorch raises in training, made here as people make them: each finds its mistake."""

import math
import warnings

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from gradient_audit.mistakes import match, observe
from gradient_audit.mistakes.one_rank import one_rank


def leaf(*values):
    return torch.tensor(values or (1.0, 3.0), requires_grad=True)


def inference_tensor():
    with torch.inference_mode():
        return torch.ones(2)


def scaled(weight, **options):
    """An optimizer of `weight` and a scaler, after a scaled loss has gone backward."""
    optimizer, scaler = torch.optim.SGD([weight], lr=0.1), torch.amp.GradScaler("cpu", **options)
    scaler.scale(weight.sum()).backward()
    return optimizer, scaler


def state_of(network):
    return nn.Linear(1, 1).load_state_dict(network.state_dict())


def in_one_rank(function):
    def call():
        with one_rank():
            function()

    return call


def view_under(mode):
    fakes = leaf() * 2 if mode is torch.no_grad else torch.ones(2)
    with mode():
        view = fakes.view(-1)
    view.mul_(leaf().detach() if mode is torch.no_grad else leaf())


def split_then_base_edited():
    fakes = leaf() * 2
    first, _ = fakes.split(1)
    fakes.mul_(2)
    first.sum().backward()


def weight_of_wrapper():
    return DistributedDataParallel(nn.Linear(1, 1)).weight


def weight_normed():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # deprecated, and in many repositories
        network = nn.utils.weight_norm(nn.Linear(1, 1))
    network(torch.ones(1, 1))
    return network


LIVE = {
    "edit-one-of-many-views": [
        lambda: (leaf() * 2).chunk(2)[0].mul_(2),
        lambda: (leaf() * 2).unbind()[0].add_(1),
        split_then_base_edited,
        lambda: view_under(torch.no_grad),
        lambda: view_under(torch.inference_mode),
    ],
    "inference-tensor": [
        lambda: leaf() * inference_tensor(),
        lambda: inference_tensor().add_(1),
        lambda: inference_tensor().requires_grad_(),
        lambda: inference_tensor()._version,
    ],
    "optimize-result": [
        lambda: torch.optim.Adam([leaf().double()]),
        lambda: (leaf() * 2).requires_grad_(False),
    ],
    "leaf-in-place": [
        lambda: leaf().mul_(2),
    ],
    "numpy-of-grad": [
        lambda: leaf().numpy(),
    ],
    "non-scalar-loss": [
        lambda: (leaf() * 2).backward(),
    ],
    "backward-one": [
        lambda: torch.autograd.grad(leaf() * 2, leaf(), torch.ones(3)),
        lambda: leaf().sum().backward(torch.FloatTensor([1])),
        lambda: (leaf() * 2).backward(torch.FloatTensor([1])),
    ],
    "float-loss": [
        lambda: leaf().sum().item().backward(),
    ],
    "logits-to-bce": [
        lambda: F.binary_cross_entropy(torch.tensor([1.5]), torch.ones(1)),
        lambda: F.binary_cross_entropy(torch.tensor([math.nan]), torch.ones(1)),
        lambda: F.binary_cross_entropy(torch.tensor([0.5]), torch.tensor([1.2])),
    ],
    "labels-broadcast": [
        lambda: F.binary_cross_entropy_with_logits(torch.ones(4, 1), torch.ones(4)),
    ],
    "unused-in-graph": [
        lambda: torch.autograd.grad(leaf().sum(), leaf()),
        lambda: torch.autograd.grad(leaf().sum(), torch.ones(2)),
    ],
    "derivative-missing": [
        lambda: torch.igamma(leaf(), torch.ones(2)).sum().backward(),
    ],
    "no-parameters": [
        lambda: torch.optim.Adam([]),
    ],
    "parameter-twice": [
        lambda: torch.optim.SGD([leaf()] * 2, lr=0.1),
    ],
    "other-optimizer-state": [
        lambda: torch.optim.Adam([leaf()]).load_state_dict(torch.optim.Adam([leaf(), leaf()]).state_dict()),
        lambda: torch.optim.Adam([leaf()]).load_state_dict(
            torch.optim.Adam([{"params": [leaf()]}, {"params": [leaf()]}]).state_dict()
        ),
    ],
    "scaler-no-gradients": [
        lambda: torch.amp.GradScaler("cpu").step(torch.optim.SGD([leaf()], lr=0.1)),
        lambda: torch.amp.GradScaler("cpu").update(),
        lambda: scaled(leaf())[1].step(torch.optim.SGD([leaf()], lr=0.1)),
        lambda: scaled(leaf())[1].update(),
    ],
    "state-of-wrapped": [
        lambda: state_of(nn.DataParallel(nn.Linear(1, 1))),
        lambda: state_of(torch.compile(nn.Linear(1, 1))),
        lambda: nn.DataParallel(nn.Linear(1, 1)).load_state_dict(nn.Linear(1, 1).state_dict()),
    ],
    "ddp-attribute": [
        lambda: nn.DataParallel(nn.Linear(1, 1)).weight,
        in_one_rank(weight_of_wrapper),
    ],
}


@pytest.mark.parametrize(
    ("name", "make"),
    [
        pytest.param(name, make, id=f"{name}-{number}")
        for name, makers in LIVE.items()
        for number, make in enumerate(makers)
    ],
)
def test_a_message_made_here_finds_its_mistake(name, make):
    message = observe(make).message
    assert message
    assert [mistake.name for mistake in match(message)][:1] == [name], message
