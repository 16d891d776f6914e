"""What each of several processes does: its rows of the batch and noise, its device, its turn to write."""

import time
from types import SimpleNamespace

import pytest
import torch
import torch.distributed as dist
from helpers import open_run
from hypothesis import given
from hypothesis import strategies as st
from processes import ended, logs, start_ranks

from common import data
from common.errors import BadInput
from common.launch import pick_device
from common.ranks import Ranks

IMAGES = torch.zeros(8, 1, 8, 8, dtype=torch.uint8)


def rank_of(rank, count, batch_size):
    """The ranks as one of `count` processes sees them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dist, "is_initialized", lambda: True)
        patch.setattr(dist, "get_rank", lambda: rank)
        patch.setattr(dist, "get_world_size", lambda: count)
        return Ranks(batch_size)


@given(st.integers(1, 9), st.integers(1, 20))
def test_the_local_rows_are_the_batch_cut_into_equal_parts(count, size):
    batch = torch.arange(count * size)
    parts = [batch[rank_of(rank, count, len(batch)).rows] for rank in range(count)]
    assert torch.cat(parts).equal(batch)
    assert {len(part) for part in parts} == {size}


def test_a_batch_that_cannot_be_cut_into_equal_parts_is_refused():
    with pytest.raises(BadInput, match="--batch-size 7: must be 1 or more, a multiple of the 2 processes"):
        rank_of(0, 2, 7)
    with pytest.raises(BadInput, match="--batch-size 0: must be 1 or more"):  # of an option without a range
        rank_of(0, 1, 0)


def test_sparse_gradients_of_several_processes_are_refused():
    embedding = torch.nn.Embedding(3, 2, sparse=True)
    embedding(torch.tensor([1])).sum().backward()
    with pytest.raises(BadInput, match="sparse gradients cannot be averaged"):
        rank_of(0, 2, 8).average_gradients(torch.optim.SparseAdam(embedding.parameters()))


def train_with_own_seeds(folder):
    """Draw weights, and make images, that differ by rank."""
    rank = Ranks(8).rank
    torch.manual_seed(rank)
    network = torch.nn.Linear(2, 2)
    with open_run(folder, batch_size=8) as run:
        for step, _ in run.steps(IMAGES + rank, state={"network": network}, pictures={}):
            run.log(step, {"x": 1.0})
    torch.save(network.state_dict(), folder / f"weights-{rank}")


def test_ranks_begin_with_the_weights_of_rank_0_and_a_line_says_that_their_images_differ(tmp_path):
    assert ended(start_ranks(2, tmp_path, train_with_own_seeds, tmp_path)) == [0, 0], logs(tmp_path, 2)
    first, second = (torch.load(path) for path in sorted(tmp_path.glob("weights-*")))
    torch.manual_seed(0)
    assert first["weight"].equal(torch.nn.Linear(2, 2).weight) and first["weight"].equal(second["weight"])
    note = "note: as many images as in process 1, but not the same to the bit"
    assert [text.count(note) for text in logs(tmp_path, 2)] == [1, 0]


def step_without_some_gradients(folder):
    """Skip layers by rank: of four equal ones, 0 alone in rank 0, 0 and 1 in rank 1; none has a gradient in 3."""
    torch.manual_seed(0)
    layers = torch.nn.ModuleList(torch.nn.Linear(2, 2, bias=False) for _ in range(4))
    optimizer, ranks = torch.optim.SGD(layers.parameters(), lr=1.0), Ranks(8)
    optimizer.register_step_pre_hook(ranks.average_gradients)
    for number in ([1, 2], [2])[ranks.rank]:
        layers[number].weight.grad = torch.full((2, 2), 1.0 + ranks.rank)
    optimizer.step()
    grads = [layer.weight.grad if layer.weight.grad is None else layer.weight.grad[0, 0].item() for layer in layers]
    torch.save((grads, layers.state_dict()), folder / f"layers-{ranks.rank}")


def test_a_weight_without_a_gradient_in_some_ranks_gets_the_mean_in_all_and_one_without_in_all_gets_none(tmp_path):
    assert ended(start_ranks(2, tmp_path, step_without_some_gradients, tmp_path)) == [0, 0], logs(tmp_path, 2)
    (grads, first), (others, second) = (torch.load(path) for path in sorted(tmp_path.glob("layers-*")))
    assert grads == others == [None, 0.5, 1.5, None]
    assert all(first[name].equal(second[name]) for name in first)


def train_by_hand(folder):
    """Change weights without an optimizer, of one network the same way in all ranks, of another by a bit in rank 1."""
    with open_run(folder, batch_size=8, steps=4, checkpoint_every=2) as run:
        state = {"alike": torch.nn.BatchNorm1d(2), "apart": torch.nn.BatchNorm1d(2)}
        for step, _ in run.steps(IMAGES, state=state, pictures={}):
            state["alike"].running_mean.fill_(run.ranks.rank)  # no weight: each has that of its own images
            state["alike"].weight.data -= 0.1
            state["apart"].weight.data[step > 2] += run.ranks.rank * torch.finfo().eps
            run.log(step, {"x": 1.0})


def test_weights_that_are_no_more_the_same_in_all_ranks_are_told_as_a_checkpoint_is_saved(tmp_path):
    assert ended(start_ranks(2, tmp_path, train_by_hand, tmp_path)) == [0, 0], logs(tmp_path, 2)
    first, second = logs(tmp_path, 2)
    notes = [line for line in (first + second).splitlines() if line.startswith("note: ")]
    assert notes == ["note: apart has other weights in another process; rank 0's are saved: docs/processes.md"]


def sum_by_name(folder):
    ranks = Ranks(8)
    sums = [{"a": (torch.tensor(4.0), 2), "b": (1.0, 1)}, {"b": (3.0, 1), "c": (5.0, 1), "a": (2.0, 4)}][ranks.rank]
    torch.save(ranks.mean_sums(sums, torch.device("cpu")), folder / f"means-{ranks.rank}")


def test_sums_of_the_curves_are_averaged_by_name_also_where_a_rank_lacks_one(tmp_path):
    assert ended(start_ranks(2, tmp_path, sum_by_name, tmp_path)) == [0, 0], logs(tmp_path, 2)
    first, second = (torch.load(path) for path in sorted(tmp_path.glob("means-*")))
    assert first == second == {"a": (3.0, 3.0), "b": (2.0, 1.0), "c": (2.5, 0.5)}


def test_one_of_several_processes_that_torchrun_did_not_start_is_refused(monkeypatch):
    """Each would train a run of its own, as if it were alone."""
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(BadInput, match=r"WORLD_SIZE=2: torchrun alone starts several"):
        Ranks(8)


def test_what_a_step_draws_itself_is_a_function_of_seed_step_and_rank_and_noise_is_that_of_one_process(tmp_path):
    for count in (1, 2, 2):
        folder = tmp_path / str(len(list(tmp_path.iterdir())))
        folder.mkdir()
        assert ended(start_ranks(count, folder, draw_in_steps, folder)) == [0] * count, logs(folder, count)
    (alone,), first, again = (
        [torch.load(path) for path in sorted(folder.glob("drawn*"))] for folder in sorted(tmp_path.iterdir())
    )
    assert torch.cat([drawn["noise"] for drawn in first], dim=1).equal(alone["noise"])
    assert all(one[name].equal(other[name]) for one, other in zip(first, again, strict=True) for name in one)
    everything = torch.stack([drawn["own"] for drawn in first]).flatten()
    assert len(everything.unique()) == len(everything)
    assert first[0]["own"].equal(alone["own"])


def draw_in_steps(folder):
    with open_run(folder) as run:
        steps = run.steps(IMAGES, state={"scaler": torch.amp.GradScaler("cpu", enabled=False)}, pictures={})
        drawn = [(run.noise(len(real), 8), torch.rand(2)) for _, real in steps]
    noise, own = (torch.stack(part) for part in zip(*drawn, strict=True))
    torch.save({"noise": noise, "own": own}, folder / f"drawn{run.ranks.rank}")


def train_without_averaging(folder):
    optimizer_g, optimizer_d = (torch.optim.SGD(torch.nn.Linear(2, 3).parameters()) for _ in range(2))
    with open_run(folder) as run:
        with pytest.raises(BadInput, match="scaler: loss scales of several processes differ"):
            next(run.steps(IMAGES, state={"scaler": torch.amp.GradScaler("cpu")}, pictures={}))
        optimizer_g.register_step_pre_hook(run.ranks.average_gradients)
        optimizer_d.register_step_pre_hook(lambda *_: None)
        optimizer_d.register_step_pre_hook(run.ranks.average_gradients)  # not the first
        next(run.steps(IMAGES, state={"optimizer_g": optimizer_g, "optimizer_d": optimizer_d}, pictures={}))


def test_an_optimizer_whose_gradients_are_not_averaged_first_is_refused_by_each_process(tmp_path):
    assert ended(start_ranks(2, tmp_path, train_without_averaging, tmp_path)) == [1, 1]
    for log in logs(tmp_path, 2):
        assert "optimizer_d: register run.ranks.average_gradients as its first step pre-hook" in log


def test_one_process_downloads_while_the_others_wait(tmp_path):
    assert ended(start_ranks(3, tmp_path, download_slowly, tmp_path / "data")) == [0, 0, 0], logs(tmp_path, 3)


def download_slowly(path):
    def dataset(*_, **__):
        if not path.exists():
            time.sleep(0.5)
            path.mkdir()  # fails for the second
        return SimpleNamespace(data=torch.zeros(2, 8, 8), targets=[0, 1], classes=["a", "b"])

    Ranks(3)
    data.TORCHVISION["mnist"] = dataset
    data.load_dataset("mnist")


def test_each_process_takes_the_cuda_device_of_its_number_or_is_refused(monkeypatch):
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "99")
    monkeypatch.setenv("LOCAL_RANK", "98")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    for name in (None, "cuda"):
        with pytest.raises(Exception, match=r"--device cuda:98: cannot be used on this machine"):
            pick_device(name)
    assert pick_device("cpu").type == "cpu"
