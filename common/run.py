"""The bookkeeping of a training run: all but what changes the weights, which is in the scripts."""

import io
import os
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, suppress
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler
from torch.optim.swa_utils import AveragedModel
from torch.utils._pytree import tree_leaves
from torch.utils.tensorboard import SummaryWriter
from tqdm import tqdm

from common import checkpoint as files
from common.board import grid, png, tag_of
from common.data import batches, seed_for, to_uint8
from common.errors import BadInput, Stopped, refusing
from common.image_files import StreamedImages
from common.options import RunOptions, check_resumable
from common.ranks import Ranks


class Run:
    """One run of a training script: a loop over `steps`, which calls `log`."""

    def __init__(self, script: str, options: RunOptions):
        """Find the other processes, pick the device and seed torch; raises BadInput for options that cannot work."""
        if not isinstance(options, RunOptions):
            raise BadInput(f"{type(options).__name__}: derive the options of a script from RunOptions")
        self.options, self.path, self.script = options, Path(script), Path(script).stem
        self.ranks, self.device = Ranks(options.batch_size), pick_device(options.device)
        self.sums: dict[str, tuple[Tensor | float, int]] = {}  # of a result since its last point, and of how many steps
        torch.manual_seed(options.seed)
        self.generator = torch.Generator()  # of what all ranks draw alike, for the global batch; on the CPU
        if self.device.type == "cuda":
            torch.set_float32_matmul_precision("high")  # TF32
            torch.cuda.set_device(self.device)

    def noise(self, count: int, z_dim: int) -> Tensor:
        """Return this process's noise of a step, (count, z_dim), standard normal, drawn for the global batch."""
        z = torch.randn(self.ranks.count, count, z_dim, generator=self.generator)[self.ranks.rank]
        return z.to(self.device, non_blocking=True)

    def precision(self) -> torch.autocast:
        """Return the context for a step: autocast to bfloat16 with `--precision bf16`, else one without effect."""
        enabled = self.options.precision == "bf16"  # without a cache: a step changes weights between forward passes
        return torch.autocast(self.device.type, torch.bfloat16, enabled=enabled, cache_enabled=False)

    def steps(self, *data, state: dict, pictures: dict, measures: dict | None = None, columns: int = 8) -> Iterator:
        """Yield (step, batch of each data set) for steps 1, 2, ...; log, draw and save between them.

        data: uint8 (N, C, H, W) on the run's device, or streamed to it. A batch is float (batch_size, C, H, W) in
        [-1, 1], of several processes each one's rows. LabeledImages give (step, real, labels), labels int64.
        state: by name, what a checkpoint holds: all that a step changes and that has `state_dict` or `get_state`.
        pictures: images (N, C, H, W) in [-1, 1], shown once, or functions that make them every --sample-every steps,
        `columns` to a row. measures: by TensorBoard tag, functions that return a number, called with the pictures.
        Raises BadInput where the run cannot start and Stopped where it cannot continue. Ctrl-C and SIGTERM end the
        process, everything saved, with status 128 plus their number; `break` saves the last step that was logged.
        """
        self.state, self.pictures, self.measures, self.columns = state, pictures, measures or {}, columns
        loop = self.loop(data)
        if self.options.loops:
            self.options.loops.enter_context(closing(loop))
        return loop

    def loop(self, datasets: tuple[object, ...]) -> Iterator[tuple]:
        """Do what `steps` says."""
        with ExitStack() as opened:
            signals = note_signals(opened)
            self.check(datasets, sys._getframe(1).f_locals)  # of the main that loops over these steps
            step = self.logged = self.enter_folder(opened)
            if step == self.options.steps:  # its files stay as they are
                return self.print_results(step)
            streams = []
            for number, images in enumerate(datasets):
                where = self.options.batch_size, seed_for(self.options.seed, number), step, self.ranks.rows
                streams.append(opened.enter_context(closing(batches(images, *where))))  # ends the threads that read
            self.open_board(step, opened)
            stopped, left = 0, False
            while step < self.options.steps and not stopped and not left:
                step += 1
                self.seed_step(len(datasets), step)
                try:
                    reals = [next(stream) for stream in streams]
                except BadInput as error:  # an image that is streamed
                    raise Stopped(f"step {step}: {error}") from error
                try:
                    yield step, *(tensor for real in reals for tensor in (real if isinstance(real, tuple) else [real]))
                except GeneratorExit:
                    if not self.options.is_done:  # an error in main
                        raise
                    step, left = self.logged, True
                    if step == 0:
                        raise Stopped("step 1: left before its run.log, so nothing is saved") from None
                # Several processes must stop at the same step, so they exchange signals when they log.
                if self.ranks.count == 1 or step % self.options.log_every == 0:
                    stopped = max(self.ranks.gather(max(signals, default=0)))
                self.write(step, bool(stopped or left))
        self.print_results(step)
        if step < self.options.steps and not left:
            sys.exit(128 + stopped)

    def check(self, datasets: tuple[object, ...], variables: dict[str, object]) -> None:
        """Raise BadInput for what cannot be trained on or saved, with main's `variables`, or not in several ranks."""
        if self.options.precision not in ("fp32", "bf16"):
            raise BadInput(f"--precision {self.options.precision}: must be fp32 or bf16")
        stored = {p for owner in self.state.values() if isinstance(owner, nn.Module) for p in owner.parameters()}
        for name, value in ((name, leaf) for name, tree in variables.items() for leaf in tree_leaves(tree)):
            parameters = value.parameters() if isinstance(value, nn.Module) else ()
            is_average = isinstance(value, AveragedModel)
            is_left_out = any((p.requires_grad or is_average) and p not in stored for p in parameters)
            if is_left_out or (isinstance(value, Optimizer | LRScheduler) and value not in self.state.values()):
                advice = "add it (or, of a network, freeze it by requires_grad_(False))"
                raise BadInput(f"{name}: is not in the `state` of run.steps, so no checkpoint would hold it; {advice}")
            if isinstance(value, torch.amp.GradScaler) and self.ranks.count > 1:  # each skips its own steps
                raise BadInput(f"{name}: loss scales of several processes differ; --precision bf16 needs none")
        plain = [getattr(data, "images", data) for data in datasets]  # without labels
        for images in plain:
            if not isinstance(images, Tensor | StreamedImages):
                raise BadInput(f"data are a tensor, LabeledImages or StreamedImages, not a {type(images).__name__}")
            if isinstance(images, Tensor) and (images.dtype != torch.uint8 or images.ndim != 4):
                raise BadInput(f"data are uint8 images (N, C, H, W), not {images.dtype} {tuple(images.shape)}")
        shapes = [list(images.shape) for images in plain]
        classes = [list(data.classes) for data in datasets if hasattr(data, "classes")]
        facts = {"script": self.script, "options": self.options.to_store(), "data_shapes": shapes, "classes": classes}
        self.facts = facts | origin(self.path, self.device)
        for name, owner in self.state.items():
            with refusing(f"state {name!r}: cannot be in a checkpoint"):
                if name in {*self.facts, "step", "sums"}:
                    raise ValueError("the name is taken; choose another")
                torch.load(io.BytesIO(files.as_bytes(files.state_of(owner))), weights_only=True)
            hooks = [*getattr(owner, "_optimizer_step_pre_hooks", {}).values()]
            if isinstance(owner, Optimizer) and self.ranks.count > 1 and hooks[:1] != [self.ranks.average_gradients]:
                raise BadInput(f"{name}: register run.ranks.average_gradients as its first step pre-hook, in main")
        if any(other != [facts, self.device.type] for other in self.ranks.gather([facts, self.device.type])):
            raise BadInput("the processes have different options or images; start all with the same command")

    def enter_folder(self, opened: ExitStack) -> int:
        """Lock the run's folder until `opened` ends, and return its step, the state loaded; 0 if the folder is new."""
        options, folder = self.options, None
        if self.ranks.leads and "GRADIENT_AUDIT" in os.environ:  # it ends the script after a few steps: nothing to keep
            folder = Path(opened.enter_context(tempfile.TemporaryDirectory()))
        elif self.ranks.leads:
            folder = options.resume or files.make_run_folder(options.runs_dir / self.script, options.name)
            files.lock(folder, opened)
        self.folder = self.ranks.gather(folder)[0]
        if not (run := options.resume):
            return 0
        checkpoint = files.load_checkpoint(run)  # again, now that no other process can continue the run
        check_resumable(self.script, options, checkpoint)
        for name in ("data_shapes", "classes"):
            if checkpoint.get(name) != self.facts[name]:
                message = f"the {name} are {self.facts[name]}, but were {checkpoint.get(name)}; use the same images"
                raise BadInput(f"--resume {run}: {message}")
        with refusing(f"{run}: does not hold the sums of the curves"):
            self.sums = {str(n): (float(total), max(1, int(count))) for n, (total, count) in checkpoint["sums"].items()}
        for name, owner in self.state.items():
            with refusing(f"{run}: does not hold this {name}; networks or options may have changed since"):
                files.load_state(owner, checkpoint[name])
        before = checkpoint["options"]["steps"]
        if self.ranks.leads and before < options.steps:
            print("With more --steps, a learning rate that falls towards the last step rises again.")
            for name, owner in self.state.items():
                if isinstance(owner, LRScheduler) and str(before) in map(str, owner.state_dict().values()):
                    print(f"{name}: its length is still {before}; make the rate a function of the step (docs/copy.md)")
        return checkpoint["step"]

    def open_board(self, step: int, opened: ExitStack) -> None:
        """Open TensorBoard and the progress bar, and write what a run shows before its next step."""
        progress = {"initial": step, "total": self.options.steps, "unit": "step", "dynamic_ncols": True}
        self.bar = opened.enter_context(tqdm(desc=self.script, **progress, disable=not self.ranks.leads))
        if self.ranks.leads:
            # TensorBoard ignores what files of earlier seconds, by their names, hold of steps after the checkpoint.
            while [*self.folder.glob(f"events.*.{int(time.time())}.*")]:
                time.sleep(0.1)
            self.board = opened.enter_context(SummaryWriter(self.folder, purge_step=step + 1 if step else None))
            facts = self.facts["options"] | self.facts
            rows = [f"| {name} | {fact} |" for name, fact in facts.items() if name != "options"]
            text = "\n".join(["| | |", "| --- | --- |", *rows])
            self.board.add_text("run", text.encode(errors="replace").decode(), step)  # a path may hold what is no text
        if step:
            self.save(step)  # with the new --steps, so that they are kept even if this process is killed
        elif self.ranks.leads:
            for name, picture in self.pictures.items():
                if isinstance(picture, Tensor):
                    self.board.add_image(name, grid(to_uint8(picture), self.columns), 0)
            self.draw(0)

    def seed_step(self, datasets: int, step: int) -> None:
        """Make all random numbers of a step a function of (seed, step), and those that it draws itself of the rank."""
        self.generator.manual_seed(seed_for(self.options.seed, datasets, step))
        own = seed_for(self.options.seed, datasets, step, 1 + self.ranks.rank)
        torch.default_generator.manual_seed(own)  # torch.manual_seed takes half a millisecond where CUDA is idle
        if self.device.type != "cpu":
            torch.get_device_module(self.device).manual_seed(own)

    def log(self, step: int, results: dict[str, Tensor | float]) -> None:
        """Add the results of a step: numbers, or tensors of one element, whose means since the last point are shown."""
        self.logged = step
        for name, value in results.items():
            if isinstance(value, Tensor):
                value = value.detach().reshape(()).float()
            total, count = self.sums.get(name, (0.0, 0))
            self.sums[name] = total + value, count + 1

    def write(self, step: int, interrupted: bool) -> None:
        """Log, draw and save what is due after `step`; only for the curves and the checkpoint, the host waits."""
        self.bar.update()
        options, last = self.options, step == self.options.steps
        is_regular = step == 1 or step % options.log_every == 0
        if is_regular or last:
            means = {name: total / count for name, (total, count) in self.totals(step).items()}
            losses = " ".join(f"{name} {mean:.3f}" for name, mean in means.items() if name.endswith("loss"))
            self.bar.set_postfix_str(losses, refresh=False)
            for name, mean in means.items() if self.ranks.leads else ():
                self.board.add_scalar(tag_of(name), mean, step)
        if is_regular:  # not after the last step: a resumed run that gets more has the points of one that had them
            self.sums = {}
        if self.ranks.leads and (last or interrupted or step % options.sample_every == 0):
            self.draw(step)
        if last or interrupted or step % options.checkpoint_every == 0:
            self.save(step)

    def totals(self, step: int) -> dict[str, tuple[float, int]]:
        """Return the sums since the last point, means over the ranks; raises Stopped if one is no finite number."""
        tensors = [torch.as_tensor(total, device=self.device) for total, _ in self.sums.values()]
        numbers = self.ranks.mean(torch.stack(tensors)).tolist() if tensors else []  # all at once
        totals = {name: (number, self.sums[name][1]) for name, number in zip(self.sums, numbers, strict=True)}
        require_finite(step, totals)
        return totals

    def draw(self, step: int) -> None:
        """Draw, show and save the pictures and measurements after `step`, in evaluation mode."""
        networks = nn.ModuleList(owner for owner in self.state.values() if isinstance(owner, nn.Module))
        training = [module for module in networks.modules() if module.training]
        networks.eval()
        with torch.no_grad():
            drawn = {name: to_uint8(make()) for name, make in self.pictures.items() if callable(make)}
            measured = {name: float(measure()) for name, measure in self.measures.items()}
        for module in training:
            module.training = True
        for name, images in drawn.items():
            # TensorBoard opens the groups that are first in the alphabet: these pictures, then the losses.
            self.board.add_image(f"images/{name}", grid(images, self.columns), step)
        for name, number in measured.items():
            self.board.add_scalar(name, number, step)
        if drawn:
            (self.folder / "samples").mkdir(exist_ok=True)
            picture = png(*(grid(images, self.columns) for images in drawn.values()))
            files.write_whole(self.folder / "samples" / f"step-{step:06d}.png", picture)

    def save(self, step: int) -> None:
        """Write `checkpoint.pt`, plain data and tensors; raises Stopped, keeping the last one, if one is not finite."""
        sums, states = self.totals(step), {name: files.state_of(owner) for name, owner in self.state.items()}
        require_finite(step, states)
        if self.ranks.leads:
            self.board.flush()  # no point logged before the checkpoint can be lost after it
            checkpoint = self.facts | {"step": step, "sums": sums} | states
            files.write_whole(self.folder / "checkpoint.pt", files.as_bytes(checkpoint))

    def print_results(self, step: int) -> None:
        """Print where the results are, how to look at them and, if there are steps left, how to continue."""
        if not self.ranks.leads:
            return
        paths = self.path, self.folder, self.folder.parent
        script, folder, parent = (shlex.quote(str(files.short_path(path))) for path in paths)
        print(f"Done: {step} steps." if step == self.options.steps else f"Interrupted after step {step}.")
        if step < self.options.steps:
            torchrun = f"torchrun --standalone --nproc-per-node={self.ranks.count}"
            print(f"Continue:    {'python' if self.ranks.count == 1 else torchrun} {script} --resume {folder}")
        if any(map(callable, self.pictures.values())):
            print(f"Samples:     {files.short_path(self.folder)}/samples/step-{step:06d}.png")
        print(f"TensorBoard: tensorboard --logdir {parent}")


