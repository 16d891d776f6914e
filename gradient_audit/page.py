"""The audit's result as one HTML page that needs no network and no script: verdict, picture of a step, findings.

It shows what `GradientAudit.data()` returns.
"""

import ast
import linecache
from collections.abc import Iterable
from functools import cache
from html import escape
from pathlib import Path

CONTEXT = 3  # lines of source above and below the line of a finding
MOST_EVENTS = 80  # rows of the picture
MOST_TERMS = 5  # of a loss that has a row each
VERBS = {
    "forward": "forward pass",
    "backward": "backward pass",
    "grad": "autograd.grad",
    "step": "optimizer step",
    "zero_grad": "zero_grad()",
}
SHAPES = {  # within a square of 20
    "forward": '<circle cx="10" cy="10" r="5.5" fill="none" stroke="currentColor" stroke-width="2.5"/>',
    "backward": '<path d="M3 5h14l-7 12z"/>',
    "grad": '<path d="M10 2l8 8-8 8-8-8z"/>',
    "step": '<rect x="3" y="3" width="14" height="14" rx="2"/>',
    "zero_grad": '<path d="M4 4l12 12M16 4L4 16" fill="none" stroke="currentColor" stroke-width="2.5"/>',
}
MEANINGS = {
    "used": "an optimizer stepped on the gradient",
    "wasted": "the gradient was computed and never used",
    "wrong": "named by an error below",
    "read": "the gradient was returned, not accumulated",
}
STYLE = Path(__file__).with_suffix(".css").read_text(encoding="utf-8")


def page(data: dict) -> str:
    """Return the page for what `GradientAudit.data()` returned.

    data: may also have the texts `script`, `ending` and `command`. The source around the findings' lines is read
    from the files that they name; a file that cannot be read is left out.
    """
    title = f"Gradient audit of {Path(str(data.get('script', 'a training loop'))).name}"
    tone = data["severity"] or "ok"
    command = f"<br><code>{escape(data['command'])}</code>" if "command" in data else ""
    body = [
        f"<h1>{escape(title)}</h1>",
        f'<div class="verdict {tone}">{answer(data)}</div>',
        f'<p class="dim">{escape(str(data.get("ending", "")))}</p>',
        *picture(data),
        *findings(data["findings"]),
        *optimizers(data["optimizers"]),
        f'<p class="dim">{escape(data["made_with"])}{command}</p>',
    ]
    head = f'<meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>{escape(title)}</title>'
    content = "\n".join(body)
    head += f"<style>{STYLE}</style>"
    return f'<!doctype html>\n<html lang="en"><head>{head}</head>\n<body>\n{content}\n</body></html>\n'


def picture(data: dict) -> Iterable[str]:
    """Yield the picture of one training step: networks as columns, time downwards, a mark for each event."""
    names = [network["name"] for network in data["networks"]]
    wrong = accused_cells(data)
    events = one_step(data["events"])
    shown = {line_of(event["place"]) for event in events}
    # A line that is accused and not in this step, as of a penalty at every fourth one, comes before it.
    missing = {line: e for e in data["events"] if (line := line_of(e["place"])) in {c[:2] for c in wrong} - shown}
    events = [*missing.values(), *events]
    rows = {line_of(event["place"]): number for number, event in enumerate(events)}
    yield "<h2>One training step</h2>"
    if not events:
        yield "<p>No forward pass, backward pass or step was seen.</p>"
        return
    heads = "".join(
        f'<th class="net">{escape(network["name"])}<br><span class="dim">{network["parameters"]:,}</span></th>'
        for network in data["networks"]
    )
    many = ' class="many"' if len(names) > 4 else ""
    yield f'<div class="scroll"><table{many}><tr><th>line</th><th>source</th><th class="what">event</th>{heads}</tr>'
    overwritten = bool(data["findings"]) and data["findings"][0]["kind"] == "overwritten"  # where forward passes count
    for number, event in enumerate(events):
        counts = event["kind"] != "forward" or overwritten
        keys = {name: (*line_of(event["place"]), name) for name in names}
        links = {name: arrows(wrong.get(key, {}), number, rows) for name, key in keys.items()}
        cells = "".join(cell(event, name, key in wrong and counts, links[name]) for name, key in keys.items())
        verb = VERBS[event["kind"]] + (", create_graph" if event["create_graph"] else "")
        verb += ", raised" if event["raised"] else ""
        row = "raised" if event["raised"] else event["kind"]
        yield f'<tr class="{row}" id="row{number}">{source(event["place"])}<td class="what">{verb}</td>{cells}</tr>'
        terms = sorted(event["terms"], key=lambda term: not term["dead"])
        for term in terms[:MOST_TERMS]:
            told = "term of the loss, dead" if term["dead"] else "term of the loss"
            within = {"kind": event["kind"], "cells": term["cells"]}
            cells = "".join(cell(within, name, term["dead"]) for name in names)
            where = source(term["place"] or {"file": "", "line": 0, "code": term["name"]})
            yield f'<tr class="term">{where}<td class="what dim">{told}</td>{cells}</tr>'
        if rest := [escape(term["place"]["code"] if term["place"] else term["name"]) for term in terms[MOST_TERMS:]]:
            listing = "".join(f"<br><code>{code}</code>" for code in rest)
            folded = f"<details><summary>{len(rest)} more terms</summary>{listing}</details>"
            yield f'<tr class="term"><td></td><td class="code" colspan="{2 + len(names)}">{folded}</td></tr>'
    yield "</table></div>"
    yield '<div class="legend">'
    for kind, shape in SHAPES.items():
        yield f'<span class="here"><svg viewBox="0 0 20 20">{shape}</svg>{VERBS[kind]}</span>'
    for word, meaning in MEANINGS.items():
        yield f'<span class="{word}"><svg viewBox="0 0 20 20">{SHAPES["backward"]}</svg>{word}: {meaning}</span>'
    yield "</div>"


