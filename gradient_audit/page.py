"""The report as a file; as HTML, one page without network or script: verdict, picture of a step, findings."""

import json
import linecache
import os
import re
from collections.abc import Iterable
from html import escape
from pathlib import Path
from string import Template

from gradient_audit.audit import LEGEND

SUFFIXES = (".html", ".md", ".json")
CONTEXT = 3  # lines of source above and below the line of a finding
MOST_EVENTS = 80  # rows of the picture
WORDS = {"grad": "autograd.grad", "step": "optimizer step", "zero_grad": "zero_grad()"}  # others: `<kind> pass`
TEMPLATE = Template(Path(__file__).with_suffix(".html").read_text(encoding="utf-8"))


def save(path: Path, data: dict, text: str) -> None:
    """Write a report in the form that the suffix of its name, one of `SUFFIXES`, says; it is whole, or not there.

    data: what `page` takes, for .html and .json. text: Markdown, for .md. Raises OSError if it cannot be written.
    """
    forms = {".html": lambda: page(data), ".md": lambda: text, ".json": lambda: json.dumps(data, indent=2)}
    contents = forms[path.suffix]()
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        temporary.write_text(f"{contents}\n", encoding="utf-8")
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def page(data: dict) -> str:
    """Return the page for what `GradientAudit.data()` returned.

    data: may also have the texts `script` and `ending`. The source is read from the files that it names.
    """
    facts = data["findings"][0]["facts"] if data["findings"] else {}  # the verdict's other lines
    sizes = {escape(network["name"]): f"{network['parameters']:,}" for network in data["networks"]}
    return TEMPLATE.substitute(
        LEGEND,
        title=escape(f"Gradient audit of {Path(data.get('script', 'a training loop')).name}"),
        severity=data["severity"] or "ok",
        verdict=marked(data["verdict"].splitlines()[0]),
        facts="".join(f"<tr><th>{escape(label)}</th><td>{marked(fact)}</td></tr>" for label, fact in facts.items()),
        ending=escape(data.get("ending", "")),
        networks="".join(f'<th class="net">{name}<br><small>{size}</small></th>' for name, size in sizes.items()),
        events="\n".join(picture(data)),
        findings="\n".join(findings(data["findings"])),
        made_with=escape(data["made_with"]),
    )


def picture(data: dict) -> Iterable[str]:
    """Yield the rows of one training step: networks as columns, time downwards, a mark for each event."""
    for event in one_step(data["events"]):
        kind, raised = event["kind"], bool(event.get("raised"))
        where = event["place"]["file"], event["place"]["line"]
        here = [f for f in data["findings"] if any(where == (place["file"], place["line"]) for place in f["places"])]
        # A forward pass is wrong only where its tensors were overwritten.
        errors = [f for f in here if f["severity"] == "error" and (kind != "forward" or f["kind"] == "overwritten")]
        wrong = {name for error in errors for name in error["networks"]}
        words = WORDS.get(kind, f"{kind} pass")
        words += ", create_graph" * bool(event.get("create_graph")) + ", raised" * raised
        yield row("raised" if raised else kind, event["place"], words, kind, event["cells"], wrong)
        for term in event["terms"]:
            words, wrong = "term of the loss" + ", dead" * term["dead"], {*term["cells"]} if term["dead"] else set()
            yield row("term", term["place"] or event["place"], words, kind, term["cells"], wrong)


def row(kind: str, place: dict, words: str, shape: str, cells: dict[str, str], wrong: set[str]) -> str:
    """Return the row of an event or a term: where, what, and a mark for each network in the colour of its word."""
    code, via = escape(place["code"]), f" <small>via {escape(place['via'])}</small>" * bool(place["via"])
    marks = ""
    for network, word in cells.items():
        colour = "wrong" if network in wrong else word
        label = escape(f"{words}: {network}, {colour}")
        mark = f'<td class="net {colour}"><svg role="img"><title>{label}</title><use href="#{shape}"/></svg></td>'
        marks += '<td class="net"></td>' if word == "-" else mark
    where = f'<td class="where">{escape(Path(place["file"]).name)}:{place["line"]}</td>'
    source = f'<td class="code" title="{code}"><code>{code}</code>{via}</td>'
    return f'<tr class="{kind}">{where}{source}<td class="what">{words}</td>{marks}</tr>'


def one_step(events: list[dict]) -> list[dict]:
    """Return the events since the last but one step of the optimizer that stepped last; else the last MOST_EVENTS."""
    steps = [event for event in events if event["kind"] == "step"]
    ends = [end for end, event in enumerate(events, 1) if event in steps[-1:]]
    if len(ends) > 1 and not any(event.get("raised") for event in events):
        events = events[ends[-2] : ends[-1]]
    return events[-MOST_EVENTS:]


def findings(found: list[dict]) -> Iterable[str]:
    """Yield the findings, errors first, each with the source around its lines."""
    yield "<h2>Findings</h2>" * bool(found)
    for finding in found:
        severity, places = finding["severity"], finding["places"]
        yield f'<div class="finding {severity}"><p><span class="kind">{finding["kind"]}</span> {severity}</p>'
        yield f"<p>{marked(finding['text'])}</p><p><b>Cure:</b> {marked(finding['cure'])}</p>"
        if names := ", ".join(f"<code>{escape(name)}</code>" for name in finding["mistakes"]):
            yield f'<p class="dim">Mistakes like it (<code>--mistake NAME</code>): {names}.</p>'
        for file in dict.fromkeys(place["file"] for place in places):
            named = {place["line"] for place in places if place["file"] == file}
            yield f'<p class="dim">{escape(file)}</p><pre>'
            for number, line in enumerate(linecache.getlines(file), 1):
                if any(abs(number - other) <= CONTEXT for other in named):
                    text = escape(f"{number:5}  {line.rstrip()}")
                    yield f"<b>{text}</b>" if number in named else text
            yield "</pre>"
        yield "</div>"


def marked(text: str) -> str:
    """Return Markdown text as HTML, for the one mark that the audit uses: `code`."""
    return re.sub("`(.*?)`", r"<code>\1</code>", escape(text))