def require_finite(step: int, values: dict) -> None:
    """Raise Stopped, naming the value, if a number in it is not finite."""
    for name, value in values.items():
        numbers = [torch.as_tensor(leaf) for leaf in tree_leaves(value) if isinstance(leaf, Tensor | float)]
        if not all(number.isfinite().all() for number in numbers):
            raise Stopped(f"step {step}: {name} is not finite, so no checkpoint is written; try a lower --lr")


def pick_device(name: str | None) -> torch.device:
    """Return the device `name`, by default CUDA where it is available; raises BadInput if this machine lacks it."""
    name = name or ("cuda" if torch.cuda.is_available() else "cpu")
    if name == "cuda" and "LOCAL_RANK" in os.environ:  # under torchrun, each process has its own
        name = f"cuda:{os.environ['LOCAL_RANK']}"
    with refusing(f"--device {name}: cannot be used on this machine; --device cpu can"):
        probe = torch.zeros(1, device=name)
        probe.cpu()  # raises for `meta`, which holds no numbers
        return probe.device


def origin(script: Path, device: torch.device) -> dict[str, str]:
    """Return where a run comes from: its command line, with no path of this machine but those typed, and the code."""
    path, root, commit = script.resolve(), Path(__file__).resolve().parents[1], "none"
    git = ["git", "-C", str(path.parent), "describe", "--always", "--dirty", "--abbrev=12"]
    with suppress(OSError):  # no git
        commit = subprocess.run(git, capture_output=True, text=True, check=False).stdout.strip() or commit
    shown = path.relative_to(root) if path.is_relative_to(root) else path.name
    command = shlex.join(["python", str(shown), *sys.argv[1:]])
    versions = f"torch {torch.__version__}, Python {sys.version.split()[0]}"
    return {"command": command, "commit": commit, "versions": versions, "device": str(device)}


def note_signals(opened: ExitStack) -> list[int]:
    """Return a list that gets the first SIGINT or SIGTERM until `opened` ends; a second one acts as usual."""
    received, before = [], {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

    def note(number: int, _frame: object) -> None:
        received.append(number)
        signal.signal(number, before[number])

    with suppress(ValueError):  # raised outside the main thread, which alone receives signals
        for number, handler in before.items():
            signal.signal(number, note)
            opened.callback(signal.signal, number, handler)
    return received
