"""The page shows what the audit knows: every event of a step, every finding with its source, and nothing else."""

from html.parser import HTMLParser
from unittest import mock

import pytest
from audited import audit_of, textbook_detach
from torch import nn

from gradient_audit import GradientAudit
from gradient_audit.history import Row, StepRow
from gradient_audit.page import one_step, page
from gradient_audit.places import Place

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


def read(audit, **texts):
    reader = Reader()
    reader.feed(page(audit, **texts))
    assert not reader.open
    return reader


def two_calls_on_a_line(generator, discriminator, optimizer_g, optimizer_d, real, z):
    real_logits, fake_logits = discriminator(real), discriminator(generator(z))
    real_logits.mean().backward()
    optimizer_d.step()
    with pytest.raises(RuntimeError):
        fake_logits.mean().backward()


def marks(cells):
    """What is drawn in the columns of the networks, as the last of a cell's classes."""
    return [kind.partition(" ")[2] for kind, _ in cells if "net" in (kind or "")]


def test_the_picture_has_a_row_for_each_event_of_one_step_and_a_mark_in_each_network_that_it_concerns():
    reader = read(audit_of(textbook_detach))
    events = [(kind, marks(cells)) for kind, cells in reader.rows if marks(cells) and kind != "term"]
    assert events[1:] == [
        ("forward", ["here", ""]),
        ("zero_grad", ["", "here"]),
        ("forward", ["", "here"]),
        ("forward", ["", "here"]),
        ("backward", ["", "used"]),
        ("step", ["", "here"]),
        ("zero_grad", ["here", ""]),
        ("forward", ["", "here"]),
        ("backward", ["used", "wasted"]),
        ("step", ["here", ""]),
    ]
    assert "Nothing wrong" in reader.text


def five_steps_of_d(generator, discriminator, optimizer_g, optimizer_d, real, z):
    for _ in range(5):
        optimizer_d.zero_grad()
        (discriminator(generator(z).detach()).mean() - discriminator(real).mean()).backward()
        optimizer_d.step()
    optimizer_g.zero_grad()
    (-discriminator(generator(z)).mean()).backward()
    optimizer_g.step()


def test_of_a_loop_with_six_passes_a_step_the_last_step_in_detail_is_drawn_with_all_its_events():
    reader = read(audit_of(five_steps_of_d, steps=4))
    assert "Step 2 of 4, up to test_audit_page.py:" in reader.text
    kinds = [kind for kind, cells in reader.rows if marks(cells)]
    assert kinds.count("zero_grad") == kinds.count("backward") == kinds.count("step") == 6
    assert (kinds.count("forward"), kinds.count("term")) == (17, 10)


def test_terms_have_the_bars_of_the_last_measured_pass_of_their_line_where_later_ones_are_not_measured():
    tags = read(audit_of(textbook_detach, steps=5)).tags
    bars = [float(bar["value"]) for tag, bar in tags if tag == "meter" and "title" in bar]  # the legend's has none
    assert (len(bars), sum(bars)) == (2, pytest.approx(1, abs=0.001))  # of D's loss, with three digits each


def test_every_finding_has_its_sentence_and_its_cure_and_the_source_of_an_error_is_shown():
    audit = audit_of(two_calls_on_a_line, steps=1)
    reader = read(audit)
    cards = reader.text.partition("\nFindings\n")[2]
    assert cards.count("Cure: ") == len(audit.findings) > 0
    for finding in audit.findings:
        assert finding.kind in cards
        assert f"{finding.text}Cure: {finding.cure}".replace("`", "") in cards
    assert "def two_calls_on_a_line(generator" in reader.text


def test_the_cells_that_an_error_names_are_wrong_and_of_two_calls_on_a_line_only_one():
    reader = read(audit_of(two_calls_on_a_line, steps=1))
    found = [marks(cells) for kind, cells in reader.rows if kind in ("forward", "step", "raised")]
    assert found == [["", "here"], ["here", ""], ["", "wrong"], ["", "wrong"], ["", "wrong"]]


