"""Scripts as people make them from ours: other names, own options, fewer networks, other surroundings."""

import importlib.util
import re
import runpy
import shlex
import sys
from pathlib import Path
from unittest import mock

import torch
from helpers import ROOT, call, path_of, saved
from processes import forked

OWN_MAIN = '''
@dataclass(frozen=True)
class Options(RunOptions):
    """Options of this script."""

    steps: int = 4
    z_dim: Annotated[int, Range(2, 6)] = 4
    tags: tuple[str, ...] = ()
    stop_at: Annotated[int, Range(0, 100)] | None = None
    lr: float = 2e-3
    lr_d: float = 2e-3
    betas: tuple[float, float] = (0.0, 0.999)
    ema: float = 0.995


def make_networks(image_shape, z_dim):
    generator = torch.nn.Sequential(torch.nn.Linear(z_dim, 64), torch.nn.Tanh(), torch.nn.Unflatten(1, image_shape))
    discriminator = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 64), torch.nn.Linear(64, 1))
    discriminator[1].requires_grad_(False)
    discriminator.unused = torch.nn.Parameter(torch.zeros(3))
    return generator, discriminator


def main(options: Options, run: Run) -> None:
'''
STOP = """        if step == options.stop_at:
            signal.raise_signal(signal.SIGINT)
        run.log("""
WITH_OWN_OPTIONS = [
    ("def main(options: GanOptions, run: Run) -> None:\n", OWN_MAIN),
    (
        "load_images(options.dataset, options.image_size, options.fit, options.hold_out)",
        "torch.arange(4096).byte().view(64, 1, 8, 8)",
    ),
    ("    options = run.options = options.for_images(images)\n", ""),
    ('    discriminator = Augmented(bare, options.augment == "on", options.mirror)\n', ""),
    ("generator, bare =", "generator, discriminator ="),
    ('"discriminator": bare,', '"discriminator": discriminator,'),
    ("options.make_networks(images.shape[1:])", "make_networks(images.shape[1:], options.z_dim)"),
    ("        run.log(", STOP),
    ("launch_run(__file__, main, GanOptions)", "launch_run(__file__, main, Options)"),
    ("import sys\n", "import signal\nimport sys\nfrom dataclasses import dataclass\nfrom typing import Annotated\n"),
    ("import GanOptions", "import Range, RunOptions"),
]
OWN = "--device cpu --batch-size 4 --tags a b --z-dim 5"


def test_a_script_with_its_own_options_goes_on_as_its_last_lines_say(tmp_path, monkeypatch, outcome, refusal):
    monkeypatch.setattr(sys, "path", [*sys.path])
    (tmp_path / "scripts").mkdir()
    (tmp_path / "common").symlink_to(ROOT / "common")
    text = path_of("gan_detach").read_text()
    for old, new in WITH_OWN_OPTIONS:
        assert old in text
        text = text.replace(old, new)
    path = tmp_path / "scripts" / "2nd gan.v2, größer.py"
    path.write_text(text)
    spec = importlib.util.spec_from_file_location("copy_of_a_script", path)
    script = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, spec.name, script)
    spec.loader.exec_module(script)

    monkeypatch.chdir(tmp_path)
    status, interrupted, _ = outcome(script, *OWN.split(), "--runs-dir", "runs", "--stop-at", 2)
    (run,), before = (tmp_path / "runs").glob("*/*"), saved(tmp_path / "runs")
    assert (status, before["step"], run.parent.name) == (130, 2, "2nd gan.v2, größer")
    assert before["options"] == before["options"] | {"z_dim": 5, "tags": ("a", "b"), "stop_at": 2}
    assert before["optimizer_d"]["state"].keys() == {3, 4}  # 0 is unused, 1 and 2 are frozen

    assert "--z-dim=7: must be from 2 to 6" in refusal(script, "--z-dim", 7)
    assert "--model" in refusal(script, "--model", "mlp")  # it has no networks of ours, and no option that does nothing

    commands = dict(re.findall(r"^(Continue|TensorBoard): +(.+)", interrupted, re.M))
    done = forked(*shlex.split(commands["Continue"])[1:], folder=tmp_path)
    after = saved(tmp_path / "runs")
    assert (done.returncode, after["step"], after["options"]) == (0, 4, before["options"]), done.stderr
    call(script, *OWN.split(), "--runs-dir", "whole")
    for network in ("generator", "discriminator"):
        torch.testing.assert_close(after[network], saved(tmp_path / "whole")[network], rtol=0, atol=0)
    for printed, step in ((interrupted, 2), (done.stdout, 4)):
        (picture,) = re.findall(r"^Samples: +(.+)", printed, re.M)
        assert Path(picture) == run / "samples" / f"step-{step:06d}.png"
        assert Path(picture).exists()
        assert f"TensorBoard: {commands['TensorBoard']}" in printed
    assert shlex.split(commands["TensorBoard"]) == ["tensorboard", "--logdir", str(run.parent)]


def test_other_packages_called_common_and_scripts_are_not_in_the_way(tmp_path, monkeypatch):
    for name in ("common", "scripts"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("raise ImportError('not this one')")
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    with mock.patch.dict(sys.modules):
        for name in [name for name in sys.modules if name.split(".")[0] in ("common", "scripts")]:
            del sys.modules[name]
        runpy.run_path(str(path_of("compare_updates")))  # imports from both
