"""The bookkeeping of a training run, which is the same in all scripts.

Device and seed, TensorBoard, the progress bar, sample grids, checkpoints and resuming, and a clean end on Ctrl-C.
Networks, optimizers, the step and everything else that changes the weights are in the scripts.
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
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.optim import Optimizer
from torch.optim.swa_utils import AveragedModel
from tqdm import tqdm

from common.data import DATASETS, LabeledImages, batches, check_images, seed_for, to_uint8
from common.errors import BadInput, Stopped
from common.run.board import charts, events, tag_of
from common.run.checkpoint import all_finite, load_checkpoint, load_state, mismatch, refusing
from common.run.compiled import compile_in_place
from common.run.folder import locked, make_run_folder, short_path, write_whole
from common.run.markdown import table
from common.run.option_values import checked, options_to_store
from common.run.options import RunOptions, check_resumable, check_same_on_all_ranks, pick_device
from common.run.pictures import grid, png
from common.run.ranks import Ranks
from common.run.signals import Interrupted, signals_noted

if TYPE_CHECKING:
    from common.images.streaming import StreamedImages
    from gradient_audit import GradientAudit

AUDITED_STEPS = 3
SAMPLE = Path(__file__).resolve().parents[1] / "scripts" / "tools" / "sample.py"


class TrainingRun:
    """One run of a training script: set up with `show` and `keep`, then a loop over `steps` that calls `log`."""

    def __init__(self, script: str, options: RunOptions):
        """Check `options`, find the other processes, pick the device and seed torch; no file is written here.

        script: its path; runs are in a folder of its name. Raises BadInput for options that cannot work, or that differ
        from those of the run to resume.
        """
        self.options = options = checked(options)
        self.path, self.script = Path(script), Path(script).stem
        self.folder = options.resume
        self.saved_step: int | None = None
        if options.resume:
            check_resumable(self.script, options, load_checkpoint(options.resume))
        self.ranks = Ranks(options.batch_size)
        self.device = pick_device(options.device)
        # Only rank 0 makes a folder.
        check_same_on_all_ranks(self.ranks, **asdict(options) | {"device": self.device.type, "runs_dir": None})
        if options.batch_size < self.ranks.count:
            message = f"leaves some of {self.ranks.count} processes without an image; raise it or start fewer"
            raise BadInput(f"--batch-size {options.batch_size}: {message}")
        self.keep()
        self.latest: tuple[int, dict[str, Tensor | float]] = 0, {}
        self.measures: dict[str, Callable[[], Tensor]] = {}
        self.measured: dict[str, float] = {}
        torch.manual_seed(options.seed)
        self.own_generators = [torch.default_generator]  # what a step itself draws from
        if self.device.type == "cuda":
            torch.set_float32_matmul_precision("high")  # TF32
            torch.cuda.set_device(self.device.index or 0)
            self.own_generators.append(torch.cuda.default_generators[self.device.index or 0])
        # What all ranks draw alike, for the global batch, is drawn from these: on the CPU, and on the run's device.
        several = self.ranks.count > 1
        self.generators = [torch.Generator(g.device) for g in self.own_generators] if several else self.own_generators
        self.cpu_generator, self.generator = self.generators[0], self.generators[-1]

    def place(self, network: nn.Module) -> nn.Module:
        """Move a network to the run's device, compile it if `--compile` says so, and return it."""
        network.to(self.device)
        if self.options.compile:
            compile_in_place(network)
        return network

    def keep(self, **state: Any) -> None:
        """Name what the checkpoint holds: networks, optimizers and whatever else with a `state_dict` a step changes."""
        self.state = state
        self.networks = {name: part for name, part in state.items() if isinstance(part, nn.Module)}
        self.optimizers = {name: part for name, part in state.items() if isinstance(part, Optimizer)}

    def show(self, columns: int = 8, **pictures: Tensor | Callable[[], Tensor]) -> None:
        """Name the pictures: images (N, C, H, W) in [-1, 1], shown once, or a function that makes them.

        TensorBoard shows each, `columns` images to a row, those of a function under `images/<name>`. Every
        --sample-every steps the functions are called; their images are also saved as one PNG.
        """
        self.pictures, self.columns = pictures, columns

    def measure(self, measures: dict[str, Callable[[], Tensor]]) -> None:
        """Name the measurements, made with every sample grid: TensorBoard tags, functions that return 0-d tensors."""
        self.measures = measures

    def noise(self, count: int) -> Tensor:
        """Return a step's noise, (count, z_dim) and standard normal: a function of (seed, step, calls before).

        Under torchrun it is this process's rows of the global batch; raises ValueError if they are not `count`.
        """
        rows = count if self.ranks.count == 1 else self.options.batch_size
        whole = torch.randn(rows, self.options.z_dim, device=self.device, generator=self.generator)
        noise = self.ranks.share(whole)
        if len(noise) != count:
            raise ValueError(f"noise({count}): this process has {len(noise)} images of the batch")
        return noise

    def precision(self) -> torch.autocast:
        """Return the context for a step: autocast to bfloat16 with `--precision bf16`, else one without effect."""
        enabled = self.options.precision == "bf16"  # without a cache: a step changes weights between forward passes
        return torch.autocast(self.device.type, torch.bfloat16, enabled=enabled, cache_enabled=False)

    def steps(self, *datasets: "Tensor | StreamedImages") -> Iterator[tuple]:
        """Yield (step, batch of each data set) for steps 1, 2, ...; log, sample and save between them.

        datasets: uint8 (N, C, H, W) on the run's device, or streamed to it. A batch is float (batch_size, C, H, W) in
        [-1, 1]; under torchrun, this process's rows of it. LabeledImages give two parts: (step, real, labels), labels
        int64 (batch_size,). A resumed run loads its state here. Raises BadInput where the run cannot start, Stopped
        where it cannot continue, and Interrupted, with everything saved, after Ctrl-C or SIGTERM.
        """
        options, leads, optimizers = self.options, self.ranks.leads, self.optimizers.values()
        for images in datasets:
            check_images(images)
        shapes = [list(images.shape) for images in datasets]
        classes = [list(images.classes) for images in datasets if isinstance(images, LabeledImages)]
        check_same_on_all_ranks(self.ranks, dataset=[shapes, classes])
        self.check_parts()
        with ExitStack() as opened, signals_noted() as signals:
            if leads:
                self.folder = options.resume or make_run_folder(options.runs_dir / self.script)
                opened.enter_context(locked(self.folder))
            self.folder = self.ranks.gather(self.folder)[0]
            start = step = self.restore(shapes, classes) if options.resume else 0
            if start == options.steps:
                return self.print_results(start)
            opened.enter_context(self.errors_as_stopped())
            self.ranks.broadcast_weights(self.networks.values())
            streams = [
                batches(images, options.batch_size, seed_for(options.seed, domain), start, self.ranks.rows)
                for domain, images in enumerate(datasets)
            ]
            for stream in streams:
                opened.callback(stream.close)  # ends the threads that read its images
            progress = {"initial": start, "total": options.steps, "unit": "step", "dynamic_ncols": True}
            self.bar = opened.enter_context(tqdm(desc=self.script, **progress, disable=not leads))
            self.config = self.describe(shapes, classes)
            if leads:
                config = json.dumps(self.config, indent=2).encode()
                write_whole(self.folder / "config.json", lambda file: file.write(config))
                # TensorBoard ignores what an earlier process logged about steps after the checkpoint.
                self.board = opened.enter_context(events(self.folder, start + 1 if options.resume else None))
            if options.resume:
                self.save(start)  # with the new --steps, so that they are kept even if this process is killed
            elif leads:
                self.write_start()
            audited = opened.enter_context(ExitStack())  # ends before the run does
            audit = audited.enter_context(self.gradient_audit()) if options.audit and leads else None
            self.logged_at, signal = (time.perf_counter(), start), 0
            while step < options.steps and not signal:
                step += 1
                # All random numbers of a step are a function of (seed, step), and those that a step draws itself also
                # of the rank. Not torch.manual_seed: where CUDA is idle, that takes half a millisecond and keeps a
                # stack trace each time.
                for generator in self.own_generators:
                    generator.manual_seed(seed_for(options.seed, len(datasets), step, 1 + self.ranks.rank))
                for generator in self.generators:
                    generator.manual_seed(seed_for(options.seed, len(datasets), step))
                reals = [next(stream) for stream in streams]
                yield step, *(part for real in reals for part in (real if isinstance(real, tuple) else [real]))
                self.bar.update()
                # Several processes must stop at the same step, so they exchange signals when they log.
                if self.ranks.count == 1 or step % options.log_every == 0:
                    signal = max(self.ranks.gather(max(signals, default=0)))
                last = step == options.steps or signal > 0
                if step % options.log_every == 0 or step in (1, options.steps):
                    self.draw_curves()
                if audit and (last or (step >= start + AUDITED_STEPS and all(map(audit.has_stepped, optimizers)))):
                    audited.close()
                    self.report(audit, step, f"the first {step - start} steps")
                    audit = None
                if last or step % options.sample_every == 0:
                    self.sample(step)
                if last or step % options.checkpoint_every == 0:
                    self.save(step)
        self.print_results(step)
        if step < options.steps:
            raise Interrupted(signal)

    def check_parts(self) -> None:
        """Raise BadInput for a frozen network's optimizer, and for what several ranks cannot train as one process."""
        several = self.ranks.count > 1
        for name, optimizer in self.optimizers.items():
            if not any(weight.requires_grad for group in optimizer.param_groups for weight in group["params"]):
                raise BadInput(f"{name}: all of its parameters are frozen; unfreeze some with requires_grad_(True)")
            if several and self.ranks.average_gradients not in optimizer._optimizer_step_pre_hooks.values():
                cure = f"before the loop, call {name}.register_step_pre_hook(run.ranks.average_gradients)"
                raise BadInput(f"{name}: its gradients are not averaged over the processes; {cure}")
        for name, network in self.networks.items() if several else ():
            for layer in network.modules():
                if isinstance(layer, _BatchNorm) and not isinstance(layer, nn.SyncBatchNorm) and layer.training:
                    cure = "use GroupNorm, or SyncBatchNorm on CUDA"
                    raise BadInput(f"{name}: its {type(layer).__name__} normalises over a part of the batch; {cure}")

    def restore(self, shapes: list[list[int]], classes: list[list[str]]) -> int:
        """Load the checkpoint's state and return its step; raises BadInput, loading nothing, if it does not fit."""
        run, checkpoint = self.options.resume, load_checkpoint(self.options.resume)
        made_with = [list(shape) for shape in checkpoint["data_shapes"]]
        if made_with != shapes:
            message = f"images of shape {shapes}, but the run {run} was made with {made_with}; use the same images"
            raise BadInput(f"--dataset {self.options.dataset}: holds {message}")
        if classes != checkpoint.get("classes", []):
            message = f"classes other than those of the run {run}; use the same images in the same folders"
            raise BadInput(f"--dataset {self.options.dataset}: holds {message}")
        if not 0 < checkpoint["step"] <= self.options.steps:
            raise BadInput(f"{run / 'checkpoint.pt'}: has made step {checkpoint['step']} of {self.options.steps}")
        with refusing(run / "checkpoint.pt"):
            for name, part in self.state.items():
                if wrong := mismatch(part, checkpoint.get(name)):
                    raise BadInput(f"does not hold this {name}: {wrong}")
            for name, part in self.state.items():
                load_state(part, checkpoint[name])
        self.saved_step = checkpoint["step"]
        return self.saved_step

    def write_start(self) -> None:
        """Write what a new run shows before its first step: its options, fixed pictures and first samples."""
        options = table(["option", "value"], [[name, str(value)] for name, value in asdict(self.options).items()])
        self.board.add_text("options", options.encode(errors="replace").decode())  # a path may hold what is no text
        for name, picture in self.pictures.items():
            if isinstance(picture, Tensor):
                self.board.add_image(name, grid(to_uint8(picture), self.columns), 0)
        self.sample(0)

    def gradient_audit(self) -> "GradientAudit":
        """Return an audit of the networks that are trained, to be entered."""
        from gradient_audit import GradientAudit  # only --audit needs the module

        trained = {name: part for name, part in self.networks.items() if not isinstance(part, AveragedModel)}
        return GradientAudit(**trained)

    def report(self, audit: "GradientAudit", step: int, steps: str) -> None:
        """Print the audit, show it in TensorBoard and write it as a page into the run's folder."""
        from gradient_audit.output import save

        self.board.add_text("audit", str(audit), step)
        path = self.folder / "audit.html"
        save(path, audit.data() | {"script": f"{self.script}.py", "ending": f"Of {steps}."}, str(audit))
        tqdm.write(f"Gradients of {steps}:\n\n{audit}\n\nAs a page: {short_path(path)}\n")

    def log(self, step: int, values: dict[str, Tensor | float]) -> None:
        """Take the results of a step: by name, numbers or tensors of one element. Each becomes a curve in TensorBoard.

        Names that end in `loss` are also shown beside the progress bar. Tensors are read every --log-every steps.
        """
        self.latest = step, values

    def draw_curves(self) -> None:
        """Log the results of the latest step. The host waits for the device only here and in `save`."""
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
        """Return the latest step's results, averaged over the ranks; raises Stopped if one is no finite number."""
        step, values = self.latest
        for name, value in values.items():
            if isinstance(value, Tensor) and value.numel() != 1:
                message = f"a tensor of shape {tuple(value.shape)} as {name!r}; a curve takes one number"
                raise Stopped(f"step {step}: the step returned {message}")
        tensors = [torch.as_tensor(value).detach().reshape(()) for value in values.values()]
        tensors = [tensor.to(self.device, torch.get_default_dtype()) for tensor in tensors]
        means = self.ranks.mean(torch.stack(tensors)).tolist() if values else []
        for name, number in zip(values, means, strict=True):
            if not math.isfinite(number):
                message = f"{self.last_checkpoint()}; try a lower --lr in a new run"
                raise Stopped(f"step {step}: {name} is {number}; {message}")
        return dict(zip(values, means, strict=True))

    def sample(self, step: int) -> None:
        """Draw, show and save the pictures and measurements after `step`."""
        if not self.ranks.leads:
            return
        modes = {module: module.training for network in self.networks.values() for module in network.modules()}
        for network in self.networks.values():
            network.eval()
        with torch.no_grad():
            drawn = {name: make() for name, make in self.pictures.items() if callable(make)}
            self.measured = {name: measure().item() for name, measure in self.measures.items()}
        for module, mode in modes.items():
            module.training = mode
        for name, images in drawn.items():
            # TensorBoard opens the groups that are first in the alphabet: these pictures, then the losses.
            self.board.add_image(f"images/{name}", grid(to_uint8(images), self.columns), step)
        for name, number in self.measured.items():
            self.board.add_scalar(name, number, step)
        (self.folder / "samples").mkdir(exist_ok=True)
        everything = png(grid(to_uint8(torch.cat(list(drawn.values()))), self.columns))
        write_whole(self.folder / "samples" / f"step-{step:06d}.png", lambda file: file.write(everything))

    def save(self, step: int) -> None:
        """Write `checkpoint.pt`, plain data and tensors; raises Stopped, keeping the last one, if one is not finite."""
        self.finite_numbers()
        checkpoint = {"step": step} | {name: part.state_dict() for name, part in self.state.items()}
        for name in self.state:
            if not all_finite(checkpoint[name]):
                raise Stopped(f"step {step}: {name} holds a number that is not finite; {self.last_checkpoint()}")
        if self.ranks.leads:
            self.board.flush()  # no point logged before the checkpoint can be lost after it
            write_whole(self.folder / "checkpoint.pt", lambda file: torch.save(self.config | checkpoint, file))
        self.saved_step = step

    def describe(self, shapes: list[list[int]], classes: list[list[str]]) -> dict[str, object]:
        """Return what `config.json` holds: the script, its options, the data's shapes and classes, and the machine."""
        options = options_to_store(self.options)
        del options["resume"]
        dataset = options.get("dataset")
        if dataset and dataset not in DATASETS and Path(dataset).is_dir():
            options["dataset"] = os.path.abspath(dataset)  # noqa: PTH100 (as for the paths among the options)
        data = {"data_shapes": shapes, "classes": classes}
        machine = {"device": str(self.device), "torch": str(torch.__version__)}
        return {"script": self.script, "options": options} | data | machine

    @contextmanager
    def errors_as_stopped(self) -> Iterator[None]:
        """Raise as Stopped an image that cannot be read, or an OSError in writing the run's files."""
        try:
            yield
        except BadInput as error:
            raise Stopped(f"{error}; {self.last_checkpoint()}") from error
        except OSError as error:
            where = os.fsdecode(error.filename or self.folder)
            raise Stopped(f"{where}: {error.strerror or error}; {self.last_checkpoint()}") from error

    def last_checkpoint(self) -> str:
        """Return a phrase that says where the last checkpoint is."""
        if self.saved_step is None:
            return f"{short_path(self.folder)} has no checkpoint yet"
        return f"the last checkpoint, of step {self.saved_step}, is {short_path(self.folder / 'checkpoint.pt')}"

    def print_results(self, step: int) -> None:
        """Print where the results are and how to look at them."""
        if not self.ranks.leads:
            return
        script, folder, parent = (shlex.quote(str(short_path(p))) for p in (self.path, self.folder, self.folder.parent))
        print(f"Done: {step} steps." if step == self.options.steps else f"Interrupted after step {step}.")
        if step < self.options.steps:
            launcher = "python" if self.ranks.count == 1 else "torchrun ..."
            print(f"Continue:    {launcher} {script} --resume {folder}")
        for name, number in self.measured.items():
            print(f"{name}: {number:.4f}")
        print(f"Samples:     {short_path(self.folder)}/samples/step-{step:06d}.png")
        print(f"More images: python {shlex.quote(str(short_path(SAMPLE)))} {folder}")
        print(f"TensorBoard: tensorboard --logdir {parent}")
