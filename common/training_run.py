"""The bookkeeping of a training run, which is the same in all scripts.

Device and seed, TensorBoard, the progress bar, sample grids, checkpoints and resuming, and a clean end on Ctrl-C.
Networks, optimizers, the step and whatever else changes the weights stay in the scripts.
"""

import json
import math
import os
import shlex
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from pathlib import Path

import torch
from torch import Tensor, nn
from torch._functorch import config as functorch_config
from torch.optim import Optimizer
from torch.optim.swa_utils import AveragedModel
from torch.utils.tensorboard import SummaryWriter
from tqdm import tqdm

from common.audit_report import save
from common.data import batches, lasting, seed_for, to_uint8
from common.gradient_audit import GradientAudit
from common.images.pictures import grid, png
from common.images.streaming import StreamedImages
from common.run.board import add_picture, charts, check_numbers_by_name, stacked, tag_of
from common.run.checkpoint import Stateful, all_finite, load_checkpoint, mismatch, refusing, take_up
from common.run.command_line import BadInput, Stopped
from common.run.folder import events, locked, make_run_folder, remove_unfinished, shown, version, write_whole
from common.run.markdown import table
from common.run.option_values import as_typed, check_numbers, flag, kept
from common.run.options import RunOptions, check_alike, check_resumable, pick_device
from common.run.ranks import Ranks
from common.run.signals import Interrupted, told_of_signals

AUDITED_STEPS = 3


