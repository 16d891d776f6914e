"""TensorBoard shows a run's pictures large enough to see, and a table of where it comes from."""

import pytest
import torch
from helpers import ROOT
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from common.board import grid


@pytest.mark.parametrize(("size", "shown"), [(63, 126), (64, 64)])
def test_twice_their_size_up_to_63_pixels(size, shown):
    assert grid(torch.zeros(2, 1, size, size, dtype=torch.uint8), columns=2).shape == (1, shown + 4, 2 * shown + 6)


def test_where_a_run_comes_from_is_a_table_without_a_path_of_this_machine(finished):
    (event,) = EventAccumulator(str(finished)).Reload().Tensors("run/text_summary")
    (text,) = event.tensor_proto.string_val
    table = dict(line.strip("| ").split(" | ", 1) for line in text.decode().splitlines()[2:])
    assert (table["batch_size"], table["model"], table["device"]) == ("4", "mlp", "cpu")
    assert table["versions"].startswith("torch ")
    assert {"command", "commit"} < table.keys()
    assert str(ROOT / "scripts") not in text.decode()
