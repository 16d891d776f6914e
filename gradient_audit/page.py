"""The report as a file; as HTML, one page without network or script: verdict, picture of a step, findings."""

import os
import re
from collections.abc import Iterable
from html import escape
from importlib.resources import files
from itertools import groupby, pairwise
from pathlib import Path
from string import Template

from gradient_audit.findings import Finding
from gradient_audit.history import Call, ForwardRow, Row, TermRow
from gradient_audit.places import CONTEXT, Place
from gradient_audit.report import LEGEND, Report

SUFFIXES = (".html", ".md")
MOST_EVENTS = 80  # rows of the picture
MANY_NETWORKS = 8  # of which more do not fit beside one another
VERSION = "A tensor's version is a number that every in-place change raises; backward() compares it with what it was."
SEVERITIES = {"error": "an error", "question": "a question", "waste": "costs time or memory, and changes no result"}
WORDS = {"grad": "autograd.grad", "step": "optimizer step", "zero_grad": "zero_grad()"}  # others: `<kind> pass`
TEMPLATE = Template(files(__package__).joinpath("page.html").read_text(encoding="utf-8"))  # also from a zip


def save(path: Path, contents: str, *, tries: bool = False) -> None:
    """Write a report, whole or not at all, or only try whether that can be. Raises OSError if it cannot."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        temporary.write_text(f"{contents}\n", encoding="utf-8", errors="backslashreplace")  # a path may be no text
        if not tries:
            temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def page(report: Report, script: str = "a training loop", ending: str = "") -> str:
    """Return the page of an audit that has ended."""
    facts = report.findings[0].facts if report.findings else ()  # the verdict's other lines
    heads = ""
    for name, network in report.judgement.networks.items():
        heads += f'<th class="net">{escape(name)}<br><small>{network.size:,}</small></th>'
    verdict = report.verdict.splitlines()[0]
    which, events = one_step(report.events)
    named = {event.place.file for event in events}
    shown = [verdict, ending, *(fact for _, fact in facts)]
    return TEMPLATE.substitute(
        LEGEND,
        title=escape(f"Gradient audit of {Path(script).name}"),
        severity=report.severity or "ok",
        verdict=marked(verdict),
        facts="".join(f"<tr><th>{escape(label)}</th><td>{marked(fact)}</td></tr>" for label, fact in facts),
        ending=escape(ending),
        version=VERSION if any("version" in text for text in shown) else "",
        files=len(named),
        of=f" of {escape(Path(min(named)).name)}" if len(named) == 1 else "",
        which=marked(which),
        count=len(report.judgement.networks),
        many="many" if len(report.judgement.networks) > MANY_NETWORKS else "",
        networks=heads,
        events="\n".join(picture(report, events)),
        findings="\n".join(findings(report)),
        made_with=escape(f"PyTorch {report.judgement.version}"),
    )


def picture(report: Report, events: list[Row]) -> Iterable[str]:
    """Yield the rows of one training step: networks as columns, time downwards, a mark for each event."""
    # The last ones: later passes have no shares.
    measured = {(p.place, len(p.terms)): p.terms for p in report.passes if p.measured}
    for event in events:
        call = event if isinstance(event, Call) else None
        raised = call is not None and call.raised
        place, cells = event.place, event.cells
        errors = [found for found in report.findings if found.severity == "error" and place.where in found.lines]
        if isinstance(event, ForwardRow):  # is wrong only where its tensors were overwritten
            if event.callers and not place.via:
                place = event.callers[0]  # the call: a line may have several
            errors = [f for f in errors if f.kind == "overwritten" and {place, event.place} & {*f.places}]
        wrong = {name for found in errors for name in found.networks}
        if raised:  # before it reached a network: a mark in those that the error names
            cells = cells | dict.fromkeys(wrong or cells, "wrong")
        words = [WORDS.get(event.kind, f"{event.kind} pass")]
        words += ["create_graph"] if call and call.began.create_graph else []
        words += ["raised"] if raised else []
        yield row("raised" if raised else event.kind, place, ", ".join(words), event.kind, with_wrong(cells, wrong))
        terms = call.terms if call else []
        for term in measured.get((event.place, len(terms)), terms):
            words, cells = "term of the loss", term.cells
            if term.dead:
                words, cells = "term of the loss, dead", with_wrong(cells, {*cells})
            yield row("term", term.place or event.place, words, event.kind, cells, term)


def with_wrong(cells: dict[str, str], wrong: set[str]) -> dict[str, str]:
    """Return the cells, with "wrong" where there is something in those of these networks."""
    return {name: "wrong" if name in wrong and cell != "-" else cell for name, cell in cells.items()}


def row(kind: str, place: Place, words: str, shape: str, cells: dict[str, str], term: TermRow | None = None) -> str:
    """Return the row of an event or a term: where, what, and for each network a mark, or a bar if it was measured."""
    via = f" <small>via {escape(place.via.where)} <code>{escape(place.via.code)}</code></small>" if place.via else ""
    marks = ""
    for network, cell in cells.items():
        label = escape(f"{words}: {network}, {cell}")
        drawing = f'<svg role="img"><title>{label}</title><use href="#{shape}"/></svg>'
        if term and network in term.shares:
            share = escape(term.word(network).partition(" ")[2])
            drawing = f'<meter title="{label}" value="{term.shares[network]:.3f}"></meter><small>{share}</small>'
        marks += '<td class="net"></td>' if cell == "-" else f'<td class="net {cell}">{drawing}</td>'
    where = f'<td class="where"><span>{escape(Path(place.file).name)}:</span>{place.number}</td>'
    source = f'<td class="code"><code>{escape(place.code)}</code>{via}</td>'
    return f'<tr class="{kind}">{where}{source}<td class="what">{words}</td>{marks}</tr>'


def one_step(events: list[Row]) -> tuple[str, list[Row]]:
    """Return which training step it is, and its events: of those that repeat, the last that was watched in full.

    After an error, and where nothing repeats, return what happened last.
    """
    text, parts = "", training_steps(events)
    if any(isinstance(event, Call) and event.raised for event in events):
        text = "What happened up to the error."
    elif parts:
        full = [n for n, (start, end) in enumerate(parts) if in_full(events[max(start - 1, 0) : end])]
        number = full[-1] if full else len(parts) - 1
        events = events[slice(*parts[number])]
        text = f"Step {number + 1} of {len(parts)}, up to {[e.place for e in events if e.kind == 'step'][-1]}"
        text += ": the last one that was watched in full." if full else "."
    if events and not in_full(events):
        text += " Not all of it was watched in detail: forward passes, `zero_grad()` and terms are missing."
    if len(events) > MOST_EVENTS:
        text += f" Shown are the last {MOST_EVENTS} of its {len(events)} events."
    return text.strip(), events[-MOST_EVENTS:]


def training_steps(events: list[Row]) -> list[tuple[int, int]]:
    """Return where each turn of the training loop begins and ends among the events.

    It begins with what leads to the optimizer that steps first, and ends with the last step before that steps again.
    """
    rows = [(event, closing(events, end)) for end, event in enumerate(events, 1) if event.kind == "step"]
    again = [optimizer for optimizer, _ in groupby(event.optimizer for event, _ in rows)]
    # One that never steps again after another did, as those that an inner loop makes anew, is known by its line alone.
    steps = [((e.place, e.optimizer if again.count(e.optimizer) > 1 else None), end) for e, end in rows]
    runs = [name for name, _ in groupby(name for name, _ in steps)]  # those of one optimizer in a row are one
    first = next((name for name in runs if runs.count(name) > 1), runs[-1] if runs else None)
    starts, last = [], None  # and what steps at the end of a turn
    for (before, start), (name, _) in pairwise([(None, 0), *steps]):
        if name == first and (before != first or runs.count(first) == 1):
            starts.append(start)
            last = before
    ends = starts[1:]
    # The script may have been stopped within a turn, also right before the zero_grad() at its end.
    if last and steps[-1][0] == last and events[steps[-1][1] - 1].kind == events[starts[-1] - 1].kind:
        ends.append(steps[-1][1])
    return [*zip(starts, ends, strict=False)]


def closing(events: list[Row], end: int) -> int:
    """Return where a step that ends at `end` ends together with calls of zero_grad() right below it."""
    step = events[end - 1].place
    for event in events[end:]:
        is_below = event.place[:3:2] == step[:3:2] and event.place.number > step.number  # of the file and the function
        if event.kind != "zero_grad" or not is_below:
            break
        end += 1
    return end


def in_full(events: list[Row]) -> bool:
    """Whether the events, and all between them, were watched in detail."""
    details = {event.detail for event in events}
    return len(details) == 1 and max(details) % 2 == 1


def findings(report: Report) -> Iterable[str]:
    """Yield the findings, errors first, each with its sentence, its cure, and the source around its lines."""
    yield "<h2>Findings</h2>" if report.findings else ""
    for finding in report.findings:
        yield f'<div class="finding {finding.severity}">'
        yield f'<p><span class="kind">{finding.kind}</span>: {SEVERITIES[finding.severity]}</p>'
        yield f"<p>{marked(finding.text)}</p><p><b>Cure:</b> {marked(finding.cure)}</p>"
        for name in finding.mistakes:
            yield f'<p class="dim">One like it: <code>python -m gradient_audit --mistake {escape(name)}</code></p>'
        for file in dict.fromkeys(line.file for place in finding.places for line in (place, place.inner)):
            yield from excerpt(report, finding, file)
        yield "</div>"


def excerpt(report: Report, finding: Finding, file: str) -> Iterable[str]:
    """Yield the lines of a file around those that a finding names."""
    named = {line.number for place in finding.places for line in (place, place.inner) if line.file == file}
    yield f'<p class="dim">{escape(file)}</p><pre>'
    for number, line in sorted(report.judgement.excerpts.get(file, {}).items()):
        if any(abs(number - other) <= CONTEXT for other in named):
            text = escape(f"{number:5}  {line}")
            yield f"<b>{text}</b>" if number in named else text
    yield "</pre>"


def marked(text: str) -> str:
    """Return Markdown text as HTML, for the one mark that the audit uses: `code`."""
    return re.sub("`(.*?)`", r"<code>\1</code>", escape(text))
