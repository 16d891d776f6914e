"""The settings change how a step is computed, not what."""

import copy

import pytest
import torch

from common.models import MODELS
from scripts.benchmarks import compare_settings
from scripts.benchmarks.compare_settings import Options, contender, main

ADAMS = [("fused", True), ("foreach", True), ("foreach", False)]


@pytest.mark.numerics
@pytest.mark.parametrize(
    "setting", [{"memory_format": torch.contiguous_format}, *({form: on} for form, on in ADAMS)], ids=str
)
def test_a_setting_changes_the_time_and_not_the_update(setting, monkeypatch):
    """Adam's eps is raised from 1e-8: with that, a gradient that is nothing but rounding would move a weight."""
    adam = torch.optim.Adam
    monkeypatch.setattr(torch.optim, "Adam", lambda *arguments, **options: adam(*arguments, eps=1e-3, **options))
    torch.manual_seed(0)
    networks = [network.double() for network in MODELS["conv"]((1, 28, 28), 8)]
    real, z = torch.rand(3, 1, 28, 28, dtype=torch.float64) * 2 - 1, torch.randn(3, 8, dtype=torch.float64)
    others = copy.deepcopy(networks)
    contender(networks)(real, z)
    contender(others, **setting)(real, z)
    for network, other in zip(networks, others, strict=True):
        for shipped, changed in zip(network.parameters(), other.parameters(), strict=True):
            torch.testing.assert_close(changed, shipped, rtol=0, atol=1e-12)  # weights are about 1, a step is 1e-3
            torch.testing.assert_close(changed.grad, shipped.grad, rtol=0, atol=1e-12 * shipped.grad.abs().max())


def test_every_setting_has_its_row(capsys, monkeypatch):
    monkeypatch.setattr(torch, "compile", lambda function: function)  # which takes half a minute
    main(Options(model="mlp", batch_size=2, repeats=1, device="cpu"))
    rows = capsys.readouterr().out.split("\n\n")[1].splitlines()[2:]
    assert [row.split("|")[1].strip() for row in rows] == [
        compare_settings.SHIPPED,
        "contiguous",
        "without version counters",
        "foreach Adam",
        "for-loop Adam",
        "--precision bf16",
        "--compile",
    ]
    assert rows[0].split("|")[3].strip() == "1.00 (1.00-1.00)"


def test_the_shipped_step_raises_the_version_counters_and_the_plain_fused_one_does_not():
    for setting, steps in (({}, 1), ({"fused": True}, 0)):
        networks = MODELS["mlp"]((1, 28, 28), 8)
        before = networks[0][0].weight._version
        contender(networks, **setting)(torch.zeros(2, 1, 28, 28), torch.randn(2, 8))
        assert networks[0][0].weight._version == before + steps


def test_bad_options_are_refused_before_anything_is_loaded_or_measured(monkeypatch, refusal):
    monkeypatch.setattr(compare_settings, "load_images", lambda *_: pytest.fail("the digits were resized"))
    for option in ("--repeats=0", "--image-size=30"):
        assert option.replace("=", " ") in refusal("compare_settings", option)
