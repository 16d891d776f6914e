"""Every option of every training script has a run that asks for it, with another value than its default."""

from dataclasses import fields

import pytest
from helpers import GANS, TRAINING, call, options_of, saved
from PIL import Image

ALL = (
    "--dataset {images} --image-size 8 --batch-size 3 --steps 2 --lr 3e-4 --betas 0.5 0.9 --ema 0.9 --seed 7 "
    "--device cpu --precision bf16 --runs-dir {runs} --log-every 1 --sample-every 1 --checkpoint-every 1 --name mine"
)
# What every script is run with, and then --resume.
GAN = f"{ALL} --model mlp --z-dim 5 --lr-d 2e-4"
RUNS = dict.fromkeys([*GANS, "gan_conditional"], GAN) | {
    "gan_wgan_gp": f"{GAN} --penalty-weight 2.5 --critic-steps 2",
    "gan_r3": f"{GAN} --penalty-weight 0.5 --penalty-every 2 --penalty approximate --decay-from 1",
    "cyclegan": f"{ALL} --load-size 10 --width 2 --blocks 2 --halvings 1 --decay-from 0 --cycle-weight 4 "
    "--identity-weight 2",
}
ELSEWHERE = {"--compile": "takes a minute: test_compile.py", "--resume": "the second run here"}


@pytest.mark.parametrize("script", TRAINING)
def test_a_run_asks_for_every_option(script):
    published = {f"--{field.name.replace('_', '-')}" for field in fields(options_of(script))}
    assert {part for part in RUNS[script].split() if part.startswith("--")} | ELSEWHERE.keys() == published


@pytest.mark.parametrize("script", TRAINING)
def test_a_script_runs_with_all_its_options_and_goes_on(script, tmp_path):
    for part in ("trainA", "trainB", "testA", "testB"):
        (tmp_path / "images" / part).mkdir(parents=True)
        for number in range(3):
            Image.new("L", (12, 12), 80 * number).save(tmp_path / "images" / part / f"{number}.png")
    call(script, *RUNS[script].format(images=tmp_path / "images", runs=tmp_path / "runs").split())
    (run,) = (tmp_path / "runs" / script).iterdir()
    assert run.name.endswith("-mine")
    assert len(list((run / "samples").iterdir())) == 3
    options = saved(tmp_path / "runs")["options"]
    for field in fields(options_of(script)):
        if f"--{field.name.replace('_', '-')}" not in {*ELSEWHERE, "--runs-dir"}:
            assert options[field.name] != field.default, field.name
    call(script, "--resume", run, "--steps", 3)
    assert saved(tmp_path / "runs")["step"] == 3
