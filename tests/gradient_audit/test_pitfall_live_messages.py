"""Messages that PyTorch raises in training, made here as people make them: each finds its entry."""

import copy
import math
import warnings

import pytest
import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.autograd import Function
from torch.nn.parallel import DistributedDataParallel
from torch.utils.checkpoint import checkpoint

from common.pitfalls import match_error, observe, one_rank


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


class WrongShape(Function):
    @staticmethod
    def forward(ctx, x):
        return x * 1

    @staticmethod
    def backward(ctx, gradient):
        return torch.ones(3)


class NoTensor(WrongShape):
    @staticmethod
    def backward(ctx, gradient):
        return 1.0


class TooMany(WrongShape):
    @staticmethod
    def backward(ctx, gradient):
        return gradient, gradient


class NoBackward(Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2


def recomputed(*lengths):
    """Go backward through a checkpoint whose function keeps another length each time it runs."""
    lengths = iter(lengths)
    checkpoint(lambda x: x[: next(lengths)].sin(), leaf(1.0, 2.0, 3.0), use_reentrant=False).sum().backward()


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
    ],
    "edit-view-from-no-grad": [lambda: view_under(torch.no_grad), lambda: view_under(torch.inference_mode)],
    "inference-tensor": [
        lambda: leaf() * inference_tensor(),
        lambda: inference_tensor().add_(1),
        lambda: inference_tensor().requires_grad_(),
        lambda: inference_tensor()._version,
    ],
    "inputs-with-frozen": [
        lambda: torch.ones(2).retain_grad(),
        lambda: (leaf().sum()).backward(inputs=[torch.ones(2)]),
    ],
    "optimize-result": [lambda: torch.optim.Adam([leaf().double()])],
    "deepcopy-result": [lambda: copy.deepcopy(leaf() * 2), lambda: copy.deepcopy(weight_normed())],
    "freeze-result": [lambda: (leaf() * 2).requires_grad_(False)],
    "integer-requires-grad": [
        lambda: torch.tensor([1, 2], requires_grad=True),
        lambda: torch.tensor([1, 2]).requires_grad_(),
        lambda: nn.Parameter(torch.tensor([1, 2])),
    ],
    "weight-replaced": [
        lambda: setattr(nn.Linear(1, 1), "weight", torch.ones(1, 1)),
        lambda: nn.Linear(1, 1).register_parameter("scale", leaf() * 2),
    ],
    "hook-on-constant": [
        lambda: torch.ones(2).register_hook(print),
        lambda: torch.ones(2).register_post_accumulate_grad_hook(print),
        lambda: (leaf() * 2).register_post_accumulate_grad_hook(print),
    ],
    "grad-assigned": [
        lambda: setattr(leaf(), "grad", torch.ones(3)),
        lambda: setattr(leaf(), "grad", torch.ones(2, dtype=torch.float64)),
        lambda: setattr(leaf(), "grad", torch.ones(2, device="meta")),
        lambda: setattr(leaf(), "grad", 0),
    ],
    "leaf-in-place": [lambda: leaf().mul_(2)],
    "numpy-of-grad": [lambda: leaf().numpy()],
    "non-scalar-loss": [lambda: (leaf() * 2).backward()],
    "complex-loss": [lambda: (leaf() * 1j).sum().backward()],
    "grad-output-shape": [lambda: torch.autograd.grad(leaf() * 2, leaf(), torch.ones(3))],
    "backward-one": [
        lambda: leaf().sum().backward(torch.FloatTensor([1])),
        lambda: (leaf() * 2).backward(torch.FloatTensor([1])),
    ],
    "item-of-many": [lambda: leaf().item(), lambda: math.sqrt(torch.ones(2)), lambda: bool(torch.ones(2))],
    "float-loss": [lambda: leaf().sum().item().backward()],
    "logits-to-bce": [
        lambda: F.binary_cross_entropy(torch.tensor([1.5]), torch.ones(1)),
        lambda: F.binary_cross_entropy(torch.tensor([math.nan]), torch.ones(1)),
        lambda: F.binary_cross_entropy(torch.tensor([0.5]), torch.tensor([1.2])),
    ],
    "label-shape-bce": [lambda: F.binary_cross_entropy_with_logits(torch.ones(4, 1), torch.ones(4))],
    "label-dtype": [
        lambda: F.binary_cross_entropy(torch.tensor([0.5]), torch.tensor([1])),
        lambda: F.binary_cross_entropy(torch.tensor([0.5]), torch.ones(1, dtype=torch.float64)),
        lambda: F.binary_cross_entropy_with_logits(torch.tensor([0.5]), torch.tensor([1])),
    ],
    "class-out-of-range": [
        lambda: F.cross_entropy(torch.ones(2, 10), torch.tensor([0, 10])),
        lambda: nn.Embedding(10, 2)(torch.tensor([10])),
        lambda: F.one_hot(torch.tensor([10]), 10),
    ],
    "class-as-float": [
        lambda: F.nll_loss(torch.ones(2, 10), torch.ones(2)),
        lambda: F.cross_entropy(torch.ones(2, 10), torch.ones(2, dtype=torch.int32)),
        lambda: nn.Embedding(10, 2)(torch.tensor([1.0])),
        lambda: F.one_hot(torch.tensor([1.0]), 3),
    ],
    "class-shape": [
        lambda: F.cross_entropy(torch.ones(2, 10), torch.ones(3).long()),
        lambda: F.cross_entropy(torch.ones(2, 10), torch.ones(2, 1).long()),
    ],
    "batch-of-one": [
        lambda: nn.BatchNorm2d(3)(torch.ones(1, 3, 1, 1)),
        lambda: nn.InstanceNorm2d(3)(torch.ones(1, 3, 1, 1)),
    ],
    "input-dtype": [
        lambda: nn.Linear(2, 1)(torch.ones(1, 2, dtype=torch.float64)),
        lambda: nn.Linear(2, 1).half()(torch.ones(1, 2)),
        lambda: nn.Conv2d(1, 1, 1)(torch.ones(1, 1, 2, 2, dtype=torch.float64)),
        lambda: nn.Conv2d(1, 1, 1)(torch.ones(1, 1, 2, 2, dtype=torch.uint8)),
        lambda: nn.Conv2d(1, 1, 1)(torch.ones(1, 1, 2, 2, dtype=torch.float16)),
        lambda: nn.ConvTranspose2d(1, 1, 1)(torch.ones(1, 1, 2, 2, dtype=torch.float16)),
    ],
    "two-devices": [
        lambda: torch.ones(2) + torch.ones(2, device="meta"),
        lambda: F.mse_loss(torch.ones(2, device="meta"), torch.ones(2)),
    ],
    "unused-in-graph": [lambda: torch.autograd.grad(leaf().sum(), leaf())],
    "penalty-of-constant": [lambda: torch.autograd.grad(leaf().sum(), torch.ones(2))],
    "derivative-missing": [lambda: torch.igamma(leaf(), torch.ones(2)).sum().backward()],
    "function-gradients": [
        lambda: WrongShape.apply(leaf()).sum().backward(),
        lambda: NoTensor.apply(leaf()).sum().backward(),
        lambda: TooMany.apply(leaf()).sum().backward(),
    ],
    "function-of-old-style": [lambda: NoBackward.apply(leaf()).sum().backward()],
    "checkpoint-changes": [lambda: recomputed(2, 3)],
    "no-parameters": [lambda: torch.optim.Adam([])],
    "not-parameters": [
        lambda: torch.optim.Adam(leaf()),
        lambda: torch.optim.Adam([nn.Linear(1, 1)]),
    ],
    "parameter-twice": [lambda: torch.optim.SGD([leaf()] * 2, lr=0.1)],
    "other-optimizer-state": [
        lambda: torch.optim.Adam([leaf()]).load_state_dict(torch.optim.Adam([leaf(), leaf()]).state_dict()),
        lambda: torch.optim.Adam([leaf()]).load_state_dict(
            torch.optim.Adam([{"params": [leaf()]}, {"params": [leaf()]}]).state_dict()
        ),
    ],
    "lbfgs-without-closure": [lambda: torch.optim.LBFGS([leaf()]).step()],
    "fused-with-others": [
        lambda: torch.optim.AdamW([leaf()], fused=True, foreach=True),
        lambda: torch.optim.Adam([leaf()], fused=True, differentiable=True),
    ],
    "scaler-no-gradients": [
        lambda: torch.amp.GradScaler("cpu").step(torch.optim.SGD([leaf()], lr=0.1)),
        lambda: torch.amp.GradScaler("cpu").update(),
        lambda: scaled(leaf())[1].step(torch.optim.SGD([leaf()], lr=0.1)),
        lambda: scaled(leaf())[1].update(),
    ],
    "scaler-out-of-order": [
        lambda: [scaler.unscale_(optimizer) for optimizer, scaler in [scaled(leaf())] * 2],
        lambda: [scaler.step(optimizer) for optimizer, scaler in [scaled(leaf())] * 2],
        lambda: [call(optimizer) for optimizer, scaler in [scaled(leaf())] for call in (scaler.step, scaler.unscale_)],
    ],
    "state-of-wrapped": [
        lambda: state_of(nn.DataParallel(nn.Linear(1, 1))),
        lambda: state_of(torch.compile(nn.Linear(1, 1))),
        lambda: nn.DataParallel(nn.Linear(1, 1)).load_state_dict(nn.Linear(1, 1).state_dict()),
    ],
    "ddp-all-frozen": [in_one_rank(lambda: DistributedDataParallel(nn.Linear(1, 1).requires_grad_(False)))],
    "ddp-not-started": [lambda: DistributedDataParallel(nn.Linear(1, 1)), lambda: dist.all_reduce(torch.ones(1))],
    "ddp-attribute": [
        lambda: nn.DataParallel(nn.Linear(1, 1)).weight,
        in_one_rank(weight_of_wrapper),
    ],
}


@pytest.mark.parametrize(
    ("name", "mistake"),
    [
        pytest.param(name, mistake, id=f"{name}-{number}")
        for name, mistakes in LIVE.items()
        for number, mistake in enumerate(mistakes)
    ],
)
def test_a_message_made_here_finds_its_entry(name, mistake):
    message = observe(mistake).message
    assert message is not None
    assert [pitfall.name for pitfall in match_error(message)][:1] == [name], message
