"""Each silent mistake changes gan_detach.py, runs without an error, and does what its name says."""

import runpy

import pytest
import torch
from helpers import ROOT
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from common.options import GanOptions
from scripts.benchmarks import gallery
from scripts.benchmarks.gallery import MISTAKES

SOURCE = (ROOT / "scripts" / "gan_detach.py").read_text()
BY_NAME = {mistake.name: mistake for mistake in MISTAKES}


def module(name, folder):
    """Return the globals of gan_detach.py with the mistake `name`."""
    script = folder / f"{name.replace('-', '_')}.py"
    script.write_text(BY_NAME[name].apply(SOURCE))
    return runpy.run_path(str(script))


@pytest.mark.parametrize("name", BY_NAME)
def test_a_mistake_trains_without_an_error(name, tmp_path):
    module(name, tmp_path)["main"](GanOptions(steps=2, batch_size=4, device="cpu", runs_dir=tmp_path / "runs"))
    (run,) = (tmp_path / "runs").glob("*/*")
    assert (run / "checkpoint.pt").exists()


def one_step(name, folder):
    """Return the change of weights of a fixed G and D in two steps."""
    torch.manual_seed(0)
    pair = torch.nn.Linear(3, 4), torch.nn.Linear(4, 1)
    optimizers = [torch.optim.SGD(network.parameters(), 0.1) for network in pair]
    step = module(name, folder)["train_step"]
    before = [network.weight.clone() for network in pair]
    for _ in range(2):
        step(*pair, *optimizers, torch.randn(5, 4), torch.randn(5, 3))
    return [network.weight - start for network, start in zip(pair, before, strict=True)]


@pytest.mark.parametrize(
    "name", ["sigmoid-twice", "labels-broadcast", "d-steps-on-g-loss", "no-zero-grad", "images-in-0-1"]
)
def test_a_mistake_in_the_step_changes_what_it_does(name, tmp_path):
    healthy, sick = one_step("healthy", tmp_path), one_step(name, tmp_path)
    assert not torch.allclose(healthy[1], sick[1], rtol=1e-3)


def test_with_detached_fakes_the_generator_never_changes(tmp_path):
    assert not one_step("detached-fakes", tmp_path)[0].any()


@pytest.mark.tools
def test_the_tool_publishes_curves_samples_and_a_table(tmp_path, capsys, monkeypatch):
    figures = {"samples": {"fid": 1.5}}  # evaluate.py has tests of its own
    monkeypatch.setattr(gallery.evaluate, "evaluate_run", lambda options: figures)
    monkeypatch.setattr(gallery, "MISTAKES", (BY_NAME["no-zero-grad"],))
    gallery.main(gallery.GalleryOptions(tmp_path / "out", steps=2))
    table = (tmp_path / "out" / "table.md").read_text()
    assert table in capsys.readouterr().out
    assert [line.split("|")[1].strip() for line in table.splitlines()[2:]] == ["`no-zero-grad`"]
    assert {path.name for path in (tmp_path / "out").iterdir()} == {"no-zero-grad", "samples.png", "table.md"}


def test_the_published_runs_are_those_of_the_gallery():
    published = ROOT / "runs" / "mistakes"
    table = (published / "table.md").read_text().splitlines()[2:]
    assert [line.split("|")[1].strip(" `") for line in table] == list(BY_NAME)
    assert {path.parent.name for path in published.glob("*/events*")} == set(BY_NAME)
    for name, mistake in BY_NAME.items():
        run = EventAccumulator(str(published / name)).Reload()
        (note,) = run.Tensors("mistake/text_summary")
        assert note.tensor_proto.string_val[0].decode() == mistake.note()
