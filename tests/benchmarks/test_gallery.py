"""Each silent mistake changes gan_detach.py, runs without an error, and does what its name says."""

import re
import runpy
import sys

import pytest
from helpers import ROOT, saved

from scripts.benchmarks import gallery
from scripts.benchmarks.publish_runs import source_hash

SOURCE = (ROOT / "scripts" / "gan_detach.py").read_text()
BY_NAME = {mistake.name: mistake for mistake in gallery.MISTAKES}


def trained(name, folder, monkeypatch):
    """Return the checkpoint of gan_detach.py with the mistake `name`, after two steps."""
    script = folder / f"{name.replace('-', '_')}.py"
    script.write_text(BY_NAME[name].change(SOURCE))
    small = "--model mlp --image-size 8 --batch-size 4 --steps 2 --device cpu --runs-dir"
    monkeypatch.setattr(sys, "argv", [script.name, *small.split(), str(folder / name)])
    runpy.run_path(str(script), run_name="__main__")
    return saved(folder / name)


def test_every_edit_applies_and_trains_without_an_error_to_something_else(tmp_path, monkeypatch):
    with pytest.raises(ValueError, match=r"^no-zero-grad: there is 0 times ' +optimizer_d"):
        BY_NAME["no-zero-grad"].change("of another text")
    healthy = trained("healthy", tmp_path, monkeypatch)
    for name in (mistake.name for mistake in gallery.MISTAKES if mistake.edits):
        sick = trained(name, tmp_path, monkeypatch)
        assert (name == "detached-fakes") == (not sick["optimizer_g"]["state"])  # G has never had a gradient
        pairs = zip(healthy["discriminator"].values(), sick["discriminator"].values(), strict=True)
        distance = max((ours - theirs).abs().max().item() for ours, theirs in pairs)
        assert distance == 0 if name == "penalty-without-graph" else distance > 1e-4, name


@pytest.mark.tools
def test_the_tool_publishes_curves_samples_and_a_table(tmp_path, capsys, monkeypatch):
    figures = {"samples": {"fid": 1.5}}  # evaluate.py has tests of its own
    monkeypatch.setattr(gallery.evaluate, "evaluate_run", lambda options: figures)
    monkeypatch.setattr(gallery, "MISTAKES", (BY_NAME["no-zero-grad"],))
    gallery.main(gallery.GalleryOptions(tmp_path / "out", steps=2))
    table = (tmp_path / "out" / "table.md").read_text()
    assert table in capsys.readouterr().out
    rows = [[cell.strip() for cell in line.split("|")] for line in table.splitlines()[2:]]
    assert [(row[1], row[-2]) for row in rows] == [("`no-zero-grad`", "stale")]  # the last one is by the audit
    assert {path.name for path in (tmp_path / "out").iterdir()} == {"no-zero-grad", "samples.png", "table.md"}


def test_the_published_runs_are_those_of_the_gallery_and_a_sign_quotes_figures_of_its_row():
    published = ROOT / "runs" / "mistakes"
    table = (published / "table.md").read_text().splitlines()[2:]
    assert [line.split("|")[1].strip(" `") for line in table] == list(BY_NAME)
    assert {path.parent.name for path in published.glob("*/events*")} == set(BY_NAME)
    numbers = [[*map(float, re.findall(r" (\d+\.\d\d) ", line))] for line in table]
    for row, (name, mistake) in zip(numbers, BY_NAME.items(), strict=True):
        values = [0.69, *row, row[-1] / numbers[0][-1]]  # guessing, the row's own, its FID in those of `healthy`
        rounded = {f"{value:.{digits}f}" for value in values for digits in (1, 2)}
        assert {*re.findall(r"\d+\.\d+", mistake.sign)} <= rounded, name
        events = (published / name / "events.out.tfevents.0").read_bytes()
        assert mistake.note().encode() in events
        assert {*re.findall(rb"hash of the source.{,40}([0-9a-f]{64})", events, re.DOTALL)} <= {
            source_hash(mistake.change(SOURCE)).encode()
        }, name
