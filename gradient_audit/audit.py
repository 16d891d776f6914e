"""The audit as a context manager: watch a block of code, judge what was seen, and report."""

import sys
import warnings
from itertools import combinations
from types import TracebackType

from torch import nn

from gradient_audit.findings import joined
from gradient_audit.history import Call
from gradient_audit.judge import Judgement, judge
from gradient_audit.report import Report
from gradient_audit.trace import Trace
from gradient_audit.watch.frames import current_place
from gradient_audit.watch.guard import guarded
from gradient_audit.watch.watcher import Limit, Watcher


class GradientFlowError(RuntimeError):
    """Raised by `GradientAudit.check`; the message lists the findings."""


class GradientAudit(Report):
    """Watch the gradients of the named networks inside a `with` block; it changes no number and removes its hooks.

        with GradientAudit(generator=generator, discriminator=discriminator) as audit:
            train_step(...)                # any code, any number of steps
        print(audit)                       # the answer, a row for each backward pass, the findings
        audit.check()                      # GradientFlowError if something is wrong

    After the block, also if the code inside raised, `events` are what happened in order, `passes` the backward passes
    among them, `findings` what is wrong, doubtful or wasteful, and `trace` what these were found from. Raises TypeError
    if a network is no `nn.Module`, ValueError for one with two names. One whose parts have different optimizers is
    shown as its parts: `gan.generator`. Another `with` of the same audit begins anew. Without names, it finds the
    networks that the block makes; a pass through others raises TypeError.

    The first 12 backward passes, and four after a line's first pass or step, are watched in detail, up to the next
    step, which takes time, unless a network is compiled. The audit changes no number, no version and no
    error: of weights that are changed without a version, as by a fused optimizer, but not through NumPy, it says which
    pass used them.
    """

    def __init__(self, /, **networks: nn.Module):
        for name, network in networks.items():
            if not issubclass(type(network), nn.Module):  # `isinstance` takes a weakref.proxy of a module for one
                raise TypeError(f"{name} is a {type(network).__name__}, not an nn.Module")
        for (one, first), (other, second) in combinations(networks.items(), 2):
            if first is second:
                raise ValueError(f"{one} and {other} are one network; name it once")
        super().__init__(Judgement())
        self._named, self._limit, self.networks, self.trace = networks or None, None, networks, Trace()
        self.unreached = ""  # of the named networks those that no pass came to, as a sentence

    @classmethod
    def of_script(cls, limit: Limit | None = None) -> "GradientAudit":
        """Return an audit of the networks that a script makes; `limit` may end it by raising."""
        audit = cls()
        audit._limit = limit
        return audit

    def __enter__(self) -> "GradientAudit":
        """Begin a new trace; leave that to `python -m gradient_audit` where it audits the whole script."""
        self.judgement, self.failure, self.unwatched, self.unreached = Judgement(), "", "", ""
        if Watcher.watching and Watcher.watching.limit:
            self.unwatched = "Not watched: the audit of the whole script takes the place of this one."
            print(f"note: {current_place()}: {self.unwatched}", file=sys.stderr)
            return self
        watcher = Watcher(self._named, self._limit)
        watcher.ending.block = None if self._limit else current_place()
        watcher.start()
        self._watcher, self.guard, self.trace = watcher, watcher.guard, watcher.trace
        return self

    def __exit__(self, kind: object, _error: object, trace: TracebackType | None) -> None:
        """Remove the hooks, then find what is wrong, doubtful or wasteful."""
        if self.unwatched:
            return
        if Watcher.watching is not self._watcher:
            self.unwatched = "Not watched: this is a forked process."
            return
        stopped, self.guard.closed = self.guard.closed, bool(self.guard.failure)
        judgement = self._conclude(trace, ended=self._limit is None or not (stopped or kind)) or Judgement()
        self._watcher.remove_hooks()
        if kind and not stopped:
            judgement.not_run = ""
        calls = [row for row in judgement.events if isinstance(row, Call)]
        named = self.networks if self._named else {}
        unreached = [name for name in named if calls and all(call.cells[name] == "-" for call in calls)]
        self.strangers = bool(unreached) and len(unreached) == len(named) and not judgement.findings
        frozen = {name for name in unreached if not any(p.requires_grad for p in named[name].parameters())}
        if missed := [name for name in unreached if name not in frozen]:
            self.unreached = f"No backward pass came to {joined(missed)}."
            judgement.not_run = f"{self.unreached} {judgement.not_run}".rstrip()
        self.judgement, self.failure = judgement, self.guard.failure
        del self._watcher, self.guard  # they hold the optimizers

    @property
    def verdict(self) -> str:
        """The answer, once the block has ended."""
        under_way = "The audit is under way: ask for its result after the `with` block has ended."
        return under_way if hasattr(self, "_watcher") and not self.unwatched else super().verdict

    @guarded
    def _conclude(self, trace: TracebackType | None, *, ended: bool) -> Judgement:
        self.networks = self._watcher.conclude(trace, ended=ended)
        return judge(self.trace)

    def check(self, *, questions: bool = False, waste: bool = False) -> None:
        """Raise GradientFlowError for an error, also one of the audit's own; if asked to, for a question or waste.

        And where there is nothing to judge: in the block, or if no pass came to the networks, or no step was seen. It
        warns if a pass, or a step, came to some of them only.
        """
        if hasattr(self, "_watcher"):
            raise GradientFlowError(self.verdict)
        nothing = (self.saw_nothing or self.unjudged) and not self.unwatched
        has_step = self.unwatched or any(row.kind == "step" for row in self.events)
        severities = {"error"} | ({"question"} if questions else set()) | ({"waste"} if waste else set())
        wrong = [str(finding) for finding in self.findings if finding.severity in severities]
        if wrong or self.failure or nothing:
            raise GradientFlowError("\n".join(wrong) or self.verdict)
        if not has_step:
            raise GradientFlowError("No step was seen in the block.")
        if self.unreached:  # which may be meant, as of an average
            warnings.warn(self.unreached, stacklevel=2)
        if waiting := self.judgement.waiting:
            warnings.warn(f"No step came to {joined(waiting)}.", stacklevel=2)
