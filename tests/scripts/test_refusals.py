"""A discriminator that an update order cannot serve is refused before a weight is changed."""

import copy

import pytest
import torch
from helpers import module_of
from torch import nn
from torch._functorch import config as functorch_config
from torch.nn.parallel import DistributedDataParallel

from common.cyclegan_models import patch_discriminator
from common.models import mlp
from common.per_sample import require_per_sample

SCRIPTS = ["gan_one_stage", "gan_r3", "gan_wgan_gp"]
MIXED = "depends on the other samples of the batch"


class BatchDeviation(nn.Module):
    """Adds how much the batch varies to every sample, as Karras et al. (2018) do against mode collapse."""

    def forward(self, images):
        return images + images.std(0).mean()


def head(*layers):
    return nn.Sequential(nn.Conv2d(1, 4, 4, 4), *layers, nn.Flatten(), nn.Linear(4 * 49, 1))


def changed(discriminator, change):
    """Return a discriminator that gives `change` of its logits."""
    discriminator.register_forward_hook(lambda *given: change(given[-1]))
    return discriminator


def train(script, discriminator):
    """Do a step on three images."""
    torch.manual_seed(0)
    pair = mlp((1, 28, 28), 8)[0], discriminator
    optimizers = [torch.optim.SGD(network.parameters(), lr=1.0) for network in pair]
    module_of(script).train_step(*pair, *optimizers, torch.rand(3, 1, 28, 28) * 2 - 1, torch.randn(3, 8))


REFUSED = {  # its discriminator, what is said, and by which scripts if not by gan_one_stage alone
    "batch normalisation": (lambda: head(nn.ReLU(), nn.BatchNorm2d(4)), MIXED, SCRIPTS),
    "without running statistics": (lambda: head(nn.BatchNorm2d(4, track_running_stats=False)).eval(), MIXED),
    "a look across the batch": (lambda: head(BatchDeviation()), MIXED),
    "a logit for each patch": (lambda: patch_discriminator(1, 4, 2), r"\(3, 1\), but this one gives \(3, 1, 5, 5\)"),
    "one logit for all": (lambda: nn.Sequential(head(), nn.Flatten(0), nn.Linear(3, 1)), r"gives \(1,\) for 3"),
    "two logits a sample": (lambda: nn.Sequential(nn.Flatten(), nn.Linear(784, 2)), r"gives \(3, 2\) for 3 samples"),
    "a list": (lambda: changed(head(), lambda logits: [logits] * 2), r"must give logits \(N, \.\.\.\)", SCRIPTS[1:]),
    "patch as sample": (lambda: nn.Sequential(patch_discriminator(1, 4, 2), nn.Flatten(0)), "must give", SCRIPTS[1:]),
    "compiled": (lambda: torch.compile(head(), backend="aot_eager"), "double backward", SCRIPTS[1:]),
}
CASES = [
    (script, make, words, name)
    for name, (make, words, *scripts) in REFUSED.items()
    for script in (scripts[0] if scripts else SCRIPTS[:1])
]


@pytest.mark.parametrize(("script", "make", "words", "name"), CASES, ids=[f"{case[0]}-{case[-1]}" for case in CASES])
def test_a_step_refuses_a_discriminator_before_it_changes_a_weight(script, make, words, name):
    discriminator = make()
    before = copy.deepcopy([*discriminator.parameters()])
    for _ in range(2):  # also the second time
        with functorch_config.patch(donated_buffer=False), pytest.raises((ValueError, RuntimeError), match=words):
            train(script, discriminator)
    assert all(p.equal(q) for p, q in zip(discriminator.parameters(), before, strict=True))


def test_autocast_to_float16_is_refused_by_one_stage_although_the_logits_are_float32():
    with torch.autocast("cpu", torch.float16), pytest.raises(ValueError, match="underflow in float16"):
        train("gan_one_stage", changed(head(), torch.Tensor.float))


@pytest.mark.parametrize("script", SCRIPTS)
def test_batch_normalisation_in_evaluation_mode_is_let_through_and_a_look_that_starts_at_zero_for_a_step(script):
    train(script, head(nn.BatchNorm2d(4)).eval())
    discriminator = head(BatchDeviation())
    nn.init.zeros_(discriminator[-1].weight)
    train(script, discriminator)
    with pytest.raises(ValueError, match=MIXED):
        train(script, discriminator)


def test_the_look_for_dependence_changes_neither_the_discriminator_nor_the_random_numbers():
    discriminator = head(nn.Dropout(0.5), nn.utils.parametrizations.spectral_norm(nn.Conv2d(4, 4, 1)))
    discriminator[0].eval()  # a mode of its own, to be kept
    state, modes = copy.deepcopy(discriminator.state_dict()), [m.training for m in discriminator.modules()]
    drawn = torch.get_rng_state()
    require_per_sample(discriminator, torch.ones(3, 1, 28, 28))
    assert torch.get_rng_state().equal(drawn)
    assert [m.training for m in discriminator.modules()] == modes
    assert all(value.equal(state[name]) for name, value in discriminator.state_dict().items())


@pytest.mark.parametrize("wrap", [nn.DataParallel, DistributedDataParallel])
def test_the_look_for_dependence_is_no_pass_of_a_wrapper_for_which_other_processes_would_wait(wrap, one_process_group):
    discriminator, passes = wrap(head(nn.BatchNorm2d(4))), []
    discriminator.register_forward_hook(lambda *_: passes.append(1))
    with torch.no_grad(), pytest.raises(ValueError, match=MIXED):  # also where the caller records no gradients
        require_per_sample(discriminator, torch.ones(3, 1, 28, 28))
    assert passes == []
