"""Each silent mistake changes gan_detach.py, runs without an error, and does what its name says."""

import runpy

import pytest
import torch
from helpers import ROOT

from common.errors import BadInput
from common.run.options import GanOptions
from scripts.benchmarks.gallery_edits import MISTAKES
from scripts.tools import silent_mistakes

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
    """Return each network's gradients after two steps, and its change of weights, by a fixed pair of networks."""
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


def test_a_mistake_whose_text_is_not_in_the_script_is_told(tmp_path):
    with pytest.raises(ValueError, match="has 0 times"):
        BY_NAME["no-zero-grad"].apply("pass")


@pytest.mark.tools
def test_the_tool_publishes_curves_samples_and_a_table(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(silent_mistakes, "fid", lambda script, run: 1.5)  # evaluate.py has tests of its own
    silent_mistakes.main(silent_mistakes.Options(("batch-norm",), tmp_path / "out", steps=2))
    table = (tmp_path / "out" / "table.md").read_text()
    assert table in capsys.readouterr().out
    assert [line.split("|")[1].strip() for line in table.splitlines()[2:]] == ["`batch-norm`"]
    assert {path.name for path in (tmp_path / "out").iterdir()} == {"batch-norm", "samples.png", "table.md"}


def test_an_unknown_mistake_and_a_foreign_folder_are_refused_before_anything_runs(tmp_path):
    with pytest.raises(BadInput, match="--mistakes typo: not one of healthy, "):
        silent_mistakes.main(silent_mistakes.Options(("typo",), tmp_path / "out"))
    (tmp_path / "out" / "healthy").mkdir(parents=True)
    (tmp_path / "out" / "healthy" / "mine.txt").touch()
    with pytest.raises(BadInput, match="was not published"):
        silent_mistakes.main(silent_mistakes.Options(("healthy",), tmp_path / "out"))