def accused_cells(data: dict) -> dict[tuple[str, int, str], dict[tuple[str, int], bool]]:
    """Return the cells that an error names, (file, line, network), each with the lines that its step's gradient is of.

    Of an error about a step these are the networks that it steps on alone. A line is True if it ran in an earlier step.
    """
    stepped: dict[tuple[str, int], set[str]] = {}
    for event in data["events"]:
        if event["kind"] == "step":
            stepped.setdefault(line_of(event["place"]), set()).update(
                n for n, w in event["cells"].items() if w == "here"
            )
    cells: dict[tuple[str, int, str], dict[tuple[str, int], bool]] = {}
    for finding in data["findings"] if data["severity"] == "error" else ():
        lines = [line_of(place) for place in finding["places"]] if finding["severity"] == "error" else []
        guilty = set().union(*(stepped.get(line, set()) for line in lines)) & {*finding["networks"]}
        for line in lines:
            kind, sources = finding["kind"], {}
            if kind in ("stale", "mixed") and line in stepped:
                sources = {other: kind == "stale" for other in lines if other not in stepped}
            for network in guilty or finding["networks"]:
                cells.setdefault((*line, network), {}).update(sources)
    return cells


def arrows(sources: dict[tuple[str, int], bool], number: int, rows: dict[tuple[str, int], int]) -> str:
    """Return links from a step, in the row `number`, to the rows of the passes that its gradient comes from."""
    links = ""
    for line, earlier in sources.items():
        if line in rows:
            when = " of a step before" if earlier or rows[line] > number else ""
            arrow = "↑" if rows[line] < number else "↓"
            links += f'<a href="#row{rows[line]}">{arrow} line {line[1]}{when}</a>'
    return links


def line_of(place: dict) -> tuple[str, int]:
    """Return the file and the number of a line."""
    return place["file"], place["line"]


def cell(event: dict, network: str, wrong: bool, links: str = "") -> str:
    """Return the cell of a network in the row of an event: its mark, in the colour of what became of the gradient."""
    word = event["cells"].get(network, "-")
    if word == "-":
        return '<td class="net"></td>'
    colour = "wrong" if wrong else word if word in MEANINGS else "here"
    label = f"{VERBS[event['kind']]}: {network}" + ("" if colour == "here" else f", {colour}")
    mark = f'<svg viewBox="0 0 20 20" role="img"><title>{escape(label)}</title>{SHAPES[event["kind"]]}</svg>'
    return f'<td class="net {colour}">{mark}{links}</td>'


def source(place: dict) -> str:
    """Return the two cells that say where: file and line, and the code, or the whole statement that the line is of."""
    where = f"{Path(place['file']).name}:{place['line']}" if place["file"] else ""
    lines, whole = linecache.getlines(place["file"]), statement(*line_of(place))
    cut = len(whole) > 1 or len(place["code"]) == 60
    is_line = bool(lines) and lines[place["line"] - 1].strip().startswith(place["code"])  # no expression on it
    code = escape(
        " ".join(line.strip() for line in lines[whole[0] - 1 : whole[-1]]) if cut and is_line else place["code"]
    )
    via = f' <span class="dim">via {escape(place["via"])}</span>' if place.get("via") else ""
    return f'<td class="where">{escape(where)}</td><td class="code" title="{code}"><code>{code}</code>{via}</td>'


