"""A published run shows what the run showed, but for every second picture, and replaces nothing else."""

import numpy as np
import pytest
from PIL import Image
from processes import forked
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from common.run.options import GanOptions
from scripts import gan_detach
from scripts.benchmarks import publish_runs


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A run as a training script leaves it, of seven steps, with a sample grid at each."""
    runs = tmp_path_factory.mktemp("runs")
    often = {"sample_every": 1, "log_every": 1}
    gan_detach.main(GanOptions(model="mlp", batch_size=2, steps=7, **often, runs_dir=runs, device="cpu"))
    (run,) = (runs / "gan_detach").iterdir()
    return run


def contents(folder):
    return {str(path.relative_to(folder)): path.is_file() and path.read_bytes() for path in folder.rglob("*")}


def test_a_published_run_has_all_curves_and_every_second_picture(finished, tmp_path):
    publish_runs.publish(finished, tmp_path, None)
    before, after = (EventAccumulator(str(folder), {"images": 0}).Reload() for folder in (finished, tmp_path))
    assert before.Tags() == after.Tags()
    for tag in before.Tags()["scalars"]:
        assert before.Scalars(tag) == after.Scalars(tag)
    for tag in before.Tags()["tensors"]:
        assert before.Tensors(tag) == after.Tensors(tag)
    assert [event.step for event in before.Images("images/samples")][-4:] == [4, 5, 6, 7]
    assert {event.step for event in after.Images("images/samples")} <= {2, 4, 6, 7}
    assert after.Images("real") == before.Images("real")
    assert after.Images("images/samples")[-1] == before.Images("images/samples")[-1]
    assert {path.name for path in tmp_path.iterdir()} == {"config.json", "events.out.tfevents.0"}


def test_texts_are_added_and_one_tag_is_left_out(finished, tmp_path):
    publish_runs.publish(finished, tmp_path, None, {"mistake": "**Sign:** none."}, without="real")
    tags = EventAccumulator(str(tmp_path)).Reload().Tags()
    before = EventAccumulator(str(finished)).Reload().Tags()
    assert tags["images"] == ["images/samples"]
    assert tags["scalars"] == before["scalars"]
    assert set(tags["tensors"]) == {*before["tensors"], "mistake/text_summary"}


def first_groups(log_folder):
    """Return the two groups of tags that TensorBoard opens: the first two in its order, of all runs together."""
    runs = [EventAccumulator(str(path.parent)).Reload() for path in log_folder.glob("*/events*")]
    tags = {tag for run in runs for kind in ("scalars", "images") for tag in run.Tags()[kind]}
    return sorted({tag.partition("/")[0] for tag in tags})[:2]


@pytest.mark.parametrize("name", ["reference", "reference_cyclegan", "mistakes"])
def test_the_published_runs_open_on_pictures_of_the_networks_and_on_losses(name):
    assert first_groups(publish_runs.ROOT / "runs" / name) == ["images", "loss"]


def test_the_published_runs_have_no_curve_that_is_always_zero_and_wgan_gp_has_losses_of_its_own():
    for path in (publish_runs.ROOT / "runs").glob("*/*/events*"):
        run = EventAccumulator(str(path.parent)).Reload()
        for tag in run.Tags()["scalars"]:
            assert any(point.value for point in run.Scalars(tag)), (path, tag)
        if path.parent.name == "gan_wgan_gp":
            losses = {tag for tag in run.Tags()["scalars"] if tag.startswith("loss/")}
            assert losses == {"loss/wasserstein/critic", "loss/wasserstein/generator"}


def test_the_film_strip_shows_the_same_noise_at_five_steps(finished):
    strip = np.array(publish_runs.filmstrip(finished))
    assert strip.shape == (234, 5 * 234 + 4 * 12)  # four digits of 58 pixels each way, and an edge of two
    for frame, step in enumerate([0, 1, 2, 4, 7]):
        grid = np.array(Image.open(finished / "samples" / f"step-{step:06d}.png"))
        assert np.array_equal(strip[:, frame * 246 :][:, :234], grid[:234, :234])


@pytest.mark.tools
def test_the_users_files_stay_and_what_was_published_is_replaced(finished, tmp_path):
    """As a process: `--output runs`, with a run of the same script in it."""
    published = tmp_path / "runs" / "gan_detach"
    users = published / "20260101-120000" / "checkpoint.pt"
    users.parent.mkdir(parents=True)
    users.write_text("precious")
    publish_runs.publish(finished, published, publish_runs.filmstrip)
    before = contents(published)
    arguments = ["--scripts", "gan_detach", "--output", "runs", "--steps", 2]
    done = forked(publish_runs.__file__, *arguments, folder=tmp_path)
    assert done.returncode == 0, done.stderr
    after = contents(published)
    assert before.keys() == after.keys()
    for name in before:
        is_published = name in ("config.json", "events.out.tfevents.0", "samples.png")
        assert (before[name] != after[name]) == is_published
    assert users.read_text() == "precious"
