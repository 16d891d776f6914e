"""A published run shows what the run showed, but for every second picture."""

import numpy as np
from PIL import Image
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from common.run_options import GanOptions
from scripts import gan_detach, publish_runs


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
    assert {event.step for event in after.Images("samples")} <= {0, 2, 4, 6, 7}
    assert after.Images("samples")[-1] == before.Images("samples")[-1]
    assert {path.name for path in (tmp_path / "published").iterdir()} == {"config.json", "events.out.tfevents.0"}

    strip = np.array(publish_runs.filmstrip(run))
    assert strip.shape == (234, 5 * 234 + 4 * 12)  # four digits of 58 pixels each way, and an edge of two
    for frame, step in enumerate([0, 1, 2, 4, 7]):
        grid = np.array(Image.open(run / "samples" / f"step-{step:06d}.png"))
        assert np.array_equal(strip[:, frame * 246 :][:, :234], grid[:234, :234])
