"""Every training script as its users run it: another process, another folder, two steps; and what it leaves.

One process is started as a user starts it; the others are forked after torch and TensorBoard are imported.
"""

import re

import numpy as np
import pytest
from helpers import TRAINING, load, path_of
from PIL import Image
from processes import forked, python
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from scripts.tools import sample

GAN_SCALARS = {"loss/discriminator", "loss/generator", "probability/real", "probability/fake"}
SCORES = {"score/real", "score/fake"}
SCALARS = {"gan_r3": SCORES | {"loss/discriminator", "loss/generator", "penalty/real", "penalty/fake"}}
SCALARS["gan_wgan_gp"] = SCORES | {"loss/wasserstein/critic", "loss/wasserstein/generator", "penalty"}
SCALARS["cyclegan"] = {"loss/discriminator", "loss/adversarial", "loss/cycle", "optimizer/learning_rate"}
CYCLE_MEASURES = {"translation/error", "translation/error_of_identity"}
CYCLE_IMAGES = {"images/a_to_b_to_a", "images/b_to_a_to_b", "images/identity_of_b_and_of_a"}


def run(script, *arguments, folder, start=forked):
    done = start(path_of(script), *arguments, folder=folder)
    assert done.returncode == 0, done.stderr
    return done


def train(script, folder, *arguments, start=forked):
    every_step = ["--critic-steps", 1] if script == "gan_wgan_gp" else []
    arguments = ["--steps", 2, "--batch-size", 4, "--runs-dir", folder / "runs", *every_step, *arguments]
    done = run(script, *arguments, folder=folder, start=start)
    (run_folder,) = (folder / "runs" / script).iterdir()
    return done, run_folder


@pytest.mark.parametrize("script", TRAINING)
def test_two_steps_leave_curves_samples_and_a_checkpoint(script, tmp_path):
    done, folder = train(script, tmp_path, start=python if script == "gan_detach" else forked)
    assert re.fullmatch(r"\d{8}-\d{6}", folder.name)

    events = EventAccumulator(str(folder)).Reload()
    tags = events.Tags()
    scalars = SCALARS.get(script, GAN_SCALARS) | {"throughput/images_per_second"}
    measures = CYCLE_MEASURES if script == "cyclegan" else set()
    assert set(tags["scalars"]) == scalars | measures
    assert set(tags["images"]) == (CYCLE_IMAGES if script == "cyclegan" else {"images/samples", "real"})
    assert set(tags["tensors"]) == {"custom_scalars__config__", "run/text_summary"}
    for tag in scalars:
        assert [point.step for point in events.Scalars(tag)] == [1, 2]
        assert all(np.isfinite(point.value) for point in events.Scalars(tag))
    for tag in measures:
        points = events.Scalars(tag)
        assert [point.step for point in points] == [0, 2]
        assert f"{tag}: {points[-1].value:.4f}" in done.stdout
    if scalars >= GAN_SCALARS:
        assert all(0 < point.value < 1 for tag in ("real", "fake") for point in events.Scalars(f"probability/{tag}"))
    assert sorted(path.name for path in (folder / "samples").iterdir()) == ["step-000000.png", "step-000002.png"]
    assert len(Image.open(folder / "samples" / "step-000002.png").getcolors(1 << 20)) > 100
    checkpoint = load(folder)
    assert checkpoint["step"] == 2
    assert (checkpoint["script"], checkpoint["options"]["steps"]) == (script, 2)
    assert {"optimizer_g", "optimizer_d"} < set(checkpoint)
    if script != "cyclegan":  # whose average without --ema is its last weights
        assert checkpoint["average"]["n_averaged"] == 2
    files = sorted(path.name for path in folder.iterdir() if "tfevents" not in path.name)
    assert files == [".lock", "checkpoint.pt", "samples"]

    lines = done.stdout.splitlines()
    assert "step-000002.png" in lines[-2]
    assert lines[-1].startswith("TensorBoard: tensorboard --logdir ")

    sample.main(sample.Options(folder))
    columns = 10 if script == "gan_conditional" else 8  # one for each class
    assert Image.open(folder / "samples.png").width == columns * 58 + 2


def test_the_same_seed_gives_the_same_run_and_another_seed_another(tmp_path):
    weights = []
    for number, seed in enumerate([0, 0, 1]):
        (tmp_path / str(number)).mkdir()
        _, folder = train("gan_resample", tmp_path / str(number), "--seed", seed, "--model", "mlp")
        weights.append(next(iter(load(folder)["generator"].values())))
    assert weights[0].equal(weights[1])
    assert not weights[0].equal(weights[2])


def test_a_folder_of_colour_images_trains_whatever_its_name(tmp_path):
    images = tmp_path / "caf\udce9\n图"  # a byte that is no text, a line break, a letter from afar
    images.mkdir()
    for shade in (0, 100, 200):
        Image.new("RGB", (50, 40), (shade, 0, 255)).save(tmp_path / "plain.jpg")
        (tmp_path / "plain.jpg").rename(images / f"{shade}.jpg")
    _, folder = train("gan_detach", tmp_path, "--dataset", images, "--image-size", 32)
    run("sample", folder, "--count", 2, "--output", "out.npz", folder=tmp_path)
    assert np.load(tmp_path / "out.npz")["images"].shape == (2, 3, 32, 32)
