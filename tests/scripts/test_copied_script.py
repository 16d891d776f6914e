"""Scripts as people make them from ours: other names, own options, fewer networks, other surroundings."""

import importlib.util
import re
import shlex
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from helpers import ROOT, call, path_of, saved
from PIL import Image
from processes import python

from scripts.tools import sample, translate

IMPORT_TORCH = ("from torch.optim", "import torch\nfrom torch.optim")
TINY = ["--model", "mlp", "--image-size", "8", "--batch-size", "4", "--device", "cpu"]


@pytest.fixture
def copied(tmp_path, monkeypatch):
    """A function that returns a copy of a script as a module, with some of its text replaced; `common` is ours."""
    monkeypatch.setattr(sys, "path", [*sys.path])
    (tmp_path / "scripts").mkdir()
    (tmp_path / "common").symlink_to(ROOT / "common")

    def copied(name, *edits, source="gan_detach"):
        text = path_of(source).read_text()
        for old, new in edits:
            assert old in text
            text = text.replace(old, new)
        path = tmp_path / "scripts" / f"{name}.py"
        path.write_text(text)
        spec = importlib.util.spec_from_file_location("copy_of_a_script", path)
        module = importlib.util.module_from_spec(spec)
        monkeypatch.setitem(sys.modules, spec.name, module)
        spec.loader.exec_module(module)
        return module

    return copied


def run_of(folder):
    (run,) = (folder / "runs").glob("*/*")
    return run


def images_of(run, count=3):
    """Return what sample.py makes of a run."""
    output = run / "images.npz"
    output.unlink(missing_ok=True)
    sample.main(sample.Options(run, count=count, output=output, device="cpu"))
    return np.load(output)["images"]


OWN_MAIN = '''
@dataclass(frozen=True)
class Options(RunOptions, OptimizerOptions):
    """Options of this script."""

    steps: int = 4
    z_dim: Annotated[int, Range(2, 6)] = 4
    augment: bool = True
    tags: tuple[str, ...] = ()
    shift: int = -3
    mask: Path | None = None
    stop_at: Annotated[int, Range(0, 100)] | None = None


def make_networks(image_shape, z_dim):
    generator = torch.nn.Sequential(torch.nn.Linear(z_dim, 64), torch.nn.Tanh(), torch.nn.Unflatten(1, image_shape))
    return generator, torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 1))


SEEN = []


def main(options: Options) -> None:
'''
STOP = """        if step == options.stop_at:
            signal.raise_signal(signal.SIGINT)
        run.log("""
WITH_OWN_OPTIONS = [
    ("def main(options: GanOptions) -> None:\n", OWN_MAIN),
    ("    run = Run(", "    SEEN.append(options)\n    run = Run("),
    ("load_images(options.dataset, options.image_size)", "torch.arange(4096).byte().view(64, 1, 8, 8)"),
    ("MODELS[options.model](", "make_networks("),
    ("        run.log(", STOP),
    ("launch(main, GanOptions)", "launch(main, Options)"),
    ("import sys\n", "import signal\nimport sys\nfrom dataclasses import dataclass\nfrom typing import Annotated\n"),
    ("import GanOptions, launch", "import OptimizerOptions, Range, RunOptions, launch"),
]
OWN = "--device cpu --batch-size 4 --no-augment --tags a b --shift 0 --z-dim 5 --mask mask.png"


def test_options_of_a_script_with_its_own_networks_are_checked_and_come_back(tmp_path, copied, monkeypatch, refusal):
    monkeypatch.chdir(tmp_path)
    script = copied("gan_mine", *WITH_OWN_OPTIONS)
    call(script, *OWN.split(), "--runs-dir", tmp_path / "runs")
    before, run = vars(script.SEEN[-1]), run_of(tmp_path)
    assert "--z-dim=7: must be from 2 to 6" in refusal(script, "--z-dim", 7)
    assert "--model" in refusal(script, "--model", "mlp")  # it has no networks of ours, and no option that does nothing
    assert f"--tags c: the run {run} has --tags a b; leave it out" in refusal(script, "--resume", run, "--tags", "c")
    assert "--z-dim=7: must be from 2 to 6" in refusal(script, "--resume", run, "--z-dim", 7)
    call(script, "--resume", run, "--steps", 6)
    own = {name: before[name] for name in ("z_dim", "augment", "tags", "shift", "mask", "lr", "batch_size")}
    assert (own["augment"], own["tags"], own["mask"]) == (False, ("a", "b"), Path("mask.png"))
    assert vars(script.SEEN[-1]) == vars(script.SEEN[-1]) | own | {"steps": 6, "resume": run}
    assert saved(tmp_path / "runs")["step"] == 6


