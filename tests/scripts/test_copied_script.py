"""Scripts as people make them from ours: other names, own options, fewer networks, other surroundings."""

import importlib.util
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


@pytest.mark.parametrize("name", ["gan.v2", "2nd gan, größer"])
def test_a_script_of_any_name_trains_resumes_and_is_sampled(name, tmp_path, copied):
    script = copied(name)
    call(script, *TINY, "--steps", 2, "--runs-dir", tmp_path / "runs")
    assert run_of(tmp_path).parent.name == name
    call(script, "--resume", run_of(tmp_path), "--steps", 3)
    assert saved(tmp_path / "runs")["step"] == 3
    assert images_of(run_of(tmp_path)).shape == (3, 1, 8, 8)


OWN_OPTIONS = '''
@dataclass(frozen=True)
class Options(GanOptions):
    """Options of this script."""

    steps: int = 2
    model: Literal["conv", "mlp", "mine"] = "mlp"
    augment: bool = True
    tags: tuple[str, ...] = ()
    shift: int = -3
    noise: Annotated[float, Ge(0), Lt(2)] = 0.0
    mask: Path | None = None
    sizes: list[int] = field(default_factory=lambda: [1])


SEEN = []


def main(options: Options) -> None:
    SEEN.append(options)
'''
WITH_OWN_OPTIONS = [
    ("def main(options: GanOptions) -> None:\n", OWN_OPTIONS),
    ("launch(main, GanOptions)", "launch(main, Options)"),
    ("import sys\n", "import sys\nfrom dataclasses import dataclass, field\n"),
    ("from pathlib import Path\n", "from pathlib import Path\nfrom typing import Annotated, Literal\n"),
    ("from common.run.options", "from annotated_types import Ge, Lt\nfrom common.run.options"),
]
OWN = "--no-augment --tags a b --shift 0 --noise 1.5 --sizes 7"


def test_a_script_s_own_options_are_checked_and_come_back_as_they_were(tmp_path, copied, monkeypatch, refusal):
    monkeypatch.chdir(tmp_path)
    script = copied("gan_mine", *WITH_OWN_OPTIONS)
    call(script, *TINY, *OWN.split(), "--mask", "mask.png", "--runs-dir", "runs")
    made_with = vars(script.SEEN[-1])
    run = run_of(tmp_path)
    assert f"--tags c: the run {run} has a b; leave the option out" in refusal(script, "--resume", run, "--tags", "c")
    assert "--noise 2.0: should be less than 2" in refusal(script, "--resume", run, "--noise", 2)
    call(script, "--resume", run, "--steps", 4)
    changed = {"steps": 4, "resume": run} | {name: Path.cwd() / made_with[name] for name in ("mask", "runs_dir")}
    assert vars(script.SEEN[-1]) == made_with | changed
    assert (made_with["augment"], made_with["tags"]) == (False, ("a", "b"))


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
    ("samples=lambda: average(sample_z)", "samples=lambda: generator(sample_z)"),
    ("        average=average,\n", ""),
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
    script = copied("gan_mine", ("generator=generator,", "painter=generator,"), ("average=average", "a=average"))
    call(script, *TINY, "--steps", 2, "--runs-dir", tmp_path / "runs")
    assert "holds no network called generator" in refusal("sample", run_of(tmp_path))


def test_other_packages_called_common_and_scripts_are_not_in_the_way(tmp_path):
    for name in ("common", "scripts"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("raise ImportError('not this one')")
    done = python(path_of("compare_updates"), "--help", PYTHONPATH=str(tmp_path))  # imports from both
    assert done.returncode == 0, done.stderr
    assert "--batch-size" in done.stdout
