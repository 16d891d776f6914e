"""A published run shows what the run showed; each silent mistake changes gan_detach.py and runs without an error."""

import re
import runpy
import sys
from unittest import mock

import pytest
import torch
from helpers import ROOT, TRAINING, call, contents, path_of, saved
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from common.errors import Stopped
from common.options import GanOptions
from scripts.benchmarks import publish_runs
from scripts.benchmarks.harness import run_script
from scripts.benchmarks.publish_runs import audit_findings
from scripts.benchmarks.silent_mistakes import MISTAKES

SOURCE = path_of("gan_detach").read_text()
BY_NAME = {mistake.name: mistake for mistake in MISTAKES}


def test_a_published_run_has_all_curves_and_texts_and_the_pictures_after_the_first_step(tmp_path):
    options = "--model mlp --batch-size 2 --steps 7 --sample-every 1 --log-every 1 --device cpu --runs-dir"
    call("gan_detach", *options.split(), tmp_path)
    (run,) = (tmp_path / "gan_detach").iterdir()
    publish_runs.publish(run, tmp_path / "published", "**Sign:** none.")
    before, after = (EventAccumulator(str(folder), {"images": 0}).Reload() for folder in (run, tmp_path / "published"))
    for kind, find in (("scalars", "Scalars"), ("tensors", "Tensors")):
        assert before.Tags()[kind] == after.Tags()[kind]
        for tag in before.Tags()[kind]:
            assert getattr(before, find)(tag) == getattr(after, find)(tag)
    assert "mistake/text_summary" in after.Tags()["tensors"]
    assert sorted(after.Tags()["images"]) == ["images/samples", "real"]
    assert [event.step for event in after.Images("images/samples")] == [1, 2, 3, 4, 5, 6, 7]
    assert set(contents(tmp_path / "published")) == {"events.out.tfevents.0"}


def test_a_script_that_fails_is_named_with_its_status(tmp_path):
    script = tmp_path / "fails.py"
    script.write_text("raise SystemExit(3)")
    with pytest.raises(Stopped, match=r"^fails.py: failed with status 3, and the message above$"):
        run_script(script, [], "runs", tmp_path)


def test_every_training_script_is_published_and_the_page_of_curves_has_a_row_for_it():
    rows = re.findall(r"^\| `(\w+)\.py` \|", (ROOT / "docs" / "curves.md").read_text(), re.M)
    assert {*rows} == {*publish_runs.SCRIPTS} == {*TRAINING}


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
    for name in (mistake.name for mistake in MISTAKES if mistake.edits):
        sick = trained(name, tmp_path, monkeypatch)
        assert (name == "detached-fakes") == (not sick["optimizer_g"]["state"])  # G has never had a gradient
        pairs = zip(healthy["discriminator"].values(), sick["discriminator"].values(), strict=True)
        distance = max((ours - theirs).abs().max().item() for ours, theirs in pairs)
        assert distance == 0 if name == "penalty-without-graph" else distance > 1e-4, name
    lr = GanOptions().for_images(torch.zeros(1, 1, 28, 28)).lr
    assert BY_NAME["g-too-fast"].arguments == ("--lr", f"{20 * lr:g}", "--lr-d", f"{lr:g}")


def test_an_audit_that_gives_up_is_told_from_one_that_finds_nothing(tmp_path, monkeypatch):
    def cell(report, status):
        (tmp_path / "script.md").write_text(report)
        monkeypatch.setattr(publish_runs.subprocess, "run", lambda *_, **__: mock.Mock(returncode=status))
        return audit_findings(tmp_path / "script.py", ())

    assert cell("Nothing wrong, nothing wasted.", 0) == "-"
    assert cell("Wrong.\n\n- **stale**: an error\n- **dead**: one\n- **stale**: another", 1) == "stale, dead"
    assert cell("The audit gave up: KeyError.\n\n- **stale**: an error", 1) == "stale, gave up"
    assert cell("No backward pass ran.", 1) == "gave up"


@pytest.mark.tools
def test_the_tool_publishes_curves_samples_and_a_table(tmp_path, capsys, monkeypatch):
    figures = {"samples": {"fid": 1.5}}  # evaluate.py has tests of its own
    monkeypatch.setattr(publish_runs.evaluate, "evaluate_run", lambda options: figures)
    monkeypatch.setattr(publish_runs, "MISTAKES", (BY_NAME["no-zero-grad"],))
    call("publish_runs", "--what", "mistakes", "--output", tmp_path, "--steps", 2)
    table = (tmp_path / "mistakes" / "table.md").read_text()
    assert table in capsys.readouterr().out
    rows = [[cell.strip() for cell in line.split("|")] for line in table.splitlines()[2:]]
    assert [(row[1], row[-2]) for row in rows] == [("`no-zero-grad`", "stale")]  # the last one is by the audit
    assert {path.name for path in (tmp_path / "mistakes").iterdir()} == {"no-zero-grad", "samples.png", "table.md"}
    call("publish_runs", "--scripts", "gan_conditional", "cyclegan", "--output", tmp_path, "--steps", 1)
    assert {*contents(tmp_path / "reference" / "gan_conditional")} == {"events.out.tfevents.0", "samples.png"}
    assert {*contents(tmp_path / "reference_cyclegan")} == {"cyclegan", "cyclegan/events.out.tfevents.0"}
    printed = capsys.readouterr().out
    for name in ("reference", "reference_cyclegan"):
        assert f"TensorBoard: tensorboard --logdir {tmp_path / name}\n" in printed


def test_the_published_mistakes_are_those_of_the_list_and_a_sign_quotes_figures_of_its_row():
    published = ROOT / "runs" / "mistakes"
    table = (published / "table.md").read_text().splitlines()[2:]
    assert [line.split("|")[1].strip(" `") for line in table] == list(BY_NAME)
    assert {path.parent.name for path in published.glob("*/events*")} == set(BY_NAME)
    numbers = [[*map(float, re.findall(r" (\d+\.\d\d) ", line))] for line in table]
    for row, (name, mistake) in zip(numbers, BY_NAME.items(), strict=True):
        values = [0.69, *row, row[-1] / numbers[0][-1]]  # guessing, the row's own, its FID in those of `healthy`
        rounded = {f"{value:.{digits}f}" for value in values for digits in (1, 2)}
        assert {*re.findall(r"\d+\.\d+", mistake.sign)} <= rounded, name
        assert mistake.note().encode() in (published / name / "events.out.tfevents.0").read_bytes()
