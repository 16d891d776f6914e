"""The audit's result as one HTML page that needs no network and no script: verdict, picture of a step, findings."""

import ast
import linecache
from collections import defaultdict
from collections.abc import Iterable
from contextlib import suppress
from functools import cache
from html import escape
from pathlib import Path

from gradient_audit.audit import LEGEND

CONTEXT = 3  # lines of source above and below the line of a finding
MOST_EVENTS = 80  # rows of the picture
OUTLINE = 'fill="none" stroke="currentColor" stroke-width="2.5"'
EVENTS = {  # kind: words, and a shape within a square of 20
    "forward": ("forward pass", f'<circle cx="10" cy="10" r="5.5" {OUTLINE}/>'),
    "backward": ("backward pass", '<path d="M3 5h14l-7 12z"/>'),
    "grad": ("autograd.grad", '<path d="M10 2l8 8-8 8-8-8z"/>'),
    "step": ("optimizer step", '<rect x="3" y="3" width="14" height="14" rx="2"/>'),
    "zero_grad": ("zero_grad()", f'<path d="M4 4l12 12M16 4L4 16" {OUTLINE}/>'),
}
MEANINGS = LEGEND | {"wrong": "named by an error below"}
STYLE = Path(__file__).with_suffix(".css").read_text(encoding="utf-8")


def page(data: dict) -> str:
    """Return the page for what `GradientAudit.data()` returned.

    data: may also have the texts `script`, `ending` and `command`. The source is read from the files that it names.
    """
    title = escape(f"Gradient audit of {Path(str(data.get('script', 'a training loop'))).name}")
    command = f"<br><code>{escape(data['command'])}</code>" if "command" in data else ""
    facts = data["findings"][0]["facts"] if data["findings"] else {}  # the verdict's other lines
    rows = "".join(f"<tr><th>{escape(label)}</th><td>{marked(fact)}</td></tr>" for label, fact in facts.items())
    body = [
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">',
        f'<meta name="viewport" content="width=device-width"><title>{title}</title><style>{STYLE}</style></head>',
        f"<body><h1>{title}</h1>",
        f'<div class="verdict {data["severity"] or "ok"}"><p>{marked(data["verdict"].splitlines()[0])}</p>',
        f'<table>{rows}</table></div><p class="dim">{escape(str(data.get("ending", "")))}</p>',
        *picture(data),
        *findings(data["findings"]),
        f'<p class="dim">{escape(data["made_with"])}{command}</p></body></html>\n',
    ]
    return "\n".join(body)


def picture(data: dict) -> Iterable[str]:
    """Yield the picture of one training step: networks as columns, time downwards, a mark for each event."""
    wrong = accused_cells(data)
    events = one_step(data["events"])
    # A line that is accused and not in this step, as of a penalty at every fourth one, comes before it.
    elsewhere = {cell[:2] for cell in wrong} - {line_of(event["place"]) for event in events}
    missing = {line: event for event in data["events"] if (line := line_of(event["place"])) in elsewhere}
    events = [*missing.values(), *events]
    yield "<h2>One training step</h2>"
    if not events:
        yield "<p>No forward pass, backward pass or step was seen.</p>"
        return
    heads = ""
    for network in data["networks"]:
        heads += f'<th class="net">{escape(network["name"])}<br><span class="dim">{network["parameters"]:,}</span></th>'
    many = ' class="many"' if len(data["networks"]) > 4 else ""
    yield f'<div class="scroll"><table{many}><tr><th>line</th><th>source</th><th class="what">event</th>{heads}</tr>'
    overwritten = bool(data["findings"]) and data["findings"][0]["kind"] == "overwritten"  # where forward passes count
    for event in events:
        words = EVENTS[event["kind"]][0] + ", create_graph" * event["create_graph"] + ", raised" * event["raised"]
        cells = ""
        for name, word in event["cells"].items():
            accused = (*line_of(event["place"]), name) in wrong and (event["kind"] != "forward" or overwritten)
            cells += cell(event["kind"], name, word, accused)
        row = "raised" if event["raised"] else event["kind"]
        yield f'<tr class="{row}">{source(whole(event["place"]))}<td class="what">{words}</td>{cells}</tr>'
        for term in sorted(event["terms"], key=lambda term: not term["dead"]):
            words = "term of the loss" + ", dead" * term["dead"]
            cells = "".join(cell(event["kind"], name, word, term["dead"]) for name, word in term["cells"].items())
            place = term["place"] or {"file": "", "line": 0, "code": term["name"]}
            yield f'<tr class="term">{source(place)}<td class="what dim">{words}</td>{cells}</tr>'
    yield '</table></div><div class="legend">'
    for words, shape in EVENTS.values():
        yield f'<span class="here"><svg viewBox="0 0 20 20">{shape}</svg>{words}</span>'
    for word, meaning in MEANINGS.items():
        yield f'<span class="{word}"><svg viewBox="0 0 20 20">{EVENTS["backward"][1]}</svg>{word}: {meaning}</span>'
    yield "</div>"


