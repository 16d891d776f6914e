"""The settings change how a step is computed, not what."""

import copy

import pytest
import torch

from common.models import MODELS
from common.run.command_line import BadInput
from scripts.tools import compare_settings
from scripts.tools.compare_settings import Options, contender, main


@pytest.mark.numerics
@pytest.mark.parametrize(
    "setting", [{"memory_format": torch.contiguous_format}, {"foreach": True}, {"foreach": False}], ids=str
)
def test_a_setting_changes_the_time_and_not_the_update(setting):
    """Adam's eps is raised from 1e-8, which makes 1e8 times more of a gradient that is nothing but rounding."""
    torch.manual_seed(0)
    networks = [network.double() for network in MODELS["dcgan"]((1, 28, 28), 8)]
    real, z = torch.rand(3, 1, 28, 28, dtype=torch.float64) * 2 - 1, torch.randn(3, 8, dtype=torch.float64)
    others = copy.deepcopy(networks)
    contender(networks, fused=True, eps=1e-3)(real, z)
    contender(others, **{"fused": None if "foreach" in setting else True, "eps": 1e-3} | setting)(real, z)
    for network, other in zip(networks, others, strict=True):
        for shipped, changed in zip(network.parameters(), other.parameters(), strict=True):
            torch.testing.assert_close(changed, shipped, rtol=0, atol=1e-12)  # weights are about 1, a step is 1e-3
            torch.testing.assert_close(changed.grad, shipped.grad, rtol=0, atol=1e-12 * shipped.grad.abs().max())


def test_every_setting_has_its_row(capsys, monkeypatch):
    monkeypatch.setattr(torch.nn.Module, "compile", lambda network: None)  # which takes half a minute
    main(Options(model="mlp", batch_size=2, repeats=1, device="cpu"))
    rows = capsys.readouterr().out.split("\n\n")[1].splitlines()[2:]
    assert [row.split("|")[1].strip() for row in rows] == [
        compare_settings.SHIPPED, "contiguous", "foreach Adam", "for-loop Adam", "--precision bf16", "--compile"
    ]  # fmt: skip
    assert rows[0].split("|")[3].strip() == "1.00 (1.00-1.00)"


def test_bad_options_are_refused_before_anything_is_loaded_or_measured(monkeypatch):
    monkeypatch.setattr(compare_settings, "load_images", lambda *_: pytest.fail("the digits were resized"))
    for options, named in ((Options(repeats=0), "--repeats 0"), (Options(image_size=30), "--image-size 30")):
        with pytest.raises(BadInput, match=named):
            main(options)
