"""The bookkeeping of a training run: all but what changes the weights, which is in the scripts."""

import io
import os
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, suppress
from datetime import datetime
from functools import partial
from pathlib import Path

import torch
import torch.distributed as dist
from tensorboard.plugins.hparams.summary_v2 import hparams_pb
from torch import Tensor, nn
from torch.optim import Optimizer
from torch.optim.optimizer import register_optimizer_step_pre_hook
from torch.utils._pytree import tree_leaves
from torch.utils.tensorboard import SummaryWriter
from tqdm import tqdm

from common import checkpoint
from common.data import batches, check_data, seed_for, to_uint8
from common.errors import BadInput, Stopped, as_bad_input, error_in_a_line, one_line
from common.image_files import grid, png
from common.options import RunOptions, parse, parse_resumed
from common.ranks import Ranks, connect

TAGS = dict(d_loss="loss/discriminator", g_loss="loss/generator", d_real="probability/real", d_fake="probability/fake")


def launch_run(script: str, main: Callable[..., None], kind: type[RunOptions]) -> None:
    """Call `main` with the options of the command line and a run of `script`, a path; an error ends it in a line."""
    with error_in_a_line(), ExitStack() as opened:
        options, stored = parse(main, kind), None
        if options.resume:
            stored = checkpoint.load_checkpoint(options.resume / "checkpoint.pt", opened if connect()[0] == 0 else None)
            options = parse_resumed(main, kind, Path(script).stem, stored)
        main(options, opened.enter_context(Run(script, options, stored)))
    if dist.is_initialized():
        dist.destroy_process_group()


