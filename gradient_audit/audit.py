"""The audit as a context manager: watch, record, judge; and its report, as Markdown."""

import sys
from collections import Counter, defaultdict
from types import TracebackType

from torch import nn

from gradient_audit.budget import MOST_PASSES
from gradient_audit.findings import SEVERITIES, Finding
from gradient_audit.guard import guarded
from gradient_audit.judge import judge
from gradient_audit.places import current_place
from gradient_audit.record import Event
from gradient_audit.watch import Limit, Watcher

LEGEND = {
    "used": "an optimizer stepped on the gradient",
    "wasted": "the gradient was cleared, or left over without a step",
    "read": "autograd.grad() went through the network; nothing is added to .grad",
    "-": "no gradient",
}

SHARES = "97%: a term's part in the sum of the gradients' norms, in that network; against: against the other terms."


class GradientFlowError(RuntimeError):
    """Raised by `GradientAudit.check`; the message lists the findings."""


class GradientAudit:
    """Watch the gradients of the named networks inside a `with` block; it changes no number and removes its hooks.

        with GradientAudit(generator=generator, discriminator=discriminator) as audit:
            train_step(...)                # any code, any number of steps
        print(audit)                       # the answer, a row for each backward pass, the findings
        audit.check()                      # GradientFlowError if something is wrong

    After the block, also if the code inside raised, `events` are what happened in order, `passes` the backward passes
    among them, and `findings` what is wrong, doubtful or wasteful. Raises TypeError if a network is no `nn.Module`.

    The first 12 backward passes, and four after a line's first pass or step, are watched in detail, which takes time,
    unless a network is compiled. A fused optimizer does not raise the versions of the weights that it changes. The
    audit does; where that makes `backward()` raise, the gradient would have been wrong.
    """

    def __init__(self, /, **networks: nn.Module):
        for name, network in networks.items():
            if not issubclass(type(network), nn.Module):  # `isinstance` takes a weakref.proxy of a module for one
                raise TypeError(f"{name} is a {type(network).__name__}, not an nn.Module")
        self._named, self._limit, self.networks = networks, None, networks
        self.events: list[Event] = []
        self.findings: list[Finding] = []
        self.unwatched = ""  # why nothing was watched
        self.failure = self.not_run = ""  # what raised inside the audit; what the answer is not about

    @classmethod
    def of_script(cls, limit: Limit | None = None) -> "GradientAudit":
        """Return an audit of the networks that a script makes; `limit` may end it by raising."""
        audit = cls()
        audit._named, audit._limit = None, limit
        return audit

    def __enter__(self) -> "GradientAudit":
        """Begin a new record; leave that to `python -m gradient_audit` where it audits the whole script."""
        if Watcher.watching and Watcher.watching.limit:
            self.unwatched = "Not watched: the audit of the whole script takes the place of this one."
            print(f"note: {current_place()}: {self.unwatched}", file=sys.stderr)
            return self
        watcher = Watcher(self._named, self._limit)
        watcher.start()
        self._watcher, self.record, self.unwatched = watcher, watcher.record, ""
        return self

    def __exit__(self, kind: object, _error: object, trace: TracebackType | None) -> None:
        """Remove the hooks, then find what is wrong, doubtful or wasteful."""
        if self.unwatched:
            return
        if Watcher.watching is not self._watcher:
            self.unwatched = "Not watched: this is a forked process."
            return
        stopped, self.record.closed = self.record.closed, bool(self.record.failure)
        told = self._conclude(trace, ended=self._limit is None or not (stopped or kind))
        self.findings, self.not_run, self.events = told or ([], "", [])
        self._watcher.remove_hooks()
        self.not_run = "" if kind and not stopped else self.not_run
        self.failure = self.record.failure
        del self._watcher, self.record  # they hold the optimizers

    @guarded
    def _conclude(self, trace: TracebackType | None, *, ended: bool) -> tuple[list[Finding], str, list[Event]]:
        self._watcher.accounts.search_optimizers()
        self.networks = self._watcher.networks.settle(trace)
        self._watcher.accounts.find_optimizers()
        self._watcher.complete_record()
        return judge(self.record, self.networks, ended=ended)

    @property
    def passes(self) -> list[Event]:
        """The backward passes among the events, also calls of autograd.grad whose results became gradients."""
        passes = (event for event in self.events if getattr(event, "number", None) is not None)
        return sorted(passes, key=lambda event: event.number)

    @property
    def saw_nothing(self) -> bool:
        """Whether no gradient was computed, but inside of torch.func."""
        calls = [event for event in self.events if event.kind in ("backward", "grad")]
        return all(call.functional and call.number is None for call in calls)

    @property
    def severity(self) -> str:
        """That of the worst finding, or ""; "error" if the audit gave up."""
        return "error" if self.failure else self.findings[0].severity if self.findings else ""

    def check(self, *, questions: bool = False, waste: bool = False) -> None:
        """Raise GradientFlowError for an error, also one of the audit's own; if asked to, for a question or waste."""
        severities = {"error", *["question"] * questions, *["waste"] * waste}
        wrong = [str(finding) for finding in self.findings if finding.severity in severities]
        if wrong or self.failure:
            raise GradientFlowError("\n".join(wrong) or self.verdict)

    @property
    def verdict(self) -> str:
        """The answer in a sentence or two, with the finding to look at first."""
        if self.failure:
            return f"The audit gave up: {self.failure}. Please report it, with your script."
        if self.saw_nothing:
            return self.unwatched or "No backward pass ran."
        if not self.findings:
            return f"Nothing wrong, nothing wasted. {self.not_run}".rstrip()
        counts = Counter(finding.severity for finding in self.findings)
        amounts = [f"{n} {SEVERITIES[severity]}{'s' * (n > 1)}" for severity, n in counts.items()]
        opening = f"{'Wrong' if counts['error'] else 'Nothing wrong'}. {', '.join(amounts)}:"
        first = self.findings[0]
        if first.facts:
            width = max(len(label) for label, _ in first.facts)
            facts = "".join(f"\n- {label:<{width}}  {fact}" for label, fact in first.facts)
            return f"{opening} {first.text}\n{facts}"
        at = "".join(f" ({line})" for line in first.lines[:1] if line not in first.text)
        return f"{opening} {first.text.rstrip('.')}{at}. Cure: {first.cure} {self.not_run}".rstrip()

    @property
    def details(self) -> str:
        """What was not watched, the table, and the findings, a line each."""
        gap = f"Only the first {MOST_PASSES:,} backward passes were watched." * (len(self.passes) == MOST_PASSES)
        listing = "\n".join(f"- {finding}" for finding in self.findings)
        return "\n\n".join(part for part in (gap, self.table, listing) if part)

    @property
    def table(self) -> str:
        """A row for every backward pass and for each of its terms, and what the cells mean; "" without any pass."""
        rows: dict[tuple, list[list[tuple]]] = defaultdict(list)  # of passes that do the same: the terms of each
        for event in self.events:
            if event.kind == "backward" or (event.kind == "grad" and {*event.cells.values()} - {"-"}):
                label = f"{event.place}" + " raised" * event.raised + " (create_graph)" * event.create_graph
                # Terms that all do what the pass does tell nothing.
                terms = event.terms if any(t.dead or t.shares or t.cells != event.cells for t in event.terms) else []
                lines = [(f"  + {t.place or t.name}" + " (dead)" * t.dead, "", *map(t.word, t.cells)) for t in terms]
                rows[(label, *(event.cells | event.parts).values())].append(lines)
        if not rows:
            return ""
        table = [("backward pass", "times", *self.networks)]
        for (label, *cells), terms in rows.items():
            table += [(label, f"{len(terms)}x", *cells), *max(terms, key=lambda lines: len(f"{lines}"))]
        table = [[cell.replace("|", "\\|") for cell in line] for line in table]
        widths = [max(map(len, column)) for column in zip(*table, strict=True)]
        table.insert(1, ["-" * width for width in widths])
        text = ["| " + " | ".join(map(str.ljust, line, widths)) + " |" for line in table]
        text += ["", "; ".join(f"{word}: {meaning}" for word, meaning in LEGEND.items()) + "."]
        measured = {p.place for p in self.passes if p.measured}
        text += [SHARES] * bool(measured)
        gaps = {p.place.where: p.unmeasured for p in self.passes if p.unmeasured and p.place not in measured}
        text += [f"The terms of {line} were not measured: {reason}." for line, reason in gaps.items()]
        return "\n".join(text)

    def __str__(self) -> str:
        return "\n\n".join(part for part in (self.verdict, self.details) if part)

    _repr_markdown_ = __str__  # what `display(audit)` shows in a notebook
