"""A run and its loop: seeds, batches, what is due after a step, state and checkpoint. What trains is in the scripts."""

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, nullcontext, suppress
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.optim import Optimizer
from torch.optim.optimizer import register_optimizer_step_pre_hook

from common import checkpoint
from common.board import Board, show, show_choice, show_end, show_lines
from common.data import batches, seed_for
from common.errors import BadInput, Stopped, as_stopped, note_signals
from common.options import RunOptions
from common.ranks import Ranks


class Run(AbstractContextManager):
    """One run of a training script: a context manager, in which a loop over `steps` calls `log`."""

    def __init__(self, script: Path, options: RunOptions, device: torch.device, origin: dict, stored: dict | None):
        """Find the other processes. origin: where the run comes from. stored: the checkpoint of the run to continue."""
        self.script, self.options, self.device, self.stored = script, options, device, stored
        self.given = options  # as on the command line: main may put others into `options`, chosen by the images
        self.ranks = Ranks(options.batch_size)
        self.generator = torch.Generator()  # of what all ranks draw alike, for the global batch; on the CPU
        is_bf16 = options.precision == "bf16"  # without a cache, as a step changes weights between forward passes
        self.precision = partial(torch.autocast, device.type, torch.bfloat16, is_bf16, cache_enabled=False)
        self.folder: Path | None = None  # that of the run, once its loop has begun
        self.state: dict[str, Any] = {}
        self.facts = origin  # what a checkpoint says of its run beside the state
        self.sums: dict[str, tuple[Tensor | float, int]] = {}  # of a result since its last point, and of how many steps
        self.step = self.saved_step = stored["step"] if stored else 0  # the last whose loop body ended; that on disk
        self.step_inside = 0  # the one whose loop body main is in, or has left
        self.is_logged = self.is_changed = False  # of that step: `log` has ended; an optimizer has stepped, too
        self.board: Board | None = None  # of the main process
        self.opened = ExitStack()  # what ends with the run: files, hooks, the lock on its folder

    def __exit__(self, error: type | None, *_: object) -> None:
        """Save the last step that has ended if main has left its loop by `break` or an error."""
        step, self.step_inside = self.step_inside, 0
        with self.opened:
            if not step:  # the loop has ended by itself, or not begun
                return
            if error is None and self.is_logged:  # `break` after run.log
                self.step, self.is_changed = step, False
            if not self.is_changed and self.step > self.saved_step and (error is None or self.ranks.count == 1):
                with suppress(Stopped) if error else nullcontext():  # the error of the loop is raised
                    self.finish_step(is_stopped=True)
            if self.ranks.is_main and (error or self.saved_step < max(self.step, 1)):
                show_lines(f"Left in step {step}. {self.checkpoint_line}")
            elif self.ranks.is_main:
                show_end(self.script, self.folder, self.step, self.options.steps, self.ranks.count)

    def noise(self, count: int, z_dim: int) -> Tensor:
        """Return this process's noise of a step, (count, z_dim), standard normal, drawn for the global batch."""
        if not self.step_inside:  # the generator has the seed of another step, or none
            raise RuntimeError("run.noise is noise of a step: call it in the loop over run.steps")
        z = torch.randn(self.ranks.count, count, z_dim, generator=self.generator)[self.ranks.rank]
        return z.to(self.device, non_blocking=True)

    def steps(self, *data, state: dict, pictures: dict, columns: int = 8) -> Iterator[tuple]:
        """Yield (step, batch of each data set) for steps 1, 2, ...; log, draw and save checkpoint.pt between them.

        data: as `batches` takes them; LabeledImages give (step, real, labels). Each process gets its rows of a batch.
        state: by name, what a checkpoint holds: all that a step changes and that has a `state_dict`.
        pictures: images (N, C, H, W) in [-1, 1], shown once, or functions that make them every --sample-every steps,
        `columns` to a row. SIGINT, SIGTERM and SIGHUP end the process after the step, saved, with status 128 plus their
        number. Raises BadInput where the run cannot start, Stopped where it cannot continue.
        """
        if self.folder:
            raise RuntimeError("a run has one loop over run.steps; make another run for another loop")
        options, self.state, stopped = self.options, state, 0
        with note_signals(lambda: f"Saves after this step; again to stop at once. {self.checkpoint_line}") as signals:
            facts = checkpoint.describe(self.script.stem, options.to_store(), state, data)
            if any(theirs != facts for theirs in self.ranks.gather(facts)):
                raise BadInput("the processes have different options or images; start all with the same command")
            self.facts = facts | self.facts
            self.enter_state()
            self.folder = self.enter_folder()
            if self.step < options.steps:  # else the run's files stay as they are
                self.open_board(pictures, columns)
            size, where = options.batch_size, (self.step, self.ranks.rows, self.device)
            streams = [batches(each, size, seed_for(options.seed, number), *where) for number, each in enumerate(data)]
            for step in range(self.step + 1, options.steps + 1):
                self.seed_step(len(data), step)
                reals = [next(stream) for stream in streams]
                self.step_inside, self.is_logged, self.is_changed = step, False, False
                yield step, *(tensor for real in reals for tensor in (real if isinstance(real, tuple) else [real]))
                self.step, self.step_inside = step, 0
                # Several processes must stop at the same step, so they exchange signals when they log.
                if self.ranks.count == 1 or step % options.log_every == 0:
                    stopped = max(self.ranks.gather(max(signals, default=0)))
                self.finish_step(bool(stopped))
                if stopped:
                    break
        if self.ranks.is_main:
            show_end(self.script, self.folder, self.step, options.steps, self.ranks.count)
        if self.step < options.steps:
            sys.exit(128 + stopped)

    def enter_state(self) -> None:
        """Check the state and load what it begins with; from now on each step of an optimizer is noted."""
        checkpoint.check_state(self.state, {*self.facts, "step", "sums"})
        for name, owner in self.state.items():
            self.ranks.check_owner(name, owner)
        if self.stored:
            self.sums = dict(self.stored["sums"])
            checkpoint.load_state(self.state, self.stored, self.facts, self.options.resume)
            if self.ranks.is_main and self.stored["options"]["steps"] < self.options.steps:
                show_lines("With more --steps, a learning rate that falls towards the last step rises again.")
        elif self.options.init_from:
            checkpoint.load_initial_weights(self.state, self.options.init_from)
        self.opened.callback(register_optimizer_step_pre_hook(self.note_step).remove)

    def note_step(self, optimizer: Optimizer, *_: object) -> None:
        """Note that the weights change in this step; raises BadInput if no checkpoint would hold them."""
        if self.step_inside:
            checkpoint.require_stored(self.state, optimizer)
            self.is_changed = True

    def enter_folder(self) -> Path:
        """Return the run's folder: that to resume, or a new one, locked; a temporary one for gradient_audit."""
        folder = self.options.resume
        if os.environ.get("GRADIENT_AUDIT") == str(os.getpid()):  # which ends the run after a few steps
            show_lines("This run keeps nothing: gradient_audit has started it.")
            folder = Path(self.opened.enter_context(tempfile.TemporaryDirectory()))
        elif self.ranks.is_main and not folder:
            folder = checkpoint.make_folder(self.options.runs_dir / self.script.stem, self.options.name, self.opened)
        return self.ranks.gather(folder)[0]

    def open_board(self, pictures: dict, columns: int) -> None:
        """Open the board of the main process, and show what there is before the next step."""
        if self.ranks.is_main:
            show_choice(self.facts, self.given)
            self.board = self.opened.enter_context(Board(self.folder, self.facts, self.step, pictures, columns))
        if self.stored:
            self.save()  # with the new --steps, so that they are kept even if this process is killed
        elif self.board:
            self.board.draw_first(self.state)

    def seed_step(self, streams: int, step: int) -> None:
        """Seed all random numbers of a step: a function of (seed, step), and of the rank for those of torch itself."""
        self.generator.manual_seed(seed_for(self.options.seed, streams, step))
        own = seed_for(self.options.seed, streams, step, 1 + self.ranks.rank)
        torch.default_generator.manual_seed(own)  # torch.manual_seed takes half a millisecond if CUDA is idle
        if self.device.type != "cpu":
            torch.get_device_module(self.device).manual_seed(own)

    def log(self, step: int, results: dict[str, Tensor | float]) -> None:
        """Add the results of a step: numbers, or tensors of one element, whose means since the last point are shown."""
        for name, value in results.items():
            total, count = self.sums.get(name, (0.0, 0))
            self.sums[name] = total + torch.as_tensor(value).detach().reshape(()).float(), count + 1
        self.is_logged = self.is_changed = True

    def finish_step(self, is_stopped: bool) -> None:
        """Log, draw and save what is due after a step; only for the curves and the checkpoint, the host waits."""
        options, step, is_last = self.options, self.step, is_stopped or self.step == self.options.steps
        is_regular = step == 1 or step % options.log_every == 0
        if self.board:
            show(self.board.bar.update, step - self.board.bar.n)
        if is_regular or step == options.steps:
            means = {name: total / count for name, (total, count) in self.totals().items()}
            if self.board:
                self.board.add_points(step, means, self.state)
        if is_regular:  # not after the last step: a resumed run that gets more has the points of one that had them
            self.sums = {}
        if self.board and (is_last or step % options.sample_every == 0):
            self.board.draw(step, self.state)
        if is_last or step % options.checkpoint_every == 0:
            self.save()

    def totals(self) -> dict[str, tuple[float, int]]:
        """Return the sums since the last point, means over the ranks."""
        tensors = [torch.as_tensor(total, device=self.device) for total, _ in self.sums.values()]
        numbers = self.ranks.mean(torch.stack(tensors)).tolist() if tensors else []  # all at once
        return {name: (number, self.sums[name][1]) for name, number in zip(self.sums, numbers, strict=True)}

    def save(self) -> None:
        """Write `checkpoint.pt`, plain data and tensors; raises Stopped, keeping the last one, if that cannot be."""
        content = self.facts | {"step": self.step, "sums": self.totals()}
        content |= checkpoint.finite_states(self.state, self.step)
        if self.board:
            with as_stopped(self.folder):
                self.board.writer.flush()  # no point logged before the checkpoint can be lost after it
            checkpoint.write_whole(self.folder / "checkpoint.pt", checkpoint.as_bytes(content))
        self.saved_step = self.step

    @property
    def checkpoint_line(self) -> str:
        """Of which step `checkpoint.pt` is."""
        line = f"{self.folder}/checkpoint.pt is that of step {self.saved_step}."
        return line if self.saved_step else "There is no checkpoint."