def test_every_command_in_the_last_lines_of_a_run_works_as_printed(tmp_path, copied, monkeypatch, outcome):
    monkeypatch.chdir(tmp_path)
    script = copied("2nd gan.v2, größer", *WITH_OWN_OPTIONS)
    status, interrupted, _ = outcome(
        script, *OWN.split(), "--runs-dir", tmp_path / "runs", "--stop-at", 2, "--sample-every", 1000
    )
    assert (status, saved(tmp_path / "runs")["step"]) == (130, 2)
    assert run_of(tmp_path).parent.name == "2nd gan.v2, größer"
    commands = dict(re.findall(r"^(Continue|TensorBoard): +(.+)", interrupted, re.M))
    done = python(*shlex.split(commands["Continue"])[1:], folder=tmp_path)
    assert (done.returncode, saved(tmp_path / "runs")["step"]) == (0, 4), done.stderr
    assert f"TensorBoard: {commands['TensorBoard']}" in done.stdout
    for printed, step in ((interrupted, 2), (done.stdout, 4)):
        (picture,) = re.findall(r"^Samples: +(.+)", printed, re.M)
        assert Path(picture) == run_of(tmp_path).relative_to(tmp_path) / "samples" / f"step-{step:06d}.png"
        assert Path(picture).exists()
    inspected = python(
        "-m", "tensorboard.main", *shlex.split(commands["TensorBoard"])[1:], "--inspect", folder=tmp_path
    )
    assert "loss/discriminator" in inspected.stdout, inspected.stderr
    output, networks = tmp_path / "images.npz", f"{script.__file__}:make_networks"
    call("sample", run_of(tmp_path), "--networks", networks, "--count", 3, "--output", output, "--device", "cpu")
    assert np.load(output)["images"].shape == (3, 1, 8, 8)


STILL = """    next(discriminator.parameters()).requires_grad_(False)
    discriminator.unused = torch.nn.Parameter(torch.zeros(3, device=run.device))
    lr_d ="""


def test_a_network_with_frozen_and_unused_parameters_resumes_to_the_same_bits(tmp_path, copied):
    script = copied("gan_mine", IMPORT_TORCH, ("    lr_d =", STILL))
    call(script, *TINY, "--steps", 4, "--runs-dir", tmp_path / "whole")
    call(script, *TINY, "--steps", 2, "--runs-dir", tmp_path / "runs")
    call(script, "--resume", run_of(tmp_path), "--steps", 4)
    whole, resumed = saved(tmp_path / "whole"), saved(tmp_path / "runs")
    assert resumed["step"] == whole["step"] == 4
    assert whole["optimizer_d"]["state"].keys() == {2, 3, 4, 5, 6}  # 0 is unused, 1 is frozen
    for network in ("generator", "discriminator"):
        torch.testing.assert_close(resumed[network], whole[network], rtol=0, atol=0)


WITHOUT_AVERAGE = [
    ("    average = AveragedModel(generator, multi_avg_fn=get_ema_multi_avg_fn(options.ema))\n", ""),
    ("        average.update_parameters(generator)\n", ""),
    ("lambda: average(sample_z)", "lambda: generator(sample_z)"),
    (', "average": average}', "}"),
]


def test_a_run_without_an_average_is_sampled_with_the_last_weights(tmp_path, copied):
    script = copied("gan_mine", *WITHOUT_AVERAGE)
    call(script, *TINY, "--steps", 2, "--runs-dir", tmp_path / "runs")
    run = run_of(tmp_path)
    found = images_of(run)
    kept = saved(tmp_path / "runs")
    average = {f"module.{name}": value for name, value in kept["generator"].items()}
    torch.save(kept | {"average": average | {"n_averaged": torch.tensor(1)}}, run / "checkpoint.pt")
    assert (images_of(run) == found).all()


def test_a_renamed_cyclegan_is_sampled_and_translates(tmp_path, copied):
    (tmp_path / "images").mkdir()
    for number in range(4):
        Image.new("L", (12, 12), 60 * number).save(tmp_path / "images" / f"{number}.png")
    script = copied("my-cyclegan", source="cyclegan")
    arguments = "--image-size 12 --width 2 --blocks 1 --halvings 1 --batch-size 2 --steps 1 --device cpu"
    call(script, *arguments.split(), "--dataset", tmp_path / "images", "--runs-dir", tmp_path / "runs")
    run = run_of(tmp_path)
    assert images_of(run, count=1).shape == (1, 1, 12, 12)
    translate.main(translate.Options(run, tmp_path / "images", tmp_path / "translated", device="cpu"))
    assert len(list((tmp_path / "translated").iterdir())) == 4

    kept = saved(tmp_path / "runs")
    del kept["average_a_to_b"]
    torch.save(kept, run / "checkpoint.pt")
    assert images_of(run, count=1).shape == (1, 1, 12, 12)


def test_a_network_under_another_name_is_asked_for_by_name(tmp_path, copied, refusal):
    script = copied("gan_mine", ('"generator": ', '"painter": '), ('"average": ', '"a": '))
    call(script, *TINY, "--steps", 2, "--runs-dir", tmp_path / "runs")
    assert "holds no network called generator" in refusal("sample", run_of(tmp_path))


def test_other_packages_called_common_and_scripts_are_not_in_the_way(tmp_path):
    for name in ("common", "scripts"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("raise ImportError('not this one')")
    done = python(path_of("compare_updates"), "--help", PYTHONPATH=str(tmp_path))  # imports from both
    assert done.returncode == 0, done.stderr
    assert "--batch-size" in done.stdout
