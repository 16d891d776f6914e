"""A published run shows what the run showed, but for every second picture, and replaces nothing else."""

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from processes import forked
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from common.errors import BadInput
from common.run.options import GanOptions
from scripts import gan_detach
from scripts.benchmarks import publish_runs


def test_a_published_run_has_all_curves_and_every_second_picture(tmp_path):
    options = GanOptions(
        model="mlp", batch_size=2, steps=7, sample_every=1, log_every=1, runs_dir=tmp_path, device="cpu"
    )
    gan_detach.main(options)
    (run,) = (tmp_path / "gan_detach").iterdir()
    publish_runs.thin(run, tmp_path / "published")
    before, after = (EventAccumulator(str(folder), {"images": 0}).Reload() for folder in (run, tmp_path / "published"))
    assert before.Tags() == after.Tags()
    for tag in before.Tags()["scalars"]:
        assert before.Scalars(tag) == after.Scalars(tag)
    for tag in before.Tags()["tensors"]:
        assert before.Tensors(tag) == after.Tensors(tag)
    assert [event.step for event in before.Images("samples")][-4:] == [4, 5, 6, 7]
    assert {event.step for event in after.Images("samples")} <= {2, 4, 6, 7}
    assert after.Images("real") == before.Images("real")
    assert after.Images("samples")[-1] == before.Images("samples")[-1]
    assert {path.name for path in (tmp_path / "published").iterdir()} == {"config.json", "events.out.tfevents.0"}

    strip = np.array(publish_runs.filmstrip(run))
    assert strip.shape == (234, 5 * 234 + 4 * 12)  # four digits of 58 pixels each way, and an edge of two
    for frame, step in enumerate([0, 1, 2, 4, 7]):
        grid = np.array(Image.open(run / "samples" / f"step-{step:06d}.png"))
        assert np.array_equal(strip[:, frame * 246 :][:, :234], grid[:234, :234])


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A run as a training script leaves it, of three steps."""
    folder = tmp_path_factory.mktemp("runs")
    gan_detach.main(GanOptions(model="mlp", batch_size=2, steps=3, sample_every=1, runs_dir=folder, device="cpu"))
    (run,) = (folder / "gan_detach").iterdir()
    return run


def contents(folder):
    return {str(path.relative_to(folder)): path.is_file() and path.read_bytes() for path in folder.rglob("*")}


def strange(folder, run):
    """What publishing must never touch: a user's runs, and published folders that a user has put something into."""
    shutil.copytree(run, folder / "runs" / "gan_detach" / run.name)
    published = folder / "published" / "gan_detach"
    published.mkdir(parents=True)
    (published / "config.json").touch()
    (published / "notes.txt").touch()
    (folder / "nested" / "gan_detach" / "samples.png").mkdir(parents=True)
    (folder / "linked").mkdir()
    (folder / "linked" / "gan_detach").symlink_to(folder / "runs" / "gan_detach")
    (folder / "file").mkdir()
    (folder / "file" / "gan_detach").touch()
    (folder / "not_a_folder").touch()
    return ["runs", "published", "nested", "linked", "file", "not_a_folder"]


def test_what_was_not_published_is_refused_before_anything_runs(finished, tmp_path, monkeypatch, refusal):
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: pytest.fail("a script was run"))
    names = strange(tmp_path, finished)
    before = contents(tmp_path)
    for name in names:
        output = tmp_path / name
        assert str(output) in refusal("publish_runs", "--scripts", "gan_detach", "--output", output)
    assert contents(tmp_path) == before


@pytest.mark.tools
def test_the_users_other_runs_stay_and_what_was_published_is_replaced(finished, tmp_path):
    """As a process: `--output runs`, with runs of another script in it."""
    output = tmp_path / "runs"
    users = output / "gan_resample" / "20260101-120000"
    users.mkdir(parents=True)
    (users / "checkpoint.pt").write_text("precious")
    publish_runs.publish("gan_detach", finished, output, digits=True)
    before = contents(output / "gan_detach")
    arguments = ["--scripts", "gan_detach", "--output", "runs", "--steps", 2]
    done = forked(publish_runs.__file__, *arguments, folder=tmp_path)
    assert done.returncode == 0, done.stderr
    after = contents(output / "gan_detach")
    assert before.keys() == after.keys() == publish_runs.PUBLISHED
    assert all(before[name] != after[name] for name in after)
    assert (users / "checkpoint.pt").read_text() == "precious"
    assert {path.name for path in output.iterdir()} == {"gan_detach", "gan_resample"}


@pytest.mark.parametrize("failing", ["thin", "replace"])
def test_an_interruption_leaves_what_was_published_before(failing, finished, tmp_path, monkeypatch):
    output = tmp_path / "reference"
    output.mkdir()
    publish_runs.publish("gan_detach", finished, output, digits=True)
    before = contents(output)

    def interrupted(*_):
        raise KeyboardInterrupt

    rename = Path.replace
    if failing == "thin":
        monkeypatch.setattr(publish_runs, "filmstrip", interrupted)
    else:
        monkeypatch.setattr(Path, "replace", lambda a, b: interrupted() if a.name == "new" else rename(a, b))
    with pytest.raises(KeyboardInterrupt):
        publish_runs.publish("gan_detach", finished, output, digits=True)
    assert contents(output) == before


def test_what_was_put_there_while_the_script_ran_stays(finished, tmp_path):
    output = tmp_path / "reference"
    (output / "gan_detach").mkdir(parents=True)
    (output / "gan_detach" / "notes.txt").touch()
    with pytest.raises(BadInput, match=r"notes\.txt was not published"):
        publish_runs.publish("gan_detach", finished, output, digits=True)
    assert list(contents(output)) == ["gan_detach", "gan_detach/notes.txt"]


def test_an_output_that_no_file_system_takes_is_refused_by_name(tmp_path):
    with pytest.raises(BadInput, match="cannot be written"):
        publish_runs.check(publish_runs.Options(output=tmp_path / ("9" * 400)))
