"""Compiling a network in place."""

import torch
from torch import nn
from torch._functorch import config as functorch_config


def compile_in_place(network: nn.Module) -> None:
    """Compile the calls of `network` by torch.compile; its parameters, its state and its copies stay as they are.

    `network.compile()` does the same, but in many versions of PyTorch (2.6 and 2.7 among them) it leaves an
    nn.Sequential as it is, without a word (https://github.com/pytorch/pytorch/issues/150915).
    """
    # A compiled backward pass reuses its buffers and refuses retain_graph=True, unless this is off.
    functorch_config.donated_buffer = False
    network._compiled_call_impl = torch.compile(lambda *samples: network._call_impl(*samples))
