"""A network loads the weights of a wrapped one."""

from torch import nn

from gradient_audit.mistakes.one_weight import one_weight_gan

MESSAGES = (
    'Unexpected key(s) in state_dict: "module.',
    'Unexpected key(s) in state_dict: "_orig_mod.',
    'Missing key(s) in state_dict: "module.',
    'Missing key(s) in state_dict: "_orig_mod.',
)
WHY = """torch.compile() stores names with the prefix _orig_mod., DistributedDataParallel and DataParallel with
module.; the plain network has neither."""
CURE = """Store the network itself: compiled._orig_mod.state_dict(), ddp.module.state_dict(); or
network.compile(), which changes no names."""
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
