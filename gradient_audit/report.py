"""The report as text: the verdict, the table of passes, the findings."""

from collections import Counter, defaultdict

from gradient_audit.findings import SEVERITIES, Finding
from gradient_audit.history import Call, Row
from gradient_audit.judge import Judgement
from gradient_audit.trace import MOST_PASSES

LEGEND = {
    "used": "an optimizer stepped on the gradient",
    "wasted": "the gradient was cleared, or left over without a step",
    "read": "no step used the gradient, but autograd.grad() or the script read it",
    "-": "no gradient of this network",
}
SHARES = "97%: a term's part in the sum of the gradients' norms, in that network; against: against the other terms."

NO_STEP = "Not judged: no optimizer was seen to step on the gradients of a backward pass"
UNJUDGED = """The audit sees optimizers of `torch.optim`, and PyTorch's operations that write to parameters what was
computed from gradients.""".replace("\n", " ")


class Report:
    """What an audit says. Its text is `str(report)`; `page.page` makes a page of it."""

    def __init__(self, judgement: Judgement):
        self.judgement = judgement
        self.failure = ""  # what raised inside the audit, which then gave up
        self.unwatched = ""  # why nothing was watched
        self.strangers = False  # whether the passes came to none of the networks that were named

    @property
    def findings(self) -> list[Finding]:
        """What is wrong, doubtful or wasteful, the worst first."""
        return self.judgement.findings

    @property
    def events(self) -> list[Row]:
        """What happened, in order."""
        return self.judgement.events

    @property
    def passes(self) -> list[Call]:
        """The backward passes among the events, also calls of autograd.grad whose results became gradients."""
        return self.judgement.passes

    @property
    def saw_nothing(self) -> bool:
        """Whether no gradient was computed, but inside of torch.func, or none of the networks that were named."""
        calls = [row for row in self.events if isinstance(row, Call)]
        return self.strangers or all(call.began.functional and not call.is_pass for call in calls)

    @property
    def unjudged(self) -> bool:
        """Whether passes gave gradients that nothing read, and no step on them was seen."""
        return bool(self.judgement.unjudged) and not self.failure

    @property
    def severity(self) -> str:
        """That of the worst finding, or ""; "error" if the audit gave up."""
        if self.failure:
            return "error"
        return self.findings[0].severity if self.findings else ""

    @property
    def verdict(self) -> str:
        """The answer in a sentence or two, with the finding to look at first."""
        if self.failure:
            return f"The audit gave up: {self.failure}."
        if self.saw_nothing:
            came = "came to the named networks" if self.passes else "ran"
            return self.unwatched or f"No backward pass {came}."
        not_run = self.judgement.not_run
        if self.unjudged:
            not_run = f"{UNJUDGED} {not_run}".rstrip()
        if not self.findings:
            answer = f"{NO_STEP} ({self.judgement.unjudged})" if self.unjudged else "Nothing wrong, nothing wasted"
            return f"{answer}. {not_run}".rstrip()
        counts = Counter(finding.severity for finding in self.findings)
        amounts = [f"{n} {SEVERITIES[severity]}{'s' if n > 1 else ''}" for severity, n in counts.items()]
        answer = "Wrong" if counts["error"] else NO_STEP if self.unjudged else "Nothing wrong"
        opening = f"{answer}. {', '.join(amounts)}:"
        first = self.findings[0]
        if first.facts:
            width = max(len(label) for label, _ in first.facts)
            facts = "".join(f"\n- {label:<{width}}  {fact}" for label, fact in first.facts)
            return f"{opening} {first.text}\n{facts}"
        at = "".join(f" ({line})" for line in first.lines[:1] if line not in first.text)
        return f"{opening} {first.text.rstrip('.')}{at}. Cure: {first.cure} {not_run}".rstrip()

    @property
    def details(self) -> str:
        """What was not watched, the table, and the findings, a line each."""
        all_watched = len(self.passes) < MOST_PASSES
        gap = "" if all_watched else f"Only the first {MOST_PASSES:,} backward passes were watched."
        listing = "\n".join(f"- {finding}" for finding in self.findings)
        return "\n\n".join(part for part in (gap, self.table, listing) if part)

    @property
    def table(self) -> str:
        """What the words mean, and a row for every backward pass and for each of its terms; "" without any pass."""
        rows: dict[tuple, list[list[tuple]]] = defaultdict(list)  # of passes that do the same: the terms of each
        for row in self.events:
            if row.kind == "backward" or (row.kind == "grad" and {*row.cells.values()} - {"-"}):
                rows[(_label(row), *(row.cells | row.parts).values())].append(_term_lines(row))
        if not rows:
            return ""
        lines = [("backward pass", "times", *self.judgement.networks)]
        for (label, *cells), terms in rows.items():
            lines += [(label, f"{len(terms)}x", *cells), *max(terms, key=lambda term_lines: len(f"{term_lines}"))]
        words = {cell.partition(" ")[0] for line in lines[1:] for cell in line[2:]}
        legend = "; ".join(f"{word}: {meaning}" for word, meaning in LEGEND.items() if word in words)
        return "\n".join([f"{legend}." if legend else "", *self._notes(), "", *_aligned(lines)])

    def _notes(self) -> list[str]:
        """Return what the shares are, and which terms have none."""
        measured = {p.place for p in self.passes if p.measured}
        gaps = {p.place: p.began.unmeasured for p in self.passes if p.began.unmeasured and p.place not in measured}
        reasons = {place.where: reason for place, reason in gaps.items()}
        text = [f"The terms of {line} were not measured: {reason}." for line, reason in reasons.items()]
        return [SHARES, *text] if measured else text

    def __str__(self) -> str:
        return "\n\n".join(part for part in (self.verdict, self.details) if part)

    _repr_markdown_ = __str__  # what `display(audit)` shows in a notebook


def _aligned(lines: list[tuple[str, ...]]) -> list[str]:
    """Return the lines of a table in Markdown."""
    lines = [[cell.replace("|", "\\|") for cell in line] for line in lines]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    lines.insert(1, ["-" * width for width in widths])
    return ["| " + " | ".join(map(str.ljust, line, widths)) + " |" for line in lines]


def _label(call: Call) -> str:
    raised, create_graph = " raised" if call.raised else "", " (create_graph)" if call.began.create_graph else ""
    return f"{call.place}{raised}{create_graph}"


def _term_lines(call: Call) -> list[tuple[str, ...]]:
    """Return the lines of a pass's terms; none where all do what the pass does."""
    if not any(row.dead or row.shares or row.cells != call.cells for row in call.terms):
        return []
    names = [str(row.place or row.term.name) for row in call.terms]
    lines = []
    for index, (name, row) in enumerate(zip(names, call.terms, strict=True)):
        turn = f" ({names[: index + 1].count(name)} of {names.count(name)})" if names.count(name) > 1 else ""
        lines.append((f"  + {name}{turn}{' (dead)' if row.dead else ''}", "", *map(row.word, row.cells)))
    return lines
