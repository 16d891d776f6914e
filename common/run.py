"""A run and its loop: seeds, batches, what is due after a step, state and checkpoint. What trains is in the scripts."""

import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, closing, nullcontext, suppress
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.optim import Optimizer
from torch.optim.optimizer import register_optimizer_step_pre_hook

from common import checkpoint
from common.board import Board, layers_in, note_networks, show_chosen
from common.data import batches, checksum, describe_data, note_images, seed_for, seed_step
from common.errors import BadInput, Stopped, as_stopped, note_signals, show, show_end, show_lines
from common.options import RunOptions
from common.ranks import Ranks

RUNS: set["Run"] = set()  # of this process, whose loops have begun, and whose `with` has not ended


class Run(AbstractContextManager):
    """One run of a training script: a context manager, in which a loop over `steps` calls `log`."""

    def __init__(self, script: Path, name: str, options: RunOptions, device: torch.device, origin: dict, stored: Any):
        """Find the other processes. origin: where the run comes from. stored: the checkpoint of the run to continue."""
        self.script, self.name, self.options, self.device, self.stored = script, name, options, device, stored
        self.given = options  # as on the command line: main may put others into `options`, chosen by the images
        self.ranks = Ranks(options.batch_size)
        self.generator = torch.Generator().manual_seed(seed_for(options.seed))  # of draws that all ranks share
        self.is_precise = options.precision == "fp32"  # until the loop body has called `precision`, if that is bf16
        self.folder: Path | None = None  # that of the run, once its loop has begun
        self.state: dict[str, Any] = {}
        self.facts = origin  # what a checkpoint says of its run beside the state
        self.sums: dict[str, tuple[Tensor | float, int]] = {}  # since the last point: a result's sum, and its steps
        self.step = self.saved_step = stored["step"] if stored else 0  # the last whose loop body ended; that on disk
        self.is_inside = False  # whether main is in the loop body of the next step, or has left it there
        self.state_step: int | None = self.step  # that of the weights; None from an optimizer's step to `log`
        self.board: Board | None = None  # of the main process
        self.opened = ExitStack()  # what ends with the run: files, hooks, the lock on its folder

    def __exit__(self, error: type | None, *_: object) -> None:
        """Save the last step that has ended if main has left its loop by `break` or an error."""
        with self.opened:
            is_drawing = error and issubclass(error, Exception) and error not in (BadInput, Stopped)
            if not self.is_inside and not (is_drawing and self.step > self.saved_step):  # it has ended, or not begun
                return
            if error in (None, SystemExit) and self.state_step == self.step + 1:  # `break` after run.log
                self.step += 1
            elif self.is_inside and self.versions != [getattr(*part) for part in self.parts]:  # as by a forward pass
                self.state_step = None
            self.is_inside = False
            is_whole = self.state_step == self.step and (error is None or self.ranks.count == 1)
            if is_whole and self.step > self.saved_step:
                self.ranks.meet()  # of several processes, one alone may have left
                with suppress(Exception) if error else nullcontext():  # the error of the loop is raised
                    self.finish_step(is_stopped=True)
            if self.ranks.is_main and error is not BadInput:  # whose mend may change what a checkpoint holds
                show_end(self.script, self.folder, self.saved_step, self.options.steps, self.ranks.count)

    def precision(self) -> torch.autocast:
        """Return the context of a step: without a cache, as weights change between its forward passes."""
        self.is_precise, is_bf16 = self.is_precise or self.is_inside, self.options.precision == "bf16"
        return torch.autocast(self.device.type, torch.bfloat16, is_bf16, cache_enabled=False)

    def noise(self, count: int, z_dim: int) -> Tensor:
        """Return this process's noise of a step, (count, z_dim), standard normal, drawn for the global batch."""
        z = torch.randn(self.ranks.count, count, z_dim, generator=self.generator)[self.ranks.rank]
        return z.to(self.device, non_blocking=True)

    def steps(self, *data, state: dict, pictures: dict, columns: int = 8) -> Iterator[tuple]:
        """Yield (step, batch of each data set) for steps 1, 2, ...; log, draw and save checkpoint.pt between them.

        data: as `batches` takes them; LabeledImages give (step, real, labels). Each process gets its rows of a batch.
        state: by name, what a checkpoint holds: all that a step changes and that has a `state_dict`.
        pictures: images (N, C, H, W) in [-1, 1], shown once, or functions that make them every --sample-every steps,
        `columns` to a row. SIGINT, SIGTERM and SIGHUP end the process after the step, saved: status 128 + number.
        Raises BadInput where the run cannot start, Stopped where it cannot continue.
        """
        if self.folder:
            raise RuntimeError("a run has one loop over run.steps; make another run for another loop")
        options, self.state, stopped = self.options, state, 0
        with note_signals(self.opened, lambda: self.saved_step) as signals:
            self.begin(data)
            if self.ranks.is_main and self.step < options.steps:  # else the run's files stay as they are
                self.open_board(pictures, columns)
            size, where = options.batch_size, (self.step, self.ranks.rows, self.device)
            streams = [batches(each, size, seed_for(options.seed, number), *where) for number, each in enumerate(data)]
            for step in range(self.step + 1, options.steps + 1):
                seed_step(self.generator, self.device, self.ranks.rank, options.seed, len(data), step)
                reals = [next(stream) for stream in streams]
                self.is_inside, self.versions = True, [getattr(*part) for part in self.parts]
                yield step, *(tensor for real in reals for tensor in (real if isinstance(real, tuple) else [real]))
                self.is_inside, self.step, self.state_step = False, step, step
                if not self.is_precise:
                    raise BadInput("--precision bf16: has no effect without `with run.precision():` around the step")
                if self.ranks.count == 1 or step % options.log_every == 0:  # several must stop at the same step
                    stopped = max(self.ranks.gather(max(signals, default=0)))
                self.finish_step(bool(stopped))
                if stopped:
                    break
        if self.ranks.is_main:
            show_end(self.script, self.folder, self.saved_step, options.steps, self.ranks.count)
        if self.step < options.steps:
            sys.exit(128 + stopped)

    def begin(self, data: tuple) -> None:
        """Check data and state, load what the state begins with, and make or lock the folder of the run."""
        options, state = self.options, self.state
        options.check_chosen(self.given)
        facts = {"script": self.name, "options": options.to_store(), "settings": checkpoint.settings_in(state)}
        facts |= describe_data(data, options.batch_size)
        self.ranks.check_same(facts)
        sums = [checksum(getattr(each, "images", each)) for each in data]
        places = {f"in process {rank}": theirs for rank, theirs in enumerate(self.ranks.gather(sums))}
        self.facts = facts | {"image_checksums": sums, "images_replaced": False} | self.facts
        checkpoint.check_state(state, self.facts)
        self.ranks.check_state(state)
        before = self.stored or (checkpoint.load_checkpoint(options.init_from) if options.init_from else {})
        if self.stored:
            self.sums = checkpoint.load_state(state, self.stored, self.facts, options.resume)
            places["before"] = self.stored.get("image_checksums", sums)
            self.facts["images_replaced"] = self.stored.get("images_replaced", False) or places["before"] != sums
        elif options.init_from:
            checkpoint.load_initial_weights(state, before, options.init_from)
        self.parts = checkpoint.changing_parts(state)
        self.opened.callback(register_optimizer_step_pre_hook(self.note_step).remove)
        RUNS.add(self)
        self.opened.callback(RUNS.discard, self)
        if self.ranks.is_main:
            note_images(sums, places)
            note_networks(before.get("layers"), state)
            place = options.runs_dir / self.name
            self.folder = options.resume or checkpoint.make_folder(place, options.name, self.opened)
        self.folder = self.ranks.gather(self.folder)[0]

    def open_board(self, pictures: dict, columns: int) -> None:
        """Open the board, and show what there is before the first step."""
        show_chosen(self.facts, self.given)
        self.lock = self.opened.enter_context((self.folder / ".lock").open("a"))
        self.board = self.opened.enter_context(closing(Board(self.folder, self.facts, self.step, pictures, columns)))
        if not self.stored:
            self.board.draw(0, self.state)

    def note_step(self, optimizer: Optimizer, *_: object) -> None:
        """Note that weights change; raises BadInput if no checkpoint, of runs that take turns, would hold them."""
        if self.is_inside and not any(checkpoint.has_optimizer(run.state, optimizer) for run in RUNS - {self}):
            checkpoint.require_stored(self.state, optimizer)
            self.state_step = None
        elif self.board and self.state_step and not self.is_inside and checkpoint.has_optimizer(self.state, optimizer):
            self.state_step = None
            show_lines("note: an optimizer steps after the loop over run.steps: no checkpoint will hold that")

    def log(self, step: int, results: dict[str, Tensor | float]) -> None:
        """Add results of the step, numbers or tensors of one element, to their means; raises ValueError for another."""
        current = self.step + 1
        if self.is_inside and step != current != self.state_step:  # else main has left the loop by `break`
            raise ValueError(f"run.log of step {step} in the loop body of step {current}; do not wrap run.steps")
        if not self.is_inside or step != current:
            if self.ranks.is_main:
                show_lines(f"note: run.log of step {step}, outside of the loop over run.steps, has no effect")
            return
        for name, value in results.items():
            total, count = self.sums.get(name, (0.0, 0))
            self.sums[name] = total + torch.as_tensor(value).detach().reshape(()).float(), count + 1
        self.state_step = step

    def finish_step(self, is_stopped: bool) -> None:
        """Log, draw and save what is due after a step; only for the curves and the checkpoint, the host waits."""
        options, step, is_last = self.options, self.step, is_stopped or self.step == self.options.steps
        is_regular = step == 1 or step % options.log_every == 0
        if self.board:
            show(self.board.bar.update, step - self.board.bar.n)
        if is_regular or step == options.steps:
            sums = self.ranks.mean_sums(self.sums, self.device)
            if self.board:
                self.board.add_points(step, {n: total / count for n, (total, count) in sums.items()}, self.state)
        if is_regular:  # not after the last step: a resumed run that gets more has the points of one that had them
            self.sums = {}
        try:
            if self.board and (is_last or step % options.sample_every == 0):
                self.board.draw(step, self.state)
        finally:
            if is_last or step % options.checkpoint_every == 0:
                self._save()

    def _save(self) -> None:
        """Write `checkpoint.pt`, plain data and tensors; raises Stopped, keeping the last one, if that cannot be."""
        content = self.facts | {"averages": checkpoint.averages_in(self.state, fewest_updates=1), "step": self.step}
        content |= {"layers": layers_in(self.state), "sums": self.ranks.mean_sums(self.sums, self.device)}
        content |= checkpoint.finite_states(self.state, self.step)
        self.ranks.note_different(self.state)
        if self.board:
            checkpoint.check_lock(self.lock)
            with as_stopped(self.folder):
                self.board.writer.flush()  # no point logged before the checkpoint can be lost after it
            checkpoint.write_whole(self.folder / "checkpoint.pt", checkpoint.as_bytes(content))
        self.saved_step = self.step
