"""A published run shows what the run showed, but for the samples of step 0, and replaces nothing else."""

import re
import shutil

import pytest
from helpers import ROOT, call, contents, path_of
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from scripts.benchmarks import publish_runs


@pytest.fixture(scope="module")
def sampled(tmp_path_factory):
    """A run as a training script leaves it, of seven steps, with a sample grid at each."""
    runs = tmp_path_factory.mktemp("runs")
    options = "--model mlp --batch-size 2 --steps 7 --sample-every 1 --log-every 1 --device cpu --runs-dir"
    call("gan_detach", *options.split(), runs)
    (run,) = (runs / "gan_detach").iterdir()
    return run


def test_a_published_run_has_all_curves_and_texts_and_the_pictures_after_the_first_step(sampled, tmp_path):
    run = tmp_path / "run"
    shutil.copytree(sampled, run)
    (tmp_path / "published").mkdir()
    publish_runs.publish(run, tmp_path / "published", path_of("gan_detach"), "mistake", "**Sign:** none.")
    before, after = (EventAccumulator(str(folder), {"images": 0}).Reload() for folder in (run, tmp_path / "published"))
    for kind, find in (("scalars", "Scalars"), ("tensors", "Tensors")):
        assert before.Tags()[kind] == after.Tags()[kind]
        for tag in before.Tags()[kind]:
            assert getattr(before, find)(tag) == getattr(after, find)(tag)
    assert {"mistake/text_summary", "hash of the source/text_summary"} <= {*after.Tags()["tensors"]}
    assert sorted(after.Tags()["images"]) == ["images/samples", "real"]
    assert [event.step for event in after.Images("images/samples")] == [1, 2, 3, 4, 5, 6, 7]
    assert set(contents(tmp_path / "published")) == {"events.out.tfevents.0"}


def test_the_hash_of_a_published_run_where_it_has_one_is_that_of_the_source_without_docstrings():
    source_hash, source = publish_runs.source_hash, path_of("gan_detach").read_text()
    assert source_hash(source) == source_hash(source.replace("One update of", "Update").replace("# under", "# with"))
    assert source_hash(source) != source_hash(source.replace("options.steps // 2", "options.steps // 3"))
    for events in (ROOT / "runs").glob("reference*/*/events*"):
        hashes = re.findall(rb"hash of the source.{,40}([0-9a-f]{64})", events.read_bytes(), re.DOTALL)
        assert {*hashes} <= {source_hash(path_of(events.parent.name).read_text()).encode()}, f"publish {events} again"
