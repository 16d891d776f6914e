"""The names of a wrapped network: module., _orig_mod."""

from torch import nn

from gradient_audit.mistakes.one_weight import one_weight_gan

MESSAGES = (
    'Unexpected key(s) in state_dict: "module.',
    'Unexpected key(s) in state_dict: "_orig_mod.',
    'Missing key(s) in state_dict: "module.',
    'Missing key(s) in state_dict: "_orig_mod.',
    "'DistributedDataParallel' object has no attribute",
    "'DataParallel' object has no attribute",
)
WHY = """DistributedDataParallel and DataParallel hold the network as .module and forward only forward(); they store
names with the prefix module., torch.compile() with _orig_mod.; the plain network has neither."""
CURE = """Store the network itself: ddp.module.state_dict(), compiled._orig_mod.state_dict(); or network.compile(),
which changes no names. An attribute is wrapped.module.weight; its layers alone do not average gradients."""
RIGHT_RETURNS = [[0.5]]


def wrong():
    generator, discriminator, _, _ = one_weight_gan()
    wrapped = nn.DataParallel(generator)
    discriminator.load_state_dict(wrapped.state_dict())
    return discriminator.weight


def right():
    generator, discriminator, _, _ = one_weight_gan()
    wrapped = nn.DataParallel(generator)
    discriminator.load_state_dict(wrapped.module.state_dict())
    return discriminator.weight
