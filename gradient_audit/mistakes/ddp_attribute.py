"""An attribute of a wrapped network."""

from torch import nn

from gradient_audit.mistakes.one_weight import one_weight_gan

MESSAGES = ("'DistributedDataParallel' object has no attribute", "'DataParallel' object has no attribute")
WHY = """The wrapper has the network as .module, and forwards only forward(). For layers called without the
wrapper, gradients are not averaged."""
CURE = "wrapped.module.weight; move the computation into forward()."
RIGHT_RETURNS = [[0.5]]


def wrong():
    generator, _, _, _ = one_weight_gan()
    return nn.DataParallel(generator).weight


def right():
    generator, _, _, _ = one_weight_gan()
    return nn.DataParallel(generator).module.weight