class Run(AbstractContextManager):
    """One run of a training script: a context manager, in which a loop over `steps` calls `log`."""

    def __init__(self, script: str, options: RunOptions, stored: dict | None = None):
        """Find the other processes, pick the device, seed torch. stored: the checkpoint of the run to continue."""
        self.options, self.path, self.script, self.stored = options, Path(script), Path(script).stem, stored
        self.ranks, self.device = Ranks(options.batch_size), pick_device(options.device)
        self.step = stored["step"] if stored else 0  # the last one that was logged
        self.sums: dict[str, tuple[Tensor | float, int]] = {}  # of a result since its last point, and of how many steps
        self.folder: Path | None = None  # that of the run, once its loop has begun
        is_bf16 = options.precision == "bf16"  # without a cache, as a step changes weights between forward passes
        self.precision = partial(torch.autocast, self.device.type, torch.bfloat16, is_bf16, cache_enabled=False)
        self.in_step, self.seen = 0, {}  # the step that main's loop is in, or has been left in; and its images
        self.opened = ExitStack()  # what ends with the run: files, hooks, the lock on its folder
        torch.manual_seed(options.seed)
        self.generator = torch.Generator()  # of what all ranks draw alike, for the global batch; on the CPU
        if self.device.type == "cuda":
            torch.set_float32_matmul_precision("high")  # TF32
            torch.cuda.set_device(self.device)

    def __exit__(self, error: type | None, *_: object) -> None:
        """Save the last step that was logged if main has left its loop by `break` or an error."""
        last, self.in_step = self.in_step, 0
        with self.opened:
            if last and self.step and (error is None or (self.step == last and self.ranks.count == 1)):
                self.write(is_stopped=True)
                self.print_results()

    def noise(self, count: int, z_dim: int) -> Tensor:
        """Return this process's noise of a step, (count, z_dim), standard normal, drawn for the global batch."""
        if not self.in_step:  # the generator has the seed of another step, or none
            raise RuntimeError("run.noise is noise of a step: call it in the loop over run.steps")
        z = torch.randn(self.ranks.count, count, z_dim, generator=self.generator)[self.ranks.rank]
        return z.to(self.device, non_blocking=True)

    def uniform(self, images: Tensor, count: int) -> Tensor:
        """Return numbers in [0, 1), (rows, count), of a step's real images, also of points between, or of its fakes."""
        memory = images.untyped_storage().data_ptr()  # which parts of a batch and detached images share
        if all(is_real for is_real, _ in self.seen.values()):  # the first that are not real are the fakes
            self.seen.setdefault(memory, (False, images.detach()))
        is_real, _ = self.seen.get(memory, (images.is_leaf and images.requires_grad, images))  # or a point between
        generator = torch.Generator().manual_seed(seed_for(self.options.seed, 0, self.in_step, is_real))
        numbers = torch.rand(self.options.batch_size, count, generator=generator)
        return numbers[self.ranks.rows].to(self.device, non_blocking=True)

    def steps(self, *data, state: dict, pictures: dict, columns: int = 8) -> Iterator[tuple]:
        """Yield (step, batch of each data set) for steps 1, 2, ...; log, draw and save between them.

        data: as `batches` takes them; LabeledImages give (step, real, labels). Each process gets its rows of a batch.
        state: by name, what a checkpoint holds: all that a step changes and that has a `state_dict`.
        pictures: images (N, C, H, W) in [-1, 1], shown once, or functions that make them every --sample-every steps,
        `columns` to a row. SIGINT, SIGTERM and SIGHUP end the process after the step, saved, with status 128 plus their
        number. Raises BadInput where the run cannot start, Stopped where it cannot continue.
        """
        if self.folder:
            raise RuntimeError("a run has one loop over run.steps; make another run for another loop")
        options, stopped = self.options, 0
        self.state, self.pictures, self.columns = state, pictures, columns
        with ExitStack() as noted:
            signals = note_signals(noted)
            self.header = self.describe(data)
            self.check_state()
            if self.stored:
                self.load_state(self.stored)
            elif options.init_from:
                checkpoint.load_initial_weights(state, options.init_from)
            self.opened.callback(register_optimizer_step_pre_hook(self.require_state).remove)
            self.folder = self.enter_folder()
            if self.step < options.steps:  # else the run's files stay as they are
                self.open_board()
            size, where = options.batch_size, (self.step, self.ranks.rows, self.device)
            streams = [batches(each, size, seed_for(options.seed, number), *where) for number, each in enumerate(data)]
            for step in range(self.step + 1, options.steps + 1):
                # All random numbers of a step are a function of (seed, step); those that it draws itself, of the rank.
                self.generator.manual_seed(seed_for(options.seed, len(data), step))
                own = seed_for(options.seed, len(data), step, 1 + self.ranks.rank)
                torch.default_generator.manual_seed(own)  # torch.manual_seed takes half a millisecond if CUDA is idle
                if self.device.type != "cpu":
                    torch.get_device_module(self.device).manual_seed(own)
                reals = [next(stream) for stream in streams]
                tensors = [tensor for real in reals for tensor in (real if isinstance(real, tuple) else [real])]
                self.in_step, self.seen = step, {x.untyped_storage().data_ptr(): (True, x) for x in tensors}
                yield step, *tensors
                self.step, self.in_step = step, 0
                # Several processes must stop at the same step, so they exchange signals when they log.
                if self.ranks.count == 1 or step % options.log_every == 0:
                    stopped = max(self.ranks.gather(max(signals, default=0)))
                self.write(bool(stopped))
                if stopped:
                    break
        self.print_results()
        if self.step < options.steps:
            sys.exit(128 + stopped)

    def describe(self, datasets: tuple[object, ...]) -> dict:
        """Return what a checkpoint says of its run beside the state; raises BadInput where the processes differ."""
        samples = [check_data(data) for data in datasets]
        facts = {"script": self.script, "options": self.options.to_store()}
        facts["data_shapes"] = [[*data.shape] for data in samples]
        facts["data_types"] = [str(data.dtype).removeprefix("torch.") for data in samples]
        facts["classes"] = [[*data.classes] for data in datasets if hasattr(data, "classes")]
        if any(theirs != facts for theirs in self.ranks.gather(facts)):
            raise BadInput("the processes have different options or images; start all with the same command")
        return facts | origin(self.path, self.device)

    def check_state(self) -> None:
        """Raise BadInput, naming it, for a part of the state that no checkpoint can hold or no ranks can share."""
        for name, owner in self.state.items():
            with as_bad_input(f"state {name!r}: cannot be in a checkpoint"):
                if name in {*self.header, "step", "sums"}:
                    raise ValueError("the name is taken; choose another")
                torch.load(io.BytesIO(checkpoint.as_bytes(owner.state_dict())), weights_only=True)
            hooks = [*getattr(owner, "_optimizer_step_pre_hooks", {}).values()]
            if isinstance(owner, Optimizer) and self.ranks.count > 1 and hooks[:1] != [self.ranks.average_gradients]:
                raise BadInput(f"{name}: register run.ranks.average_gradients as its first step pre-hook, in main")
            if isinstance(owner, torch.amp.GradScaler) and owner.is_enabled() and self.ranks.count > 1:
                raise BadInput(f"{name}: loss scales of several processes differ; --precision bf16 needs none")

    def enter_folder(self) -> Path:
        """Return the run's folder: that to resume, or a new one, locked; a temporary one for gradient_audit."""
        options, folder = self.options, self.options.resume
        if os.environ.get("GRADIENT_AUDIT") == str(os.getpid()):  # which ends the run after a few steps
            print("This run keeps nothing: gradient_audit has started it.")
            folder = Path(self.opened.enter_context(tempfile.TemporaryDirectory()))
        elif self.ranks.is_main and not folder:
            name = f"{datetime.now():%Y%m%d-%H%M%S-%f}" + (f"-{options.name}" if options.name else "")
            folder = options.runs_dir / self.script / name
            with as_bad_input(f"--runs-dir: {folder} cannot be made; choose another", (OSError, UnicodeError)):
                str(folder).encode()  # TensorBoard writes to no other path
                folder.mkdir(parents=True)
            checkpoint.lock(folder, self.opened)
        return self.ranks.gather(folder)[0]

    def load_state(self, stored: dict) -> None:
        """Load the state and the sums of the curves from a checkpoint; raises BadInput if they do not fit."""
        run = self.options.resume
        for name in ("data_shapes", "data_types", "classes"):
            now, before = self.header[name], stored.get(name, self.header[name])  # older runs have no types
            if now != before:
                raise BadInput(f"--resume {run}: the {name} are {now}, but were {before}; use the same data")
        self.sums = dict(stored.get("sums", {}))
        for name, owner in self.state.items():
            with as_bad_input(f"{run}: does not hold this {name}; networks or options may have changed since"):
                owner.load_state_dict(stored[name])
        if self.ranks.is_main and stored["options"]["steps"] < self.options.steps:
            print("With more --steps, a learning rate that falls towards the last step rises again.")

    def require_state(self, optimizer: Optimizer, *_: object) -> None:
        """Raise BadInput if an optimizer that steps in the loop, or a weight that it holds, is in no checkpoint."""
        owners = self.state.values()
        stored = {p for owner in owners if isinstance(owner, nn.Module) for p in owner.parameters()}
        lost = [f"weight {[*p.shape]}" for group in optimizer.param_groups for p in group["params"] if p not in stored]
        held = (getattr(owner, "param_groups", None) for owner in owners)  # a wrapper has those of its optimizer
        if not any(groups is optimizer.param_groups for groups in held):
            lost = [type(optimizer).__name__]
        if self.in_step and lost:
            raise BadInput(f"the loop trains a {lost[0]} that the `state` of run.steps lacks; add it, or its network")

    def open_board(self) -> None:
        """Open TensorBoard and the progress bar, and write what a run shows before its next step."""
        shown = {"desc": self.script, "unit": "step", "initial": self.step, "total": self.options.steps}
        if not sys.stderr.isatty():
            shown |= {"mininterval": 10, "bar_format": "{l_bar}{n_fmt}/{total_fmt} [{elapsed}<{remaining}{postfix}]\n"}
        self.bar = tqdm(**shown, dynamic_ncols=True, disable=not self.ranks.is_main)
        self.opened.callback(self.show, self.bar.close)
        self.point = self.step, time.perf_counter()  # the last one of the curves
        if self.ranks.is_main:
            for number, path in enumerate(sorted(self.folder.glob("events.out.tfevents.*"))):  # which are read by name
                path.rename(path.with_name(f"events.out.tfevents.{number:010}.{path.name.split('.', 4)[4]}"))
            self.board = self.opened.enter_context(SummaryWriter(self.folder, purge_step=self.step + 1))
            facts = self.header["options"] | {name: fact for name, fact in self.header.items() if name != "options"}
            words = {name: one_line(str(fact)) for name, fact in facts.items() if not isinstance(fact, int | float)}
            self.board.file_writer.add_summary(hparams_pb(facts | words))  # each a column of the tab HPARAMS
        if self.step:
            self.save()  # with the new --steps, so that they are kept even if this process is killed
        elif self.ranks.is_main:
            self.board.add_text("what to look at", f"docs/curves.md says it for {self.script}.py.")
            for name, picture in self.pictures.items():
                if isinstance(picture, Tensor):
                    self.board.add_image(name, grid(to_uint8(picture), self.columns), 0)
            self.draw()

    def log(self, step: int, results: dict[str, Tensor | float]) -> None:
        """Add the results of a step: numbers, or tensors of one element, whose means since the last point are shown."""
        self.step = step
        for name, value in results.items():
            total, count = self.sums.get(name, (0.0, 0))
            self.sums[name] = total + torch.as_tensor(value).detach().reshape(()).float(), count + 1

    def write(self, is_stopped: bool) -> None:
        """Log, draw and save what is due after a step; only for the curves and the checkpoint, the host waits."""
        options, step, is_last = self.options, self.step, self.step == self.options.steps
        self.show(self.bar.update, step - self.bar.n)
        is_regular = step == 1 or step % options.log_every == 0
        if (is_regular or is_last) and self.point[0] < step:
            self.add_points()
        if is_regular:  # not after the last step: a resumed run that gets more has the points of one that had them
            self.sums = {}
        if self.ranks.is_main and (is_last or is_stopped or step % options.sample_every == 0):
            self.draw()
        if is_last or is_stopped or step % options.checkpoint_every == 0:
            self.save()

    def show(self, change: Callable, *arguments: object) -> None:
        """Print, or change the progress bar; a terminal that is closed is written to no more."""
        try:
            change(*arguments)
        except OSError:
            for stream in (sys.stdout, sys.stderr):
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())

    def add_points(self) -> None:
        """Add a point to each curve: the mean of a result since its last point, the learning rates, the speed."""
        values = {name: total / count for name, (total, count) in self.totals().items()}
        losses = " ".join(f"{name} {value:.3f}" for name, value in values.items() if name.endswith("loss"))
        self.bar.set_postfix_str(losses, refresh=False)
        for name, owner in self.state.items():
            if isinstance(owner, Optimizer):
                values[f"optimizer/learning_rate/{name}"] = owner.param_groups[0]["lr"]
        (step, start), self.point = self.point, (self.step, time.perf_counter())
        values["speed/steps_per_second"] = (self.step - step) / (self.point[1] - start)
        for name, value in values.items() if self.ranks.is_main else ():
            tag = TAGS.get(name, f"loss/{name.removesuffix('_loss')}" if name.endswith("_loss") else name)
            self.board.add_scalar(tag, value, self.step)

    def totals(self) -> dict[str, tuple[float, int]]:
        """Return the sums since the last point, means over the ranks."""
        tensors = [torch.as_tensor(total, device=self.device) for total, _ in self.sums.values()]
        numbers = self.ranks.mean(torch.stack(tensors)).tolist() if tensors else []  # all at once
        return {name: (number, self.sums[name][1]) for name, number in zip(self.sums, numbers, strict=True)}

    def draw(self) -> None:
        """Draw, show and save the pictures, in evaluation mode."""
        networks = nn.ModuleList(owner for owner in self.state.values() if isinstance(owner, nn.Module))
        training = [module for module in networks.modules() if module.training]
        networks.eval()
        with torch.no_grad():
            made = {name: grid(to_uint8(f()), self.columns) for name, f in self.pictures.items() if callable(f)}
        for module in training:
            module.training = True
        for name, picture in made.items():
            self.board.add_image(f"images/{name}", picture, self.step)  # TensorBoard opens what is first by name
        if made:
            (self.folder / "samples").mkdir(exist_ok=True)
            checkpoint.write_whole(self.folder / "samples" / f"step-{self.step:06d}.png", png(*made.values()))

    def save(self) -> None:
        """Write `checkpoint.pt`, plain data and tensors; raises Stopped, keeping the last one, if one is not finite."""
        entries = {name: owner.state_dict() for name, owner in self.state.items()}
        content = self.header | {"step": self.step, "sums": self.totals()} | entries
        for name, entry in entries.items():
            numbers = [torch.as_tensor(leaf) for leaf in tree_leaves(entry) if isinstance(leaf, Tensor | float)]
            if not all(number.isfinite().all() for number in numbers):
                raise Stopped(f"step {self.step}: {name} is not finite: no checkpoint is written; try a lower --lr")
        if self.ranks.is_main:
            self.board.flush()  # no point logged before the checkpoint can be lost after it
            checkpoint.write_whole(self.folder / "checkpoint.pt", checkpoint.as_bytes(content))

    def print_results(self) -> None:
        """Print where the results are, how to look at them and, if there are steps left, how to continue."""
        lines = [f"Done: {self.step} steps. What the curves show: docs/curves.md"]
        if self.step < self.options.steps:
            python = "python" if self.ranks.count == 1 else f"torchrun --standalone --nproc-per-node={self.ranks.count}"
            command = shlex.join([str(self.path), "--resume", str(self.folder)])
            lines = [f"Interrupted after step {self.step}.", f"Continue:    {python} {command}"]
        if any(map(callable, self.pictures.values())):
            lines += [f"Samples:     {self.folder}/samples/step-{self.step:06d}.png"]
        lines += [f"TensorBoard: tensorboard --logdir {shlex.quote(str(self.folder.parent))}"]
        if self.ranks.is_main:
            self.show(partial(print, flush=True), "\n".join(lines))


