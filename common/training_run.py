"""A training run: what would be dull to read twice in the scripts.

Options, device and seed, the run's folder, TensorBoard, the progress bar, sample grids, checkpoints and going on from
them, and a clean end on Ctrl-C. The training itself, networks, optimizers and steps, stays in the scripts.
"""

import json
import math
import os
import re
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass, fields, replace
from datetime import datetime
from pathlib import Path
from typing import BinaryIO, Literal

import torch
import tyro
from torch import Tensor, nn
from torch.optim import Optimizer
from torch.optim.swa_utils import AveragedModel
from torch.utils.tensorboard import SummaryWriter
from torchvision.utils import make_grid, save_image
from tqdm import tqdm

from common.checkpoint import Stateful, all_finite, load_checkpoint, mismatch, refusing, stored_options
from common.command_line import BadInput, Stopped
from common.data import batches, seed_for
from common.distributed import Ranks
from common.gradient_audit import GradientAudit
from common.streaming import StreamedImages

AUDITED_STEPS = 3

# Beyond these an option is a slip, or a checkpoint's attempt on the machine's memory.
LARGEST = {
    "seed": 2**63 - 1,  # what torch takes
    "image_size": 4096,
    "load_size": 4096,
    "channels": 1024,
    "batch_size": 2**20,
    "z_dim": 2**16,
    "width": 1024,
    "count": 10**7,
    "doublings": 8,
}

# What a step returns, and where TensorBoard shows it.
TAGS = {
    "d_loss": "loss/discriminator",
    "g_loss": "loss/generator",
    "d_real": "probability/real",
    "d_fake": "probability/fake",
    "adversarial_loss": "loss/adversarial",
    "cycle_loss": "loss/cycle",
    "identity_loss": "loss/identity",
    "learning_rate": "learning_rate",
}


@dataclass(frozen=True)
class RunOptions:
    """Options of every training script."""

    dataset: str = "mnist5k"
    """mnist5k (shipped), mnist, fashion-mnist, cifar10 (downloaded), or a folder of images."""
    image_size: int | None = None
    """Pixels a side. None: the data set's own size, 64 for a folder."""
    batch_size: int = 32
    """Images per step, all processes together."""
    steps: int = 2400
    """Steps to train, each one update of every network."""
    lr: float = 1.5e-3
    """Adam's learning rate, for all networks."""
    betas: tuple[float, float] = (0.0, 0.99)
    """Adam's decay rates of the gradient's mean and of its square."""
    seed: int = 0
    """Fixes the initial weights, the noise and the order of the images."""
    device: str | None = None
    """cpu, cuda, cuda:1, ... None takes CUDA where it is available."""
    runs_dir: Path = Path(__file__).resolve().parents[1] / "runs"
    """Where the run's folder <script>/<date-time> is made."""
    log_every: int = 50
    """Steps between two points of the curves."""
    sample_every: int = 250
    """Steps between two sample grids."""
    checkpoint_every: int = 500
    """Steps between two checkpoints; the last step has one anyway."""
    resume: Path | None = None
    """Folder of a run to go on with, by its own options; --steps may be raised."""
    precision: Literal["fp32", "bf16"] = "fp32"
    """bf16 computes in bfloat16 by autocast; weights and losses stay in float32."""
    compile: tyro.conf.FlagCreatePairsOff[bool] = False
    """Compile the networks: half a minute of waiting for faster steps."""
    audit: tyro.conf.FlagCreatePairsOff[bool] = False
    """Print where every gradient of the first three steps goes."""

    def defaults(self) -> "RunOptions":
        """Return what stands for the options left out: those of the run to resume, or the class's own."""
        if self.resume is None:
            return type(self)()
        stored = stored_options(load_checkpoint(self.resume), self.resume, type(self))
        return replace(stored, resume=self.resume, audit=False)


@dataclass(frozen=True)
class GanOptions(RunOptions):
    """Options of the scripts with one generator and one discriminator."""

    model: Literal["dcgan", "mlp"] = "dcgan"
    """Convolutional networks, or fully connected ones."""
    z_dim: int = 64
    """Length of the noise vector that the generator starts from."""
    ema: float = 0.998
    """Decay of the average of G's weights that samples are drawn from; 0: the last weights."""