class TrainingRun:
    """One run of a training script: set up with `show` and `keep`, then a loop over `steps` that calls `log`."""

    def __init__(self, script: str, options: RunOptions):
        """Check `options`, find the other processes, pick the device, seed torch; nothing is written before step 1.

        script: path of the training script; its name is the folder's. Raises BadInput for options that cannot work,
        or that are not those of the run to resume.
        """
        check_numbers(options)
        self.script = Path(script).stem
        self.options = options
        self.folder = options.resume
        self.resumed = version(options.resume / "checkpoint.pt") if options.resume else None
        self.checkpoint = load_checkpoint(options.resume) if options.resume else {}
        self.saved: int | None = self.checkpoint.get("step")
        if options.resume:
            check_resumable(self.script, options, self.checkpoint)
        self.ranks = Ranks(options.batch_size)
        if options.resume and self.ranks.leads:
            for name in kept(options).keys() - self.checkpoint["options"].keys() - {"resume"}:
                print(f"The run was made without {flag(name)}: it goes on with {as_typed(getattr(options, name))}.")
        self.device = pick_device(options.device)
        # Rank 0 alone makes a folder.
        check_alike(self.ranks, **asdict(options) | {"device": self.device.type, "runs_dir": None})
        if options.batch_size < self.ranks.count:
            told = f"leaves some of {self.ranks.count} processes without an image; raise it or start fewer"
            raise BadInput(f"--batch-size {options.batch_size}: {told}")
        self.state: dict[str, Stateful] = {}
        self.latest: tuple[int, dict[str, Tensor | float]] = 0, {}
        self.pictures: dict[str, Tensor | Callable[[], Tensor]] = {}
        self.measures: dict[str, Callable[[], Tensor]] = {}
        self.measured: dict[str, float] = {}
        self.config: dict[str, object] = {}
        self.board: SummaryWriter | None = None  # of rank 0, within `steps`
        self.bar: tqdm | None = None
        self.logged_at = 0.0, 0  # time in seconds, and step
        self.signals: list[int] = []  # those that have come to this process
        self.signal = 0  # the one that ends the run, in whichever process it came
        self.stepping = False
        torch.manual_seed(options.seed)
        self.random_generators = [torch.default_generator]
        if self.device.type == "cuda":
            torch.set_float32_matmul_precision("high")  # TF32
            torch.cuda.set_device(self.device.index or 0)
            self.random_generators.append(torch.cuda.default_generators[self.device.index or 0])

    def place(self, network: nn.Module) -> nn.Module:
        """Move a network to the run's device, compile it if `--compile` says so, and return it."""
        network.to(self.device)
        if self.options.compile:
            # A compiled backward pass reuses its buffers, and so refuses retain_graph=True, unless told not to.
            functorch_config.donated_buffer = False
            network.compile()
        return network

    def keep(self, **state: Stateful) -> None:
        """Name what the checkpoint holds: networks, optimizers, and all else that a step changes."""
        self.state = state

    def networks(self) -> dict[str, nn.Module]:
        """Return the networks among what `keep` named."""
        return {name: part for name, part in self.state.items() if isinstance(part, nn.Module)}

    def show(self, **pictures: Tensor | Callable[[], Tensor]) -> None:
        """Name what the run shows: images (N, C, H, W) in [-1, 1], or a function that makes them every so many steps.

        Eight to a row. TensorBoard gets each under its name; those made by functions are saved together as one grid.
        """
        self.pictures = pictures

    def measure(self, measures: dict[str, Callable[[], Tensor]]) -> None:
        """Name what the run measures whenever it draws its pictures: TensorBoard's tags, and functions to 0-d tensors.

        The last of each is printed at the end, too.
        """
        self.measures = measures

    def noise(self, count: int) -> Tensor:
        """Return (count, z_dim) standard normal noise; within a step it is a function of (seed, step).

        Within a step and under torchrun it is this process's rows of the noise for the global batch. Raises ValueError
        if those are not `count`.
        """
        if not self.stepping or self.ranks.count == 1:
            return torch.randn(count, self.options.z_dim, device=self.device)
        noise = self.ranks.share(torch.randn(self.options.batch_size, self.options.z_dim, device=self.device))
        if len(noise) != count:
            raise ValueError(f"noise({count}) within a step: this process has {len(noise)} images of the batch")
        return noise

    def precision(self) -> torch.autocast:
        """Return the context for a step: autocast to bfloat16 with `--precision bf16`, else one that changes nothing.

        Its cache of cast weights is off: a step changes the weights between two passes through the same network.
        """
        enabled = self.options.precision == "bf16"
        return torch.autocast(self.device.type, torch.bfloat16, enabled=enabled, cache_enabled=False)

    def steps(self, *datasets: Tensor | StreamedImages) -> Iterator[tuple]:
        """Yield (step, batch of each data set) for step 1, 2, ..., and log, sample and save between them.

        datasets: uint8 (N, C, H, W) on the run's device, or streamed to it. A batch is float (batch_size, C, H, W) in
        [-1, 1], under torchrun this process's rows of it. A resumed run loads its state here and starts with the step
        after its checkpoint. Raises BadInput where the run's folder cannot be written or another process
        trains in it, the data are not the same in all processes or a checkpoint is not that of these networks and data;
        Stopped where the run's files cannot be written any more, a streamed image cannot be read or a loss is not
        finite; Interrupted, all being saved, after Ctrl-C or SIGTERM.
        """
        options = self.options
        shapes = [list(images.shape) for images in datasets]
        check_alike(self.ranks, dataset=shapes)
        self.check_averaged()
        start = self.restore(shapes) if options.resume else 0
        if start == options.steps:
            self.say_goodbye(start)
            return
        streams = [
            batches(images, options.batch_size, seed_for(options.seed, domain), start, self.ranks.rows)
            for domain, images in enumerate(datasets)
        ]
        leads = self.ranks.leads
        if leads and not options.resume:
            self.folder = make_run_folder(options.runs_dir / self.script)
        self.folder = self.ranks.gather(self.folder)[0]
        self.ranks.start_alike(self.networks().values())
        with ExitStack() as opened, told_of_signals() as self.signals, ExitStack() as audited:
            for stream in streams:
                opened.callback(stream.close)  # and with it the processes that read its images
            if leads:
                opened.enter_context(locked(self.folder))
                if options.resume and version(self.folder / "checkpoint.pt") != self.resumed:
                    raise BadInput(f"{shown(self.folder)}: another process has just gone on with it; try again")
            progress = {"initial": start, "total": options.steps, "unit": "step", "dynamic_ncols": True}
            self.bar = opened.enter_context(tqdm(desc=self.script, **progress, disable=not leads))
            with self.telling():
                if leads:
                    remove_unfinished(self.folder)
                    self.write_config(shapes)
                    # What the events of an earlier process say about steps after the checkpoint, TensorBoard forgets.
                    self.board = opened.enter_context(events(self.folder, start + 1 if options.resume else None))
                if options.resume:
                    self.save(start)  # with the new --steps, which must hold even if this process is killed
                elif leads:
                    self.introduce()
            audits = options.audit and leads
            if audits:
                trained = {name: part for name, part in self.networks().items() if not isinstance(part, AveragedModel)}
                audit = audited.enter_context(GradientAudit(**trained))
            audited_step = start + AUDITED_STEPS
            self.logged_at = time.perf_counter(), start
            for step in range(start + 1, options.steps + 1):
                # Noise, and whatever else a step draws, is a function of (seed, step). Not torch.manual_seed: where
                # CUDA is idle, that takes half a millisecond and keeps a stack trace each time.
                for generator in self.random_generators:
                    generator.manual_seed(seed_for(options.seed, len(datasets), step))
                try:
                    reals = [next(stream) for stream in streams]
                except (BadInput, Stopped) as error:
                    raise self.unread(step - 1, error) from error
                self.stepping = True
                yield step, *reals
                self.stepping = False
                self.bar.update()
                last = self.ends(step)
                with self.telling():
                    if step % options.log_every == 0 or step in (1, options.steps):
                        self.draw_curves()
                    if audits and (step == audited_step or (last and step < audited_step)):
                        audited.close()
                        self.board.add_text("audit", str(audit), step)
                        saved = save(self.folder / "audit.md", audit.data(), str(audit))
                        tqdm.write(f"Gradients of the first {step - start} steps:\n\n{audit}\n\n{saved}\n")
                    if last or step % options.sample_every == 0:
                        self.sample(step)
                    if last or step % options.checkpoint_every == 0:
                        self.save(step)
                if last:
                    break
        self.say_goodbye(step)
        if step < options.steps:
            raise Interrupted(self.signal)

    def check_averaged(self) -> None:
        """Raise BadInput for an optimizer whose step would let the weights of several processes drift apart."""
        average = self.ranks.average_gradients
        optimizers = {name: part for name, part in self.state.items() if isinstance(part, Optimizer)}
        for name, optimizer in optimizers.items() if self.ranks.count > 1 else ():
            if average not in optimizer._optimizer_step_pre_hooks.values():
                cure = f"before the loop, call {name}.register_step_pre_hook(run.ranks.average_gradients)"
                raise BadInput(f"{name}: its gradients are not averaged over the processes; {cure}")

    def ends(self, step: int) -> bool:
        """Return whether `step` is the last, because all are done or a signal has come.

        Several processes must stop at the same step: they tell each other of a signal every `--log-every` steps.
        """
        if step == self.options.steps:
            return True
        if self.ranks.count > 1 and step % self.options.log_every:
            return False
        self.signal = max(self.ranks.gather(max(self.signals, default=0)))
        return self.signal > 0

    def unread(self, step: int, error: BadInput | Stopped) -> BadInput | Stopped:
        """Save a run of one process after `step`, and return what ends it: `error`, in reading the next images."""
        if step == 0:
            return error
        if self.ranks.count == 1 and self.saved != step:
            with self.telling():
                self.save(step)
        told = f"{error}; {self.what_is_left()}"
        if self.saved is not None:
            told += "; --resume goes on from it"
            if isinstance(error, BadInput):  # no image may be left out
                told += " with as many images as before, for their order depends on their number"
        return Stopped(told)

    def restore(self, shapes: list[list[int]]) -> int:
        """Load the state of the checkpoint, all of it or, with BadInput, nothing, and return its step."""
        run, checkpoint = self.options.resume, self.checkpoint
        made_with = [list(shape) for shape in checkpoint["data_shapes"]]
        if made_with != shapes:
            told = f"holds images of shape {shapes}, but the run {run} was made with {made_with}; bring those back"
            raise BadInput(f"--dataset {self.options.dataset}: {told}")
        with refusing(run / "checkpoint.pt"):
            for name, part in self.state.items():
                if wrong := mismatch(part, checkpoint.get(name)):
                    raise BadInput(f"does not hold this {name}: {wrong}")
            for name, part in self.state.items():
                take_up(part, checkpoint[name])
        self.checkpoint = {}
        return checkpoint["step"]

    def introduce(self) -> None:
        """Write what a new run shows before its first step."""
        options = table(["option", "value"], [[name, str(value)] for name, value in asdict(self.options).items()])
        # The name of a folder may hold bytes that are no text.
        self.board.add_text("options", options.encode(errors="backslashreplace").decode())
        for name, picture in self.pictures.items():
            if isinstance(picture, Tensor):
                add_picture(self.board, name, picture, 0)
        self.sample(0)

    def log(self, step: int, values: dict[str, Tensor | float]) -> None:
        """Take what a step returned: by name, numbers or tensors of one element. Each becomes a curve.

        Under the tag of `tag_of`; what ends in `loss` also stands beside the progress bar. The run reads the numbers
        at the end of this step, if it logs that. Raises Stopped for anything else.
        """
        check_numbers_by_name(step, values)
        self.latest = step, values

    def draw_curves(self) -> None:
        """Show what the latest step returned: with `save`, the one point where the host waits."""
        step, numbers = self.latest[0], self.finite_numbers()
        if not self.ranks.leads:
            return
        now, (then, before) = time.perf_counter(), self.logged_at
        self.logged_at = now, step
        speed = (step - before) * self.options.batch_size / (now - then)
        for name, number in numbers.items():
            self.board.add_scalar(tag_of(name), number, step)
        if step == 1:
            self.board.add_custom_scalars(charts([*map(tag_of, numbers), *self.measures]))
        self.board.add_scalar("throughput/images_per_second", speed, step)
        losses = " ".join(f"{name} {number:.3f}" for name, number in numbers.items() if name.endswith("loss"))
        self.bar.set_postfix_str(f"{losses}, {speed:,.0f} images/s", refresh=False)

    def finite_numbers(self) -> dict[str, float]:
        """Return the means over the batch that the latest step returned; raises Stopped where one is not finite.

        All processes must ask at the same step, and all get the same answer.
        """
        step, values = self.latest
        means = self.ranks.mean(stacked(values, self.device)).tolist() if values else []
        numbers = dict(zip(values, means, strict=True))
        for name, number in numbers.items():
            if not math.isfinite(number):
                raise Stopped(f"step {step}: {name} is {number}; {self.what_is_left()}; try a lower --lr in a new run")
        return numbers

    def sample(self, step: int) -> None:
        """Write the pictures as they are after `step`."""
        if not self.ranks.leads:
            return
        modes = {module: module.training for network in self.networks().values() for module in network.modules()}
        for network in self.networks().values():
            network.eval()
        with torch.no_grad():
            drawn = {name: make() for name, make in self.pictures.items() if callable(make)}
            self.measured = {name: measure().item() for name, measure in self.measures.items()}
        for module, mode in modes.items():
            module.training = mode
        for name, images in drawn.items():
            add_picture(self.board, name, images, step)
        for name, number in self.measured.items():
            self.board.add_scalar(name, number, step)
        (self.folder / "samples").mkdir(exist_ok=True)
        everything = png(grid(to_uint8(torch.cat(list(drawn.values())))))
        write_whole(self.sample_path(step), lambda file: file.write(everything))

    def sample_path(self, step: int) -> Path:
        """Return where the grid made after `step` lies."""
        return self.folder / "samples" / f"step-{step:06d}.png"

    def save(self, step: int) -> None:
        """Write `checkpoint.pt`: plain data and tensors alone, so that it loads with `weights_only=True`.

        Raises Stopped, and keeps the checkpoint before, where a loss or anything to be kept is not finite.
        """
        self.finite_numbers()
        checkpoint = {"step": step} | {name: part.state_dict() for name, part in self.state.items()}
        for name in self.state:
            if not all_finite(checkpoint[name]):
                raise Stopped(f"step {step}: {name} holds a number that is not finite; {self.what_is_left()}")
        if self.ranks.leads:
            self.board.flush()  # so that no point of before the checkpoint can be lost after it
            write_whole(self.folder / "checkpoint.pt", lambda file: torch.save(self.config | checkpoint, file))
        self.saved = step

    def write_config(self, shapes: list[list[int]]) -> None:
        """Write `config.json`: the script, its options, the data's shapes, and what it ran on."""
        options = {name: value for name, value in kept(self.options).items() if name != "resume"}
        if isinstance(options.get("dataset"), str):
            options["dataset"] = lasting(options["dataset"])
        self.config = {
            "script": self.script,
            "options": options,
            "data_shapes": shapes,
            "device": str(self.device),
            "torch": str(torch.__version__),
        }
        write_whole(self.folder / "config.json", lambda file: file.write(json.dumps(self.config, indent=2).encode()))

    @contextmanager
    def telling(self) -> Iterator[None]:
        """Raise what keeps the block from writing the run's files as Stopped."""
        try:
            yield
        except OSError as error:
            where = os.fsdecode(error.filename or self.folder)
            raise Stopped(f"{where}: {error.strerror or error}; {self.what_is_left()}") from error

    def what_is_left(self) -> str:
        """Return where the last checkpoint is, in words."""
        if self.saved is None:
            return f"{shown(self.folder)} has no checkpoint yet"
        return f"the last checkpoint, of step {self.saved}, is {shown(self.folder / 'checkpoint.pt')}"

    def say_goodbye(self, step: int) -> None:
        """Say where the results are and how to look at them."""
        if not self.ranks.leads:
            return
        print(f"Done: {step} steps." if step == self.options.steps else f"Interrupted after step {step}.")
        for name, number in self.measured.items():
            print(f"{name}: {number:.4f}")
        print(f"Samples:     {shown(self.sample_path(step))}")
        print(f"More images: python scripts/tools/sample.py {shlex.quote(str(shown(self.folder)))}")
        print(f"TensorBoard: tensorboard --logdir {shlex.quote(str(shown(self.folder.parent)))}")