def pick_device(name: str | None) -> torch.device:
    """Return the device `name`, by default CUDA where it is available; raises BadInput if this machine lacks it."""
    name = name or ("cuda" if torch.cuda.is_available() else "cpu")
    if name == "cuda" and "LOCAL_RANK" in os.environ:  # under torchrun, each process has its own
        name = f"cuda:{os.environ['LOCAL_RANK']}"
    with as_bad_input(f"--device {name}: cannot be used on this machine; --device cpu can"):
        probe = torch.zeros(1, device=name)
        probe.cpu()  # raises for `meta`, which holds no numbers
    return probe.device


def origin(script: Path, device: torch.device) -> dict[str, str]:
    """Return where a run comes from: command line, with the script's folder by name, commit, versions and device."""
    path, commit = script.resolve(), "none"
    run = partial(subprocess.run, cwd=path.parent, capture_output=True, text=True, check=True)
    with suppress(OSError, subprocess.CalledProcessError):  # no git, or no repository
        commit = run(["git", "describe", "--always", "--dirty", "--abbrev=12"]).stdout.strip()
        if not run(["git", "ls-files", path.name]).stdout:
            commit += f", without {path.name}"
    versions = f"torch {torch.__version__}, Python {sys.version.split()[0]}"
    command = shlex.join(["python", str(Path(*path.parts[-2:])), *sys.argv[1:]])
    return {"command": command, "commit": commit, "versions": versions, "device": str(device)}


def note_signals(opened: ExitStack) -> list[int]:
    """Return a list that gets the first SIGINT, SIGTERM or SIGHUP until `opened` ends; a second one acts as usual."""
    numbers = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]
    before = {number: signal.getsignal(number) for number in numbers}
    received: list[int] = []

    def note(number: int, _frame: object) -> None:
        received.append(number)
        signal.signal(number, before[number])

    with suppress(ValueError):  # raised outside the main thread, which alone receives signals
        for number, handler in before.items():
            if number in numbers[:2] or handler != signal.SIG_IGN:  # nohup ignores SIGHUP
                signal.signal(number, note)
                opened.callback(signal.signal, number, handler)
    return received