def test_the_page_loads_nothing_and_runs_nothing():
    reader = read(audit_of(textbook_detach), script="<script>alert(1).py", ending="<b>&")
    assert not [tag for tag, _ in reader.tags if tag in ("script", "link", "img", "iframe", "object")]
    assert not [name for _, attributes in reader.tags for name in attributes if name in ("src", "onload")]
    ids = {f"#{attributes['id']}" for tag, attributes in reader.tags if tag == "symbol"}
    assert {attributes["href"] for _, attributes in reader.tags if "href" in attributes} <= ids
    assert "<script>alert(1).py" in reader.text


def test_an_audit_that_saw_nothing_has_a_page():
    with GradientAudit(network=nn.Linear(1, 1)) as audit:
        pass
    assert "No backward pass ran" in read(audit).text


def event(kind, line, detail=1):
    return (StepRow if kind == "step" else Row)(kind, Place("train.py", line, "train"), detail=detail)


def step(detail=1):
    return [event("forward", 3, detail), event("backward", 4, detail), event("step", 5, detail)]


SETUP = [event("forward", 1), event("forward", 2)]
STEPS = step() + step()
WHOLE = step()
LONG = [*SETUP * 50, event("step", 5)]


@pytest.mark.parametrize(
    ("events", "drawn", "which"),
    [
        ([*STEPS, *WHOLE], WHOLE, "Step 3 of 3, up to `train.py:5 `: the last one that was watched in full."),
        ([*STEPS, *WHOLE, *step()[:2]], WHOLE, "Step 3 of 3, "),
        ([*SETUP, *STEPS, *WHOLE], WHOLE, "Step 3 of 3, "),
        # The number of a row is odd while it is watched in detail: the detail ends in the third step, or pauses in it.
        ([*step(), *WHOLE, event("step", 5, 2), *step(4)], WHOLE, "Step 2 of 4, "),
        ([*step(), *WHOLE, *step(3), *step(4)], WHOLE, "Step 2 of 4, "),
        ([*step(), *WHOLE, *step()[:2], *step(2)[2:], *step(4)], WHOLE, "Step 2 of 4, "),
        ([*step(0), *step(0)], None, "Not all of it was watched in detail: forward passes, "),
        ([*step(), *LONG], LONG[-80:], "Shown are the last 80 of its 101 events."),
    ],
)
def test_one_step_is_the_last_whole_one_that_was_watched_in_detail_cut_to_the_picture(events, drawn, which):
    text, shown = one_step(events)
    assert which in text
    assert drawn is None or [*map(id, shown)] == [*map(id, drawn)]


G, D = ([event("backward", line), event("step", line)] for line in (7, 9))


@pytest.mark.parametrize("before", [[], SETUP, step() + step()])
@pytest.mark.parametrize("body", [[*G, *D, *D], [*D, *D, *G], [*G, *D]])
@pytest.mark.parametrize("rest", [0, 2])
def test_a_step_begins_where_the_loop_does_also_where_the_script_ended_within_it_or_trained_otherwise_before(
    before, body, rest
):
    which, drawn = one_step([*before, *body, *body, *body[:rest]])
    assert which.startswith(f"Step 2 of 2, up to `{body[-1].place.where}")
    assert [*map(id, drawn)] == [*map(id, body)]


def test_zero_grad_below_a_step_ends_the_drawn_step_which_is_another_one_where_the_script_ended_before_it():
    cleared, first, whole = event("zero_grad", 6), [*step(), event("zero_grad", 6)], [*step(), event("zero_grad", 6)]
    for rest in ([], step(), step()[:2]):
        assert one_step([cleared, *first, *whole, *rest])[1] == whole
    above = [event("zero_grad", 2), *step()]
    assert one_step([event("zero_grad", 2), *step(), *above])[1] == above


def test_a_loop_whose_inner_loop_makes_a_new_optimizer_each_time_is_drawn_whole():
    def body(number):
        inner = StepRow("step", Place("train.py", 7, "train"), detail=1, event=mock.Mock(optimizer=number))
        return [inner, *step()]

    first, second, third = map(body, range(1, 4))
    assert one_step([*first, *second, *third])[1] == third
