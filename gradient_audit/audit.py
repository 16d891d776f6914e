"""The audit as a context manager: watch, record, judge, report."""

from types import TracebackType

from torch import nn
from torch.optim.optimizer import Optimizer

from gradient_audit.judge import judge
from gradient_audit.networks import Networks
from gradient_audit.report import Report, describe_optimizer
from gradient_audit.watch import Limit, Watcher


class GradientAudit(Report):
    """Watch the gradients of the named networks inside a `with` block; it changes no number and removes its hooks.

        with GradientAudit(generator=generator, discriminator=discriminator) as audit:
            train_step(...)                # any code, any number of steps
        print(audit)                       # the answer, a row for each backward pass, the findings
        audit.check()                      # GradientFlowError if something is wrong

    After the block, also if the code inside raised, `events` are what happened in order, `passes` the backward passes
    among them, and `findings` what is wrong, doubtful or wasteful. `str(audit)` is Markdown; equal passes share a row
    and are counted. `data()` is all of it as plain lists and dictionaries. Raises TypeError if a network is not an
    `nn.Module`.

    The first 12 backward passes are watched in detail, which takes time: forward passes, the terms of each loss, the
    lines of in-place operations. If a network is compiled, these details are left out.

    A fused optimizer, or one that writes through `.data`, does not raise the versions of the weights that it changes,
    so PyTorch does not notice when a backward pass needs them as they were. The audit raises them; where that makes
    `backward()` raise, the gradient would have been wrong.

    It does not see: a backward pass by a function `backward` that was imported by name before the audit began; the
    origin, after the detailed passes, of a gradient assigned to `.grad` (what these have shown is taken to go on); and
    gradients that reach no `.grad`. A compiled network computes such: those of all its parameters, also of the ones
    that `backward(inputs=...)` leaves out.
    """

    def __init__(self, /, **networks: nn.Module):
        """Take the networks, by the names that the table shows."""
        super().__init__(networks)
        self._provider, self._limit = Networks(**networks), None

    @classmethod
    def of_provider(cls, provider: Networks, limit: Limit | None = None) -> "GradientAudit":
        """Return an audit of the networks that `provider` finds; `limit` may end what runs under it, by raising."""
        audit = cls()
        audit._provider, audit._limit = provider, limit
        return audit

    def __enter__(self) -> "GradientAudit":
        """Begin a new record."""
        watcher = Watcher(self._provider, self._limit)
        watcher.start()
        self._watcher = watcher
        self.events, self.passes = watcher.record.events, watcher.record.passes
        self.findings, self.optimizers_seen = [], []
        return self

    def __exit__(self, kind: object, _error: object, trace: TracebackType | None) -> None:
        """Remove the hooks, then find what is wrong, doubtful or wasteful."""
        self.networks = self._provider.settle(trace)
        optimizers, record = self.optimizers, self._watcher.stop()
        self.findings = judge(record, self.networks, optimizers, ended=self._limit is None or kind is None)
        self.events, self.passes = record.events, record.passes
        self.optimizers_seen = [describe_optimizer(optimizer, record, self.networks) for optimizer in optimizers]
        del self._watcher  # it holds the optimizers

    @property
    def optimizers(self) -> list[Optimizer]:
        """While the audit runs: the optimizers that stepped, and all others that hold a watched parameter."""
        return self._watcher.find_optimizers()

    def has_stepped(self, optimizer: Optimizer) -> bool:
        """Return whether `optimizer` has stepped under this audit."""
        return id(optimizer) in self._watcher.record.steps
