"""The names of a wrapped network: module., _orig_mod., n_averaged."""

from torch.optim.swa_utils import AveragedModel

from gradient_audit.mistakes.one_weight import one_weight_gan

MESSAGES = (
    *(f'Unexpected key(s) in state_dict: "{name}' for name in ("module.", "_orig_mod.", "n_averaged")),
    *(f'Missing key(s) in state_dict: "{name}' for name in ("module.", "_orig_mod.", "n_averaged")),
    "DataParallel' object has no attribute",  # also DistributedDataParallel
    "'AveragedModel' object has no attribute",
)
WHY = """DistributedDataParallel, DataParallel and AveragedModel hold the network as .module and forward only forward().
Their names begin with module., those of torch.compile() with _orig_mod.; AveragedModel also stores n_averaged."""
CURE = """Store the network: ddp.module.state_dict(), average.module.state_dict(), compiled._orig_mod.state_dict(),
or network.compile(), which changes no names. If there is only the file, take the prefix from its names, as here, once
for each wrapper. An attribute is wrapped.module.weight; a DDP's module alone averages no gradients."""
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
