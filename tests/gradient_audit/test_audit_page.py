"""The page shows what the audit's data says: every event of a step, every finding with its source, and nothing else."""

import json
from html.parser import HTMLParser

import pytest
import torch
from torch import nn

from gradient_audit import GradientAudit
from gradient_audit.page import one_step, page

VOID = {"meta", "br", "path", "circle", "rect"}


class Reader(HTMLParser):
    """Collects the rows of tables as lists of (class, text), and checks that tags are closed in order."""

    def __init__(self):
        super().__init__()
        self.open, self.rows, self.tags, self.text = [], [], [], ""

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        self.tags.append((tag, attributes))
        if tag == "tr":
            self.rows.append((attributes.get("class"), []))
        if tag in ("td", "th"):
            self.rows[-1][1].append((attributes.get("class"), []))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        if tag not in VOID:
            assert self.open.pop() == tag

    def handle_data(self, text):
        self.text += text
        if {"td", "th"} & set(self.open):
            self.rows[-1][1][-1][1].append(text)


def read(data):
    reader = Reader()
    reader.feed(page(json.loads(json.dumps(data))))
    assert not reader.open
    return reader


def audited(step, count=3):
    """Return the audit's data of `count` steps with a generator and a discriminator."""
    generator, discriminator = nn.Linear(2, 2), nn.Linear(2, 1)
    optimizers = [torch.optim.SGD(network.parameters(), 0.1) for network in (generator, discriminator)]
    with GradientAudit(generator=generator, discriminator=discriminator) as audit:
        for _ in range(count):
            step(generator, discriminator, *optimizers)
    return audit.data()


def right(generator, discriminator, optimizer_g, optimizer_d):
    fake = generator(torch.ones(3, 2))
    optimizer_d.zero_grad()
    discriminator(fake.detach()).mean().backward()
    optimizer_d.step()
    optimizer_g.zero_grad()
    discriminator(fake).mean().backward(inputs=list(generator.parameters()))
    optimizer_g.step()


def without_zero_grad(generator, discriminator, optimizer_g, optimizer_d):
    discriminator(generator(torch.ones(3, 2))).mean().backward()
    optimizer_g.step()
    optimizer_d.step()


def test_the_picture_has_a_row_for_each_event_of_one_step_and_a_mark_in_each_network_that_it_concerns():
    reader = read(audited(right))
    rows = [(kind, [cell for cell in cells if "net" in (cell[0] or "")]) for kind, cells in reader.rows]
    events = [(kind, ["".join(c[0].split()[1:]) for c in cells]) for kind, cells in rows if cells and kind != "term"]
    assert events[1:] == [
        ("forward", ["here", ""]),
        ("zero_grad", ["", "here"]),
        ("forward", ["", "here"]),
        ("backward", ["", "used"]),
        ("step", ["", "here"]),
        ("zero_grad", ["here", ""]),
        ("forward", ["", "here"]),
        ("backward", ["used", ""]),
        ("step", ["here", ""]),
    ]
    assert "Nothing wrong" in reader.text


def test_an_error_is_marked_wrong_and_its_source_is_shown():
    data = audited(without_zero_grad)
    assert "error" in {finding["severity"] for finding in data["findings"]}
    reader = read(data)
    assert any("wrong" in (cell[0] or "") for _, cells in reader.rows for cell in cells)
    for finding in data["findings"]:
        assert finding["kind"] in reader.text
        assert finding["text"].replace("`", "") in reader.text
    assert "def without_zero_grad(generator" in reader.text


def test_the_page_loads_nothing_and_runs_nothing():
    reader = read(audited(right) | {"script": "<script>alert(1).py", "ending": "<b>&"})
    assert not [tag for tag, _ in reader.tags if tag in ("script", "link", "img", "iframe", "object")]
    assert not [name for _, attributes in reader.tags for name in attributes if name in ("src", "href", "onload")]
    assert "url(" not in page(audited(right))
    assert "<script>alert(1).py" in reader.text


def test_an_audit_that_saw_nothing_has_a_page():
    with GradientAudit(network=nn.Linear(1, 1)) as audit:
        pass
    assert "No forward pass" in read(audit.data()).text


def event(kind, line, file="train.py", raised=False):
    place = {"file": file, "line": line, "function": "", "code": "", "via": ""}
    return {"kind": kind, "place": place, "cells": {}, "raised": raised, "create_graph": False, "terms": []}


STEP = [("forward", 3), ("backward", 4), ("step", 5)]


@pytest.mark.parametrize("more", [[], STEP[:1], STEP[:2], [("forward", 1), ("forward", 2)]])
def test_one_step_is_the_last_whole_one_in_the_order_of_its_lines(more):
    before = more if more and more[0][1] < 3 else []
    events = [event(*item) for item in [*before, *STEP * 3, *([] if before else more)]]
    assert [(item["kind"], item["place"]["line"]) for item in one_step(events)] == STEP


def test_events_that_do_not_repeat_are_all_shown():
    events = [event("forward", line) for line in range(10)]
    assert one_step(events) == events
    raised = [event(*item) for item in STEP * 2] + [event("backward", 9, raised=True)]
    assert one_step(raised) == raised


def test_a_verdict_with_facts_has_a_row_for_each():
    data = audited(without_zero_grad)
    data["findings"][0]["facts"] = {"wanted by": "`a.py:3 loss.backward()`", "cure": "`detach()`"}
    reader = read(data)
    assert ["".join("".join(texts) for _, texts in cells) for _, cells in reader.rows[:2]] == [
        "wanted bya.py:3 loss.backward()",
        "curedetach()",
    ]
