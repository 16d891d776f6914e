"""The names of a wrapped network: module., _orig_mod., n_averaged."""

from torch.optim.swa_utils import AveragedModel

from gradient_audit.mistakes.one_weight import one_weight_gan

MESSAGES = (
    'Unexpected key(s) in state_dict: "module.',
    'Unexpected key(s) in state_dict: "_orig_mod.',
    'Unexpected key(s) in state_dict: "n_averaged"',
    'Missing key(s) in state_dict: "module.',
    'Missing key(s) in state_dict: "_orig_mod.',
    'Missing key(s) in state_dict: "n_averaged"',
    "'DistributedDataParallel' object has no attribute",
    "'DataParallel' object has no attribute",
    "'AveragedModel' object has no attribute",
)
WHY = """DistributedDataParallel, DataParallel and AveragedModel hold the network as .module and forward only forward();
they store names with the prefix module., torch.compile() with _orig_mod.; AveragedModel also stores n_averaged, the
number of its updates. The plain network has none of these."""
CURE = """Store the network itself: ddp.module.state_dict(), average.module.state_dict(),
compiled._orig_mod.state_dict(); or network.compile(), which changes no names. If there is only the file, take the
prefix from its names, as here, once for each wrapper. An attribute is wrapped.module.weight; the layers of a DDP
alone do not average gradients."""
RIGHT_RETURNS = [[0.5]]


def wrong():
    generator, discriminator, _, _ = one_weight_gan()
    weights = AveragedModel(generator).state_dict()  # or torch.load(file)
    discriminator.load_state_dict(weights)
    return discriminator.weight


def right():
    generator, discriminator, _, _ = one_weight_gan()
    weights = AveragedModel(generator).state_dict()  # or torch.load(file)
    weights.pop("n_averaged")
    discriminator.load_state_dict({name.removeprefix("module."): value for name, value in weights.items()})
    return discriminator.weight
