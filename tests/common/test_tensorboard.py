"""A running TensorBoard serves what a run wrote: curves, charts, pictures and the run's text, by run name."""

import io
import json
import re
import urllib.parse
import urllib.request

import pytest
import torch
from helpers import ROOT
from PIL import Image
from processes import PATIENCE, wait_until
from tensorboard import program
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from common.board import charts
from common.options import GanOptions
from scripts import gan_detach, gan_resample

RUNS = ["detach", "resample"]


@pytest.fixture(scope="module")
def board(tmp_path_factory):
    """Two runs, and the address of a TensorBoard that shows them."""
    folder = tmp_path_factory.mktemp("board")
    for name, script in zip(RUNS, (gan_detach, gan_resample), strict=True):
        options = {"model": "mlp", "batch_size": 4, "steps": 4, "log_every": 2, "device": "cpu"}
        script.main(GanOptions(runs_dir=folder / name, **options))
    server = program.TensorBoard()
    server.configure(logdir=str(folder), port=0, host="127.0.0.1", load_fast="false")
    address = server.launch()
    wait_until(lambda: len(get(address, "runs")) == len(RUNS) and get(address, "plugin/images/tags"))
    return folder, address


def fetch(address, path, **query):
    with urllib.request.urlopen(f"{address}data/{path}?{urllib.parse.urlencode(query)}", timeout=PATIENCE) as answer:
        return answer.read()


def get(address, path, **query):
    return json.loads(fetch(address, path, **query))


def run_named(address, name):
    return next(run for run in get(address, "runs") if run.startswith(name))


@pytest.mark.parametrize("name", RUNS)
def test_curves_are_served_with_the_values_that_the_run_wrote(board, name):
    folder, address = board
    (events,) = (folder / name).glob("*/*/events*")
    written = EventAccumulator(str(events)).Reload()
    run = run_named(address, name)
    tags = get(address, "plugin/scalars/tags")[run]
    assert set(tags) == set(written.Tags()["scalars"])
    for tag in tags:
        served = get(address, "plugin/scalars/scalars", run=run, tag=tag)
        assert [point[1:] for point in served] == [[e.step, pytest.approx(e.value)] for e in written.Scalars(tag)]


@pytest.mark.parametrize("name", RUNS)
def test_pictures_are_served_large_enough_to_see(board, name):
    _, address = board
    run = run_named(address, name)
    assert set(get(address, "plugin/images/tags")[run]) == {"images/samples", "real"}
    for tag in ("images/samples", "real"):
        for image in get(address, "plugin/images/images", run=run, tag=tag, sample=0):
            data = fetch(address, "plugin/images/individualImage?" + image["query"] + "&")
            assert Image.open(io.BytesIO(data)).size == (8 * 58 + 2, 8 * 58 + 2)


@pytest.mark.parametrize("name", RUNS)
def test_where_a_run_comes_from_is_served_as_a_table_without_a_path_of_this_machine(board, name):
    _, address = board
    run = run_named(address, name)
    assert get(address, "plugin/text/tags")[run] == ["run/text_summary"]
    (text,) = (answer["text"] for answer in get(address, "plugin/text/text", run=run, tag="run/text_summary"))
    assert "<table>" in text
    assert "<td>batch_size</td>\n<td>4</td>" in text
    assert f"<td>torch {torch.__version__}, Python" in text
    for fact in ("command", "commit", "device"):
        assert f"<td>{fact}</td>" in text
    assert str(ROOT / "scripts") not in text


def test_curves_that_are_read_together_share_a_chart(board):
    _, address = board
    layout = get(address, "plugin/custom_scalars/layout")
    (category,) = layout["category"]
    charts = {chart["title"]: chart["multiline"]["tag"] for chart in category["chart"]}
    assert set(charts) == {"loss", "probability"}
    for title, tags in {
        "loss": {"loss/discriminator", "loss/generator"},
        "probability": {"probability/real", "probability/fake"},
    }.items():
        (expression,) = charts[title]
        answer = get(address, "plugin/custom_scalars/scalars", run=run_named(address, "detach"), tag=expression)
        assert answer["regex_valid"]
        assert set(answer["tag_to_events"]) == tags


def test_wasserstein_losses_have_a_chart_of_their_own():
    layout = charts(["loss/generator", "loss/wasserstein/critic", "penalty"])["training"]
    tags = {
        group: [tag for tag in ("loss/generator", "loss/wasserstein/critic") if re.search(expression, tag)]
        for group, (_, (expression,)) in layout.items()
    }
    assert tags == {"loss": ["loss/generator"], "loss/wasserstein": ["loss/wasserstein/critic"]}