@dataclass(frozen=True)
class StaleDiscriminatorOptions(GanOptions):
    """Options of the update orders in which G answers the D of before the step, with an Adam that they can bear.

    At the rates of the other orders G and D chase each other in a circle, and G ends up ignoring its noise.
    """

    lr: float = 1e-3
    """Adam's learning rate, for all networks."""
    betas: tuple[float, float] = (0.0, 0.999)
    """Adam's decay rates of the gradient's mean and of its square."""


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
        self.checkpoint = load_checkpoint(options.resume) if options.resume else {}
        self.saved: int | None = self.checkpoint.get("step")
        if options.resume:
            check_resumable(self.script, options, self.checkpoint)
        self.ranks = Ranks(options.batch_size)
        self.device = pick_device(options.device)
        if options.batch_size < self.ranks.count:
            raise BadInput(
                f"--batch-size {options.batch_size}: leaves some of {self.ranks.count} processes without an image; "
                "raise it or start fewer"
            )
        # Rank 0 alone makes a folder.
        check_alike(self.ranks, **asdict(options) | {"device": self.device.type, "runs_dir": None})
        self.state: dict[str, Stateful] = {}
        self.latest: tuple[int, dict[str, Tensor | float]] = 0, {}
        self.pictures: dict[str, Tensor | Callable[[], Tensor]] = {}
        self.measures: dict[str, Callable[[], Tensor]] = {}
        self.measured: dict[str, float] = {}
        self.interrupted = False
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
            network.compile()
        return network

    def keep(self, **state: Stateful) -> None:
        """Name what the checkpoint holds: networks, optimizers, and all else that a step changes."""
        self.state = state
        for part in state.values():
            if isinstance(part, Optimizer):
                part.register_step_pre_hook(self.ranks.average_gradients)

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

        Within a step and under torchrun, `count` must be the size of this process's share of the batch, and its rows
        of the noise for the whole batch come back. Raises ValueError for another.
        """
        if not self.stepping or self.ranks.count == 1:
            return torch.randn(count, self.options.z_dim, device=self.device)
        share = self.ranks.share(torch.randn(self.options.batch_size, self.options.z_dim, device=self.device))
        if len(share) != count:
            raise ValueError(f"noise({count}) within a step: this process has {len(share)} images of the batch")
        return share

    def steps(self, *datasets: Tensor | StreamedImages) -> Iterator[tuple]:
        """Yield (step, batch of each data set) for step 1, 2, ..., and keep the books between the steps.

        datasets: uint8 (N, C, H, W) on the run's device, or streamed to it. A batch is float (batch_size, C, H, W) in
        [-1, 1], under torchrun this process's share of it. A run that is resumed takes up its state here and starts
        with the step after its checkpoint. Raises BadInput where the run's folder cannot be written, a streamed image
        not be read, the data not be the same in all processes or a checkpoint not be that of these networks and data;
        Stopped where the run's files cannot be written any more or a loss is not finite.
        """
        options = self.options
        shapes = [list(images.shape) for images in datasets]
        check_alike(self.ranks, dataset=shapes)
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
        self.bar = tqdm(
            desc=self.script, initial=start, total=options.steps, unit="step", dynamic_ncols=True, disable=not leads
        )
        # Without a cache: around a whole run it would go on giving the networks the weights of their first pass.
        enabled = options.precision == "bf16"
        bf16 = torch.autocast(self.device.type, torch.bfloat16, enabled=enabled, cache_enabled=False)
        with ExitStack() as opened, self.bar, finish_on_signals(self), bf16, ExitStack() as audited:
            with self.telling():
                if leads:
                    remove_unfinished(self.folder)
                    self.write_config(shapes)
                    # What the events of an earlier process say about steps after the checkpoint, TensorBoard forgets.
                    self.board = opened.enter_context(events(self.folder, start + 1 if options.resume else None))
                if options.resume:
                    self.save(start)  # with the --steps raised, which must hold though this process be killed, too
                elif leads:
                    self.introduce()
            audits = options.audit and leads
            if audits:
                trained = {name: part for name, part in self.networks().items() if not isinstance(part, AveragedModel)}
                audit = audited.enter_context(GradientAudit(**trained))
            audited_step = start + AUDITED_STEPS
            self.logged_at = time.perf_counter(), start
            self.stepping = True
            for step in range(start + 1, options.steps + 1):
                # Noise, and whatever else a step draws, is a function of (seed, step). Not torch.manual_seed: where
                # CUDA is idle, that takes half a millisecond and keeps a stack trace each time.
                for generator in self.random_generators:
                    generator.manual_seed(seed_for(options.seed, len(datasets), step))
                yield step, *map(next, streams)
                self.bar.update()
                last = self.ends(step)
                with self.telling():
                    if step % options.log_every == 0 or step in (1, options.steps):
                        self.draw_curves()
                    if audits and (step == audited_step or (last and step < audited_step)):
                        audited.close()
                        self.board.add_text("audit", str(audit), step)
                        tqdm.write(f"Gradients of the first {step - start} steps:\n\n{audit}\n")
                    if last or step % options.sample_every == 0:
                        self.sample(step)
                    if last or step % options.checkpoint_every == 0:
                        self.save(step)
                if last:
                    break
        self.say_goodbye(step)

    def ends(self, step: int) -> bool:
        """Return whether `step` is the last, because all are done or a signal has come.

        Several processes must stop at the same step: they tell each other of a signal every `--log-every` steps.
        """
        if step == self.options.steps:
            return True
        if self.ranks.count > 1 and step % self.options.log_every:
            return False
        if self.ranks.any(self.interrupted):
            self.interrupted = True
        return self.interrupted

    def restore(self, shapes: list[list[int]]) -> int:
        """Take up the state of the checkpoint, all of it or, with BadInput, nothing, and return its step."""
        run, checkpoint = self.options.resume, self.checkpoint
        made_with = [list(shape) for shape in checkpoint["data_shapes"]]
        if made_with != shapes:
            raise BadInput(
                f"--dataset {self.options.dataset}: holds images of shape {shapes}, but the run {run} was made with "
                f"{made_with}; bring those back"
            )
        with refusing(run / "checkpoint.pt"):
            for name, part in self.state.items():
                if wrong := mismatch(part, checkpoint.get(name)):
                    raise BadInput(f"does not hold this {name}: {wrong}")
            for name, part in self.state.items():
                part.load_state_dict(checkpoint[name])
        self.checkpoint = {}
        return checkpoint["step"]

    def introduce(self) -> None:
        """Write what a new run shows before its first step."""
        # Curves that are read together, for TensorBoard's tab of custom scalars.
        charts = {"losses": ["^loss/"]}
        if isinstance(self.options, GanOptions):
            charts["D(x) and D(G(z))"] = ["^probability/"]
        if self.measures:
            charts["held-out images"] = [f"^{tag}$" for tag in self.measures]
        self.board.add_custom_scalars({"training": {title: ["Multiline", tags] for title, tags in charts.items()}})
        self.board.add_text("options", markdown_table(asdict(self.options)))
        for name, picture in self.pictures.items():
            if isinstance(picture, Tensor):
                self.show_on_board(name, picture, 0)
        self.sample(0)

    def show_on_board(self, name: str, images: Tensor, step: int) -> None:
        """Show images in TensorBoard, small ones at twice their size."""
        if images.shape[-1] < 64:
            images = images.repeat_interleave(2, -1).repeat_interleave(2, -2)
        self.board.add_image(name, grid(images), step)

    def log(self, step: int, values: dict[str, Tensor | float]) -> None:
        """Take what a step returned, 0-d tensors or numbers; the run looks at it when this step's books are kept."""
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
            self.board.add_scalar(TAGS[name], number, step)
        self.board.add_scalar("throughput/images_per_second", speed, step)
        losses = " ".join(f"{name} {number:.3f}" for name, number in numbers.items() if name.endswith("loss"))
        self.bar.set_postfix_str(f"{losses}, {speed:,.0f} images/s", refresh=False)

    def finite_numbers(self) -> dict[str, float]:
        """Return the means over the batch that the latest step returned; raises Stopped where one is not finite.

        All processes must ask at the same step, and all get the same answer.
        """
        step, values = self.latest
        tensors = [torch.as_tensor(value, device=self.device) for value in values.values()]
        means = self.ranks.mean(torch.stack(tensors)).tolist() if values else []
        numbers = dict(zip(values, means, strict=True))
        for name, number in numbers.items():
            if not math.isfinite(number):
                raise Stopped(f"step {step}: {name} is {number}; {self.what_is_left()}; try a lower --lr in a new run")
        return numbers

    def sample(self, step: int) -> None:
        """Write the pictures as they are after `step`."""
        if not self.ranks.leads:
            return
        for network in self.networks().values():
            network.eval()
        with torch.no_grad():
            drawn = {name: make() for name, make in self.pictures.items() if callable(make)}
            self.measured = {name: measure().item() for name, measure in self.measures.items()}
        for network in self.networks().values():
            network.train()
        for name, images in drawn.items():
            self.show_on_board(name, images, step)
        for name, number in self.measured.items():
            self.board.add_scalar(name, number, step)
        (self.folder / "samples").mkdir(exist_ok=True)
        everything = grid(torch.cat(list(drawn.values())))
        write_whole(self.sample_path(step), lambda file: save_image(everything, file, format="png"))

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
        options = asdict(self.options)
        del options["resume"]
        self.config = {
            "script": self.script,
            "options": {name: str(value) if isinstance(value, Path) else value for name, value in options.items()},
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
        print(f"Interrupted after step {step}." if self.interrupted else f"Done: {step} steps.")
        for name, number in self.measured.items():
            print(f"{name}: {number:.4f}")
        print(f"Samples:     {shown(self.sample_path(step))}")
        print(f"More images: python scripts/sample.py {shown(self.folder)}")
        print(f"TensorBoard: tensorboard --logdir {shown(self.folder.parent)}")


def check_numbers(options: object) -> None:
    """Raise BadInput for numbers in the dataclass `options` that make no sense.

    All must be finite and positive, betas and ema below 1, and whole numbers at most what LARGEST says; seed and
    identity_weight may be 0.
    """
    for field in fields(options):
        value = getattr(options, field.name)
        for number in value if isinstance(value, tuple) else (value,):
            if isinstance(number, bool) or not isinstance(number, int | float):
                continue
            flag = f"--{field.name.replace('_', '-')} {number}"
            if isinstance(number, int) and number > (largest := LARGEST.get(field.name, 10**9)):
                raise BadInput(f"{flag}: must be at most {largest}")
            if not math.isfinite(number):
                raise BadInput(f"{flag}: must be a finite number")
            if field.name in ("betas", "ema"):
                if not 0 <= number < 1:
                    raise BadInput(f"{flag}: must be at least 0 and below 1")
            elif field.name in ("seed", "identity_weight"):
                if number < 0:
                    raise BadInput(f"{flag}: must be 0 or more")
            elif number <= 0:
                raise BadInput(f"{flag}: must be more than 0")


def check_resumable(script: str, options: RunOptions, checkpoint: dict) -> None:
    """Raise BadInput unless `options` are those of the checkpoint's run, which `script` made, or more of its steps."""
    run = options.resume
    if not run.is_dir():
        raise BadInput(f"--resume {run}: name the run's folder, not a file")
    if checkpoint["script"] != script:
        raise BadInput(f"--resume {run}: made by {checkpoint['script']}.py, not by {script}.py; resume it with that")
    stored = stored_options(checkpoint, run, type(options))
    check_numbers(stored)
    if not 0 < checkpoint["step"] <= stored.steps:
        raise BadInput(f"{run / 'checkpoint.pt'}: step {checkpoint['step']} of {stored.steps} makes no sense")
    if options.steps < stored.steps:
        raise BadInput(f"--steps {options.steps}: the run {run} has {stored.steps}, which can only be raised")
    for field in fields(options):
        given, made_with = getattr(options, field.name), getattr(stored, field.name)
        if given != made_with and field.name not in ("steps", "resume", "audit"):
            flag = f"--{field.name.replace('_', '-')}"
            raise BadInput(f"{flag} {as_typed(given)}: the run {run} has {as_typed(made_with)}; leave the option out")


def as_typed(value: object) -> str:
    """Return an option's value as one writes it on the command line."""
    return " ".join(map(str, value)) if isinstance(value, tuple) else str(value)


def pick_device(name: str | None) -> torch.device:
    """Return the device called `name`, by default CUDA where it is available; raises BadInput if it is not there.

    Of several processes that torchrun has started on a machine, each takes the CUDA device of its own number there.
    """
    name = name or ("cuda" if torch.cuda.is_available() else "cpu")
    if name.startswith("cuda") and int(os.environ.get("LOCAL_WORLD_SIZE", 1)) > 1:
        if name != "cuda":
            raise BadInput(f"--device {name}: several processes cannot share it; --device cuda gives each its own")
        name = f"cuda:{os.environ['LOCAL_RANK']}"
    try:
        torch.zeros(1, device=name).item()
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        found = ["cpu"] + [f"cuda:{index}" for index in range(torch.cuda.device_count())]
        raise BadInput(f"--device {name}: not on this machine, which has {', '.join(found)}") from error
    return torch.device(name)


def check_alike(ranks: Ranks, **settings: object) -> None:
    """Raise BadInput unless all processes have the same settings."""
    everyone = ranks.gather(settings)
    for name, value in settings.items():
        for other in everyone:
            if other[name] != value:
                raise BadInput(
                    f"--{name.replace('_', '-')}: {value} here and {other[name]} in another process; start all alike"
                )


def make_run_folder(parent: Path) -> Path:
    """Make and return a folder named after this second, with a number behind it if another run was as quick."""
    name = datetime.now().strftime("%Y%m%d-%H%M%S")
    try:
        parent.mkdir(parents=True, exist_ok=True)
        for suffix in ["", *(f"-{number}" for number in range(2, 100))]:
            folder = parent / (name + suffix)
            try:
                folder.mkdir()
                return folder
            except FileExistsError:
                continue
        raise FileExistsError(f"{parent / name} and 98 more exist")
    except OSError as error:
        raise BadInput(f"--runs-dir: {parent} cannot be written ({error.strerror or error}); choose another") from error


def write_whole(path: Path, write: Callable[[BinaryIO], object]) -> None:
    """Call `write` on a temporary file beside `path` and rename it: `path` is the old file or the new, never half.

    Raises OSError, with `path` as its file, where that cannot be written.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with temporary.open("wb") as file:
            write(file)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except (OSError, RuntimeError) as error:
        cause = error if isinstance(error, OSError) else error.__context__  # torch.save raises on top of the cause
        if not isinstance(cause, OSError):
            raise
        raise OSError(cause.errno, cause.strerror, str(path)) from error
    finally:
        with suppress(OSError):
            temporary.unlink()


def remove_unfinished(folder: Path) -> None:
    """Remove the temporary files below `folder` of a process that was killed inside `write_whole`."""
    for path in folder.rglob(".*"):
        if re.fullmatch(r"\..+\.\d+", path.name):
            path.unlink()


@contextmanager
def events(folder: Path, purge_step: int | None) -> Iterator[SummaryWriter]:
    """Open TensorBoard's writer for `folder`; where its thread cannot write, the next call to it raises the OSError.

    What matters has been flushed before the end, so that its thread prints no traceback and its end raises nothing.
    """

    def hook(failed: threading.ExceptHookArgs) -> None:
        if not isinstance(failed.exc_value, OSError):
            before(failed)

    before, threading.excepthook = threading.excepthook, hook
    try:
        board = SummaryWriter(folder, purge_step=purge_step)
        try:
            yield board
        finally:
            with suppress(OSError):
                board.close()
    finally:
        threading.excepthook = before


@contextmanager
def finish_on_signals(run: TrainingRun) -> Iterator[None]:
    """Let SIGINT and SIGTERM set `run.interrupted`, so that no step is cut in two; a second one acts as ever."""

    def finish(signum, frame):
        run.interrupted = True
        for number, handler in before.items():
            signal.signal(number, handler)

    before = {number: signal.signal(number, finish) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def grid(images: Tensor, columns: int = 8) -> Tensor:
    """Return images (N, C, H, W) in [-1, 1] as one picture (3, h, w) in [0, 1]."""
    return make_grid(images.float().cpu(), nrow=columns, normalize=True, value_range=(-1, 1))


def markdown_table(rows: dict[str, object]) -> str:
    """Return a two-column table for TensorBoard's text tab."""
    table = "| option | value |\n| --- | --- |\n" + "\n".join(f"| {name} | {value} |" for name, value in rows.items())
    return table.encode(errors="backslashreplace").decode()  # the name of a folder may hold bytes that are no text


def shown(path: Path) -> Path:
    """Return `path` as short as the current folder allows."""
    path, here = path.resolve(), Path.cwd()
    return path.relative_to(here) if path.is_relative_to(here) else path
