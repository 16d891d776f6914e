"""The audit as a context manager: watch, record, judge; and its report, as Markdown and as plain data."""

import platform
import re
import sys
from collections import Counter
from types import TracebackType

import torch
from torch import nn
from torch.nn.parameter import is_lazy

from gradient_audit.findings import Finding, joined
from gradient_audit.graph import ids_of, parameters_of
from gradient_audit.guard import guarded
from gradient_audit.judge import judge
from gradient_audit.networks import Networks
from gradient_audit.places import current_place
from gradient_audit.record import Event
from gradient_audit.watch import Limit, Watcher

LEGEND = {
    "used": "an optimizer stepped on the gradient",
    "wasted": "the gradient was cleared, or left over without a step",
    "read": "autograd.grad() went through the network; nothing is added to .grad",
    "-": "no gradient",
}


class GradientFlowError(RuntimeError):
    """Raised by `GradientAudit.check`; the message lists the findings."""


class GradientAudit:
    """Watch the gradients of the named networks inside a `with` block; it changes no number and removes its hooks.

        with GradientAudit(generator=generator, discriminator=discriminator) as audit:
            train_step(...)                # any code, any number of steps
        print(audit)                       # the answer, a row for each backward pass, the findings
        audit.check()                      # GradientFlowError if something is wrong

    After the block, also if the code inside raised, `events` are what happened in order, `passes` the backward passes
    among them, and `findings` what is wrong, doubtful or wasteful. `str(audit)` is Markdown, `data()` plain lists and
    dictionaries. Raises TypeError if a network is not an `nn.Module`.

    The first 12 backward passes are watched in detail, which takes time: forward passes, the terms of each loss, the
    lines of in-place operations; not so if a network is compiled. A fused optimizer does not raise the versions of the
    weights that it changes. The audit does; where that makes `backward()` raise, the gradient would have been wrong.

    It does not see: a function `backward` that was imported by name before the audit began; where a gradient assigned
    to `.grad` comes from, after the detailed passes (what these have shown is taken to go on); and gradients that reach
    no `.grad`, as a compiled network computes for parameters that `backward(inputs=...)` leaves out.
    """

    def __init__(self, /, **networks: nn.Module):
        self._provider, self._limit = Networks(**networks), None
        self.networks = networks
        self.events: list[Event] = []
        self.passes: list[Event] = []
        self.findings: list[Finding] = []
        self.optimizers_seen: list[dict] = []
        self.unwatched = ""  # why nothing was watched
        self.failure = ""  # what raised inside the audit
        self.missing: list[str] = []  # parts of the answer that this version of PyTorch does not give

    @classmethod
    def of_provider(cls, provider: Networks, limit: Limit | None = None) -> "GradientAudit":
        """Return an audit of the networks that `provider` finds; `limit` may end it by raising."""
        audit = cls()
        audit._provider, audit._limit = provider, limit
        return audit

    def __enter__(self) -> "GradientAudit":
        """Begin a new record; leave that to `python -m gradient_audit` where it audits the whole script."""
        if Watcher.watching and Watcher.watching.limit:
            self.unwatched = "Not watched: the audit of the whole script takes the place of this one."
            print(f"note: {current_place()}: {self.unwatched}", file=sys.stderr)
            return self
        watcher = Watcher(self._provider, self._limit)
        watcher.start()
        self._watcher, self.record = watcher, watcher.record
        self.events, self.passes = watcher.record.events, watcher.record.passes
        self.findings, self.optimizers_seen, self.unwatched, self.failure = [], [], "", ""
        return self

    def __exit__(self, kind: object, _error: object, trace: TracebackType | None) -> None:
        """Remove the hooks, then find what is wrong, doubtful or wasteful."""
        if self.unwatched:
            return
        if Watcher.watching is not self._watcher:
            self.events, self.passes, self.unwatched = [], [], "Not watched: this is a forked process."
            return
        stopped, self.record.closed = self.record.closed, bool(self.record.failure)
        self._settle(trace)
        self._watcher.find_optimizers()
        self._watcher.stop()
        self.missing = self.record.missing
        self._judge(ended=self._limit is None or not (stopped or kind))
        if failure := self.record.failure:
            self.failure, self.events, self.passes, self.findings = failure, [], [], []
        del self._watcher, self.record  # they hold the optimizers

    @guarded
    def _settle(self, trace: TracebackType | None) -> None:
        self.networks = self._provider.settle(trace)

    @guarded
    def _judge(self, *, ended: bool) -> None:
        record = self.record
        self.findings = judge(record, self.networks, ended=ended)
        self.events = record.events
        for number, optimizer in record.optimizers.items():
            held = {*map(id, parameters_of(optimizer))}
            networks = [name for name, network in self.networks.items() if held & ids_of(network)]
            steps = sum(event.kind == "step" and event.optimizer == number for event in record.events)
            self.optimizers_seen.append({"class": type(optimizer).__name__, "networks": networks, "steps": steps})

    @property
    def saw_nothing(self) -> bool:
        """Whether no gradient was computed."""
        return not any(event.kind in ("backward", "grad") for event in self.events)

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
        if not self.passes:
            return self.unwatched or "No backward pass ran."
        if not self.findings:
            return "Nothing wrong, nothing wasted."
        counts = Counter(finding.severity for finding in self.findings)
        amounts = [f"{n} {kind}{'s' * (n > 1 and kind != 'waste')}" for kind, n in counts.items()]
        opening = f"{'Wrong' if counts['error'] else 'Nothing wrong'}. {', '.join(amounts)}:"
        first = self.findings[0]
        if first.facts:
            width = max(len(label) for label, _ in first.facts)
            facts = "".join(f"\n- {label:<{width}}  {fact}" for label, fact in first.facts)
            return f"{opening} a backward pass needs a tensor as it was before it was changed in place.\n{facts}"
        at = f" ({first.line})" if first.line and first.line not in first.text else ""
        return f"{opening} {first.text.rstrip('.')}{at}. Cure: {first.cure}"

    @property
    def gaps(self) -> str:
        """What this version of PyTorch does not show, in a sentence."""
        unseen = f"With PyTorch {torch.__version__}, the audit does not see {joined(self.missing)}."
        return unseen if self.missing else ""

    @property
    def listing(self) -> str:
        """The findings, a line each."""
        return "\n".join(f"- {finding}" for finding in self.findings)

    @property
    def table(self) -> str:
        """A row for every backward pass and for each of its terms, and what the cells mean; "" without any pass."""
        rows: dict[tuple, tuple[list[tuple], int]] = {}
        for event in self.events:
            if event.kind == "backward" or (event.kind == "grad" and {*event.cells.values()} - {"-"}):
                note = " raised" * event.raised + " (create_graph)" * event.create_graph
                lines = [(f"{event.place}{note}", *event.cells.values())]
                # Terms that all do what the pass does tell nothing.
                terms = event.terms if any(t.dead or t.cells != event.cells for t in event.terms) else []
                for term in terms:
                    label = f"  + {term.place or term.name}" + " (dead)" * term.dead
                    lines.append((label, *term.cells.values()))
                most, times = rows.get(lines[0], ([], 0))  # of passes that do the same, the one whose terms were seen
                rows[lines[0]] = max(most, lines, key=len), times + 1
        if not rows:
            return ""
        table = [("backward pass", "times", *self.networks)]
        for lines, times in rows.values():
            for index, (label, *cells) in enumerate(lines):
                table.append((label.replace("|", "\\|"), f"{times}x" if index == 0 else "", *cells))
        widths = [max(map(len, column)) for column in zip(*table, strict=True)]
        table.insert(1, tuple("-" * width for width in widths))
        text = ["| " + " | ".join(map(str.ljust, line, widths)) + " |" for line in table]
        words = {cell for event in self.events if event.kind in ("backward", "grad") for cell in event.cells.values()}
        legend = "; ".join(f"{word}: {meaning}" for word, meaning in LEGEND.items() if word in words)
        return "\n".join([*text, *["", f"{legend}."] * bool(legend)])

    def _repr_markdown_(self) -> str:  # what `display(audit)` shows in a notebook
        return str(self)

    def __str__(self) -> str:
        return "\n\n".join(part for part in (self.verdict, self.gaps, self.table, self.listing) if part)

    def data(self) -> dict:
        """Return all of it as what `json.dump` takes; `Event` explains the cells."""
        paths = (re.search(r"-packages[/\\](\w+)", event.place.via) for event in self.events)
        libraries = dict.fromkeys(sys.modules.get(path[1]) for path in paths if path)
        trainers = [f"{m.__name__} {m.__version__}" for m in libraries if hasattr(m, "__version__")]
        versions = [f"PyTorch {torch.__version__}", f"Python {platform.python_version()}", *trainers]
        return {
            "made_with": f"{', '.join(versions)}{'. ' * bool(self.missing)}{self.gaps}",
            "severity": self.severity,
            "verdict": self.verdict,
            "networks": [
                {
                    "name": name,
                    "class": type(network).__name__,
                    "parameters": sum(p.numel() for p in nn.Module.parameters(network) if not is_lazy(p)),
                }
                for name, network in self.networks.items()
            ],
            "optimizers": self.optimizers_seen,
            "events": [
                {
                    "kind": event.kind,
                    "place": event.place.data(),
                    "cells": event.cells,
                    "raised": getattr(event, "raised", False),
                    "create_graph": getattr(event, "create_graph", False),
                    "terms": [
                        {"name": t.name, "place": t.place and t.place.data(), "cells": t.cells, "dead": t.dead}
                        for t in getattr(event, "terms", ())
                    ],
                }
                for event in self.events
            ],
            "findings": [finding.data() for finding in self.findings],
        }