def accused_cells(data: dict) -> set[tuple[str, int, str]]:
    """Return the cells that an error names: file, line, network; of a step, the networks that it steps on alone."""
    stepped = defaultdict(set)
    for event in data["events"]:
        if event["kind"] == "step":
            stepped[line_of(event["place"])] |= {name for name, word in event["cells"].items() if word == "here"}
    cells = set()
    for finding in data["findings"]:
        lines = [line_of(place) for place in finding["places"]] if finding["severity"] == "error" else []
        guilty = set().union(*(stepped[line] for line in lines if line in stepped)) & {*finding["networks"]}
        cells |= {(*line, network) for line in lines for network in guilty or finding["networks"]}
    return cells


def line_of(place: dict) -> tuple[str, int]:
    """Return the file and the number of a line."""
    return place["file"], place["line"]


def cell(kind: str, network: str, word: str, wrong: bool) -> str:
    """Return the cell of a network in the row of an event: its mark, in the colour of what became of the gradient."""
    if word == "-":
        return '<td class="net"></td>'
    colour = "wrong" if wrong else word if word in MEANINGS else "here"
    label = escape(f"{EVENTS[kind][0]}: {network}" + ("" if colour == "here" else f", {colour}"))
    mark = f'<svg viewBox="0 0 20 20" role="img"><title>{label}</title>{EVENTS[kind][1]}</svg>'
    return f'<td class="net {colour}">{mark}</td>'


def source(place: dict) -> str:
    """Return the two cells that say where: file and line, and the code."""
    where, code = f"{Path(place['file']).name}:{place['line']}" if place["file"] else "", escape(place["code"])
    via = f' <span class="dim">via {escape(place["via"])}</span>' if place.get("via") else ""
    return f'<td class="where">{escape(where)}</td><td class="code" title="{code}"><code>{code}</code>{via}</td>'


def whole(place: dict) -> dict:
    """Return a place with the whole statement as its code, where it has several lines."""
    node = statement(*line_of(place))
    return place | {"code": ast.unparse(node)} if node and node.lineno < node.end_lineno else place


def one_step(events: list[dict]) -> list[dict]:
    """Return the events of the last whole training step, or, where they do not repeat, the last MOST_EVENTS of them."""
    keys = [(event["kind"], *line_of(event["place"])) for event in events]
    longest = 0 if any(event["raised"] for event in events) else len(keys) // 2
    for period in range(1, longest + 1):
        if keys[-period:] == keys[-2 * period : -period]:
            # The step begins at the first line of the file in which it ends.
            starts = range(len(keys) - 2 * period + 1, len(keys) - period + 1)
            start = min(starts, key=lambda i: (keys[i][1] != keys[-1][1], keys[i][2], i))
            events = events[start : start + period]
            break
    return events[-MOST_EVENTS:]


def findings(found: list[dict]) -> Iterable[str]:
    """Yield the findings, errors first, each with the source around its lines."""
    if found:
        yield "<h2>Findings</h2>"
    for finding in found:
        severity = finding["severity"]
        yield f'<div class="finding {severity}">'
        yield f'<p><span class="kind">{escape(finding["kind"])}</span> <span class="dim">{severity}</span></p>'
        names = ", ".join(f"<code>{escape(name)}</code>" for name in finding["mistakes"])
        alike = f'<p class="dim">Mistakes like it (<code>--mistake NAME</code>): {names}.</p>' if names else ""
        yield f"<p>{marked(finding['text'])}</p><p><b>Cure:</b> {marked(finding['cure'])}</p>{alike}"
        yield from excerpts(finding["places"])
        yield "</div>"


def excerpts(places: list[dict]) -> Iterable[str]:
    """Yield the source around the lines of a finding, one block for lines that lie close together."""
    by_file = defaultdict(set)
    for place in places:
        node = statement(*line_of(place))
        by_file[place["file"]] |= {*range(node.lineno, node.end_lineno + 1)} if node else {place["line"]}
    for file, numbers in by_file.items():
        lines = linecache.getlines(file)
        around = {
            n + d for n in numbers for d in range(-CONTEXT, CONTEXT + 1) if 1 <= n + d <= len(lines)
        }  # none without source
        yield f'<p class="dim">{escape(file)}</p><pre>'
        for n in sorted(around):
            gap = "" if n - 1 in around or n == min(around) else "...\n"
            text = escape(f"{n:5}  {lines[n - 1].rstrip()}")
            yield gap + (f"<b>{text}</b>" if n in numbers else text)
        yield "</pre>"


@cache
def statement(file: str, line: int) -> ast.stmt | None:
    """Return the simple statement that a line belongs to."""
    with suppress(SyntaxError):
        for node in ast.walk(ast.parse("".join(linecache.getlines(file)))):
            if isinstance(node, ast.stmt) and not hasattr(node, "body") and node.lineno <= line <= node.end_lineno:
                return node
    return None


def marked(text: str) -> str:
    """Return Markdown text as HTML, for the one mark that the audit uses: `code`."""
    parts = escape(text).split("`")
    return "".join(f"<code>{part}</code>" if n % 2 else part for n, part in enumerate(parts))