def one_step(events: list[dict]) -> list[dict]:
    """Return the events of the last whole training step, or, where they do not repeat, the last MOST_EVENTS of them."""
    if any(event["raised"] for event in events):
        return events[-MOST_EVENTS:]
    keys = [(event["kind"], event["place"]["file"], event["place"]["line"]) for event in events]
    for period in range(1, len(keys) // 2 + 1):
        if keys[-period:] == keys[-2 * period : -period]:
            # The step begins at the first line of the file in which it ends.
            starts = range(len(keys) - 2 * period + 1, len(keys) - period + 1)
            start = min(starts, key=lambda i: (keys[i][1] != keys[-1][1], keys[i][2], i))
            return events[start : start + period][-MOST_EVENTS:]
    return events[-MOST_EVENTS:]


def findings(found: list[dict]) -> Iterable[str]:
    """Yield the findings, errors first, each with the source around its lines."""
    if found:
        yield "<h2>Findings</h2>"
    for finding in found:
        yield f'<div class="finding {finding["severity"]}">'
        kind, severity = escape(finding["kind"]), finding["severity"]
        yield f'<p><span class="kind">{kind}</span> <span class="dim">{severity}</span></p>'
        names = ", ".join(f"<code>{escape(name)}</code>" for name in finding["mistakes"])
        alike = f'<p class="dim">Mistakes like it (<code>--mistake NAME</code>): {names}.</p>' if names else ""
        yield f"<p>{marked(finding['text'])}</p><p><b>Cure:</b> {marked(finding['cure'])}</p>{alike}"
        yield from excerpts(finding["places"])
        yield "</div>"


def excerpts(places: list[dict]) -> Iterable[str]:
    """Yield the source around the lines of a finding, one block for lines that lie close together."""
    by_file: dict[str, set[int]] = {}
    for place in places:
        by_file.setdefault(place["file"], set()).add(place["line"])
    for file, numbers in by_file.items():
        lines = linecache.getlines(file)
        if not lines:
            continue
        numbers = {n for number in numbers for n in statement(file, number)}
        around = {n + d for n in numbers for d in range(-CONTEXT, CONTEXT + 1) if 1 <= n + d <= len(lines)}
        yield f'<p class="dim">{escape(file)}</p><pre>'
        for n in sorted(around):
            gap = "" if n - 1 in around or n == min(around) else "...\n"
            text = escape(f"{n:5}  {lines[n - 1].rstrip()}")
            yield gap + (f"<b>{text}</b>" if n in numbers else text)
        yield "</pre>"


@cache
def statement(file: str, line: int) -> range:
    """Return the lines of the simple statement that a line belongs to, or the line itself."""
    try:
        nodes = ast.walk(ast.parse("".join(linecache.getlines(file))))
    except SyntaxError:
        return range(line, line + 1)
    for node in nodes:
        if isinstance(node, ast.stmt) and not hasattr(node, "body") and node.lineno <= line <= node.end_lineno:
            return range(node.lineno, node.end_lineno + 1)
    return range(line, line + 1)


def optimizers(found: list[dict]) -> Iterable[str]:
    """Yield the table of the optimizers: class, networks, number of steps and where they were made."""
    if not found:
        return
    yield '<h2>Optimizers</h2><div class="scroll"><table>'
    yield "<tr><th>optimizer</th><th>networks</th><th>steps</th><th>at</th></tr>"
    for optimizer in found:
        kind = escape(optimizer["class"]) + (" (fused)" if optimizer["fused"] else "")
        at = ", ".join(f"{Path(place['file']).name}:{place['line']}" for place in optimizer["places"])
        networks = escape(", ".join(optimizer["networks"]))
        yield f"<tr><td>{kind}</td><td>{networks}</td><td>{optimizer['steps']}</td><td>{escape(at)}</td></tr>"
    yield "</table></div>"


def answer(data: dict) -> str:
    """Return the verdict as HTML: its first line, and the facts of the first finding, which follow it in the text."""
    facts = data["findings"][0]["facts"] if data["findings"] else {}
    rows = "".join(f"<tr><th>{escape(label)}</th><td>{marked(fact)}</td></tr>" for label, fact in facts.items())
    return f"<p>{marked(data['verdict'].splitlines()[0])}</p>" + (f"<table>{rows}</table>" if rows else "")


def marked(text: str) -> str:
    """Return Markdown text as HTML, for the one mark that the audit uses: `code`."""
    parts = escape(text).split("`")
    return "".join(f"<code>{part}</code>" if n % 2 else part for n, part in enumerate(parts))
