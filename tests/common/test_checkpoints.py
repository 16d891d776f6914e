"""What is no checkpoint of a run is refused in one line, changes nothing, and nothing in it is executed."""

import io
import os
import pickle
import re
import shutil
import signal
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from helpers import SMALL, change, contents, load, open_run, steps_of
from hypothesis import given, settings
from hypothesis import strategies as st

from common.checkpoint import as_bytes, check_state, finite_states, load_state, settings_in, write_whole
from common.errors import BadInput, Stopped
from common.optimizers import fused_adam
from scripts.tools import sample


class Attack:
    def __init__(self, path):
        self.path = path.with_name("executed")

    def __reduce__(self):
        return Path.touch, (self.path,)


def test_a_checkpoint_with_a_changed_bit_in_a_weight_is_refused(copied, refusal):
    path = copied / "checkpoint.pt"
    weight = next(iter(load(copied)["generator"].values())).numpy().tobytes()
    content = bytearray(path.read_bytes())
    content[content.index(weight)] ^= 1  # torch.load would take it as it is
    path.write_bytes(content)
    assert "is damaged; take a copy of the file, or an earlier run" in refused("sample", copied, refusal)


def file_of(content):
    return lambda path: path.write_bytes(content)


def cut_to(length):
    return lambda path: path.write_bytes(path.read_bytes()[:length])


def with_facts(**facts):
    return lambda path: change(path.parent, lambda checkpoint: checkpoint.update(facts))


FILES = {
    "empty": file_of(b""),
    "text": file_of(b"this is not a checkpoint\n"),
    "a pickle": file_of(pickle.dumps({"script": "gan_detach"})),
    "another program's": file_of(as_bytes({"model": {"weight": torch.zeros(3)}, "epoch": 3})),
    "without its last 10,000 bytes": cut_to(-10_000),
    "no script": lambda path: change(path.parent, lambda c: c.pop("script")),
    "no options": with_facts(options=None),
    "no data shapes": with_facts(data_shapes=None),
    "step of text": with_facts(step="3"),
    "a step before the first": with_facts(step=-1),
    "code": lambda path: change(path.parent, lambda c: c.update(options=Attack(path))),
    "a pickle of code": lambda path: path.write_bytes(pickle.dumps(Attack(path))),
}


@pytest.mark.parametrize("script", ["gan_detach", "sample"])
@pytest.mark.parametrize("what", FILES)
def test_what_is_no_checkpoint_is_refused_and_code_in_it_is_not_run(what, script, copied, refusal):
    path = copied / "checkpoint.pt"
    FILES[what](path)
    assert refused(script, copied, refusal).startswith(f"error: {path}: cannot be read as a checkpoint of these")


def refused(script, run, refusal):
    """Return the one line that refuses the run's checkpoint; the folder stays as it was."""
    before = contents(run)
    arguments = ["--resume", run, "--steps", 9] if script != "sample" else [run, "--device", "cpu"]
    line = refusal(script, *arguments)
    assert contents(run) == before
    return line


OPTIONS = [({"steps": "x"}, "steps"), ({"lr": float("nan")}, "lr=nan"), ({"model": "vgg"}, "model")]
OPTIONS += [({"z_dim": 2**40}, "z-dim=1099511627776"), ({"device": "tpu"}, "device tpu")]
WRONG = [({"options": options}, named) for options, named in OPTIONS]
WRONG += [({"sums": sums}, "its sums of the curves are damaged") for sums in (None, [1], {"a": "b"}, {"a": (None, 1)})]


@pytest.mark.parametrize(("entries", "named"), WRONG)
def test_options_and_sums_in_a_checkpoint_are_checked_before_a_run_is_resumed(entries, named, copied, refusal):
    change(copied, lambda c: c.update(entries | {"options": c["options"] | entries.get("options", {})}))
    assert named in refused("gan_detach", copied, refusal)


UNFIT = [{"options": {"z_dim": 2**40, "model": "mlp"}}, {"options": {"z_dim": 64, "model": "conv"}}, {"options": {}}]
UNFIT += [{"data_shapes": shapes} for shapes in ([], [[4000, 1, -8, 8]], [[4000, 1, 2**20, 2**20]])]
UNFIT += [{"average": None, "generator": None}, {"a_to_b": {}, "b_to_a": {}}, {"image_checksums": 5}]


@pytest.mark.parametrize("entries", UNFIT)
def test_sampling_refuses_options_and_shapes_that_are_not_those_of_the_weights(entries, copied, refusal):
    change(copied, lambda c: c.update(entries))
    assert str(copied) in refused("sample", copied, refusal)


def first(state):
    return next(iter(state))


WRONG_STATES = [
    ("generator", lambda c: c.pop("generator")),
    ("discriminator", lambda c: c.update(discriminator=[1, 2])),
    ("generator", lambda c: c["generator"].pop(first(c["generator"]))),
    ("generator", lambda c: c["generator"].update({first(c["generator"]): torch.zeros(3)})),
    ("optimizer_g", lambda c: c["optimizer_g"].clear()),
    ("optimizer_g", lambda c: c["optimizer_g"]["state"].update({99: c["optimizer_g"]["state"][0]})),
    ("optimizer_g", lambda c: c["optimizer_g"]["state"][0].pop("exp_avg")),
    ("optimizer_g", lambda c: c["optimizer_g"]["state"][0].update(exp_avg=torch.zeros(3))),
    ("optimizer_g", lambda c: c["optimizer_g"]["state"].update({0: None})),
    ("optimizer_g", lambda c: c["optimizer_g"]["param_groups"][0].update(betas="x")),
    ("optimizer_d", lambda c: c.update(optimizer_d=c["optimizer_g"])),
    ("pool_a", lambda c: c.pop("pool_a")),
    ("pool_a", lambda c: c["pool_a"].update(images=torch.zeros(51, 1, 28, 28))),
    ("average_a_to_b", lambda c: c["average_a_to_b"].clear()),
]


@pytest.mark.parametrize(("name", "make"), WRONG_STATES)
def test_a_state_of_other_names_shapes_or_dtypes_is_refused_before_anything_is_changed(
    name, make, finished, finished_cyclegan, tmp_path, refusal
):
    script = "cyclegan" if name.startswith(("pool", "average_a")) else "gan_detach"
    run = shutil.copytree(finished_cyclegan if script == "cyclegan" else finished, tmp_path / "run")
    change(run, make)
    line = refused(script, run, refusal)
    assert f"{run}: does not hold this {name}; networks or options may have changed since: " in line


def test_initial_weights_from_a_checkpoint_that_names_no_averages_are_refused_by_that(copied, refusal):
    change(copied, lambda c: c.pop("averages"))
    assert refusal("gan_detach", *SMALL, "--init-from", copied).endswith("it lacks 'averages'")


@settings(max_examples=40)
@given(place=st.floats(0, 1, exclude_max=True), flipped=st.integers(1, 255))
def test_a_flipped_byte_is_refused_in_words_or_does_no_harm(place, flipped, finished, tmp_path_factory):
    content = bytearray((finished / "checkpoint.pt").read_bytes())
    content[int(place * len(content))] ^= flipped
    path = tmp_path_factory.mktemp("flipped") / "checkpoint.pt"
    path.write_bytes(content)
    try:
        sample.main(sample.Options(path, count=2, output=path.with_name("images.npz"), device="cpu"))
        assert np.load(path.with_name("images.npz"))["images"].shape == (2, 1, 8, 8)
    except BadInput as error:
        assert str(error).startswith(str(path))


def test_a_resumed_run_has_the_same_parts_and_the_same_kind_of_optimizer(tmp_path):
    network = torch.nn.Linear(1, 1)
    state = {"network": network, "optimizer": torch.optim.SGD(network.parameters(), lr=0.1)}
    with open_run(tmp_path, steps=1) as run:
        for step, *_ in run.steps(state=state, pictures={}):
            run.log(step, {})
    others = {"network": network, "optimizer": torch.optim.Adam(network.parameters())}, {"network": network}
    for other, message in zip(others, ("its setting 'betas' is another", "also has optimizer, which"), strict=True):
        with pytest.raises(BadInput, match=message):
            next(steps_of(tmp_path, steps=2, resume=run.folder, state=other))


def test_parts_that_an_older_run_has_are_asked_for_and_counts_of_several_processes_may_be_no_whole_numbers():
    facts = dict.fromkeys(("data_shapes", "data_types", "classes", "label_checksums", "settings"))
    stored = {"settings": {}, "sums": {"loss/odd": (1.0, 0.5)}}
    assert load_state({}, stored, facts, Path("run")) == {"loss/odd": (1.0, 0.5)}
    with pytest.raises(BadInput, match="its checkpoint also has average, which `state` lacks"):
        load_state({}, stored | {"average": {"weight": torch.zeros(1)}}, facts, Path("run"))


def test_an_option_that_no_checkpoint_can_hold_and_one_whose_name_it_has_are_refused():
    # Without torch's advice to trust the file.
    with pytest.raises(BadInput, match=r"options: cannot be in a checkpoint; take numbers, .* by default\.$"):
        check_state({}, {"options": {"mode": signal.SIGTERM}})
    with pytest.raises(BadInput, match="options: a checkpoint has a commit of its own; give yours another name"):
        check_state({}, {"options": {"commit": 1, "device": "cpu"}, "commit": "0", "device": "cpu"})


def test_a_part_of_the_state_cannot_have_the_name_of_anything_else_in_a_checkpoint(tmp_path):
    list(steps_of(tmp_path, steps=1))
    (run,) = tmp_path.glob("script/*")
    for name in load(run):
        with pytest.raises(BadInput, match=f"state '{name}': cannot be in a checkpoint: the name is taken"):
            next(steps_of(tmp_path, state={name: torch.nn.Linear(1, 1)}))


@pytest.mark.parametrize(("edit", "line"), [({"lr": 0.2}, "lr of group 1 is 0.2, but"), ({"nesterov": True}, "nest")])
def test_settings_of_each_group_of_an_optimizer_are_those_of_the_run_but_a_schedule_changes_them(edit, line, tmp_path):
    def state(**given):
        network = torch.nn.Linear(1, 1)
        groups = [{"params": [network.weight]}, {"params": [network.bias]} | given]
        return {"network": network, "optimizer": torch.optim.SGD(groups, lr=0.1, momentum=0.9)}

    with open_run(tmp_path, steps=1) as run:
        first = state()
        for step, *_ in run.steps(state=first, pictures={}):
            first["optimizer"].param_groups[1]["lr"] = 0.05
            run.log(step, {})
    next(steps_of(tmp_path, steps=2, resume=run.folder, state=state()))
    with pytest.raises(BadInput, match=f"{line}.*; or take --init-from"):
        next(steps_of(tmp_path, steps=2, resume=run.folder, state=state(**edit)))


def test_settings_that_the_loop_fills_in_or_makes_tensors_are_those_of_a_run_to_resume(tmp_path):
    def state():
        network = torch.nn.Linear(1, 1)
        return {"network": network, "optimizer": torch.optim.SGD([{"params": network.parameters(), "estimate": None}])}

    with open_run(tmp_path, steps=1) as run:
        first = state()
        for step, *_ in run.steps(state=first, pictures={}):
            first["optimizer"].param_groups[0] |= {"lr": torch.tensor(0.5), "estimate": 2.0}
            run.log(step, {})
    again = state()
    next(steps_of(tmp_path, steps=2, resume=run.folder, state=again))
    assert again["optimizer"].param_groups[0]["estimate"] == 2


FACTS = dict.fromkeys(("data_shapes", "data_types", "classes", "label_checksums"))
OPTIMIZERS = [torch.optim.Adagrad, torch.optim.Adafactor, torch.optim.NAdam, torch.optim.RMSprop, torch.optim.SGD]


@pytest.mark.parametrize("kind", [*OPTIMIZERS, partial(fused_adam, betas=(0.0, 0.9)), torch.optim.AdamW])
def test_the_state_of_any_optimizer_of_pytorch_is_loaded_with_a_rate_that_a_schedule_has_changed(kind, tmp_path):
    network = torch.nn.Conv2d(3, 4, 3).to(memory_format=torch.channels_last)
    optimizer, other = (kind(network.parameters(), lr=0.1) for _ in range(2))
    network(torch.ones(1, 3, 3, 3)).sum().backward()
    optimizer.step()
    optimizer.param_groups[0]["lr"] = 0.05
    state = torch.load(io.BytesIO(as_bytes(optimizer.state_dict())), weights_only=True)
    for entry in state["state"].values():  # in another layout, as a file of another program may have them
        entry |= {name: value.contiguous() for name, value in entry.items() if name.startswith("exp_avg")}
    facts = FACTS | {"settings": settings_in({"optimizer": other})}  # as at the start of both runs
    load_state({"optimizer": other}, facts | {"optimizer": state, "sums": {}}, facts, tmp_path)
    assert other.param_groups[0]["lr"] == 0.05
    loaded, expected = (each.state_dict()["state"] for each in (other, optimizer))
    is_fused = isinstance(kind, partial)  # and relies on the layout
    torch.testing.assert_close(loaded, expected, rtol=0, atol=0, check_stride=is_fused)


def test_a_file_is_on_the_disk_before_it_gets_its_name(tmp_path, monkeypatch):
    done, fsync, replace = [], os.fsync, Path.replace
    monkeypatch.setattr(os, "fsync", lambda number: [done.append("fsync"), fsync(number)])
    monkeypatch.setattr(Path, "replace", lambda path, name: [done.append("replace"), replace(path, name)])
    write_whole(tmp_path / "file", b"content")
    assert done == ["fsync", "replace"]
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("file", b"content")]


def test_a_mask_may_be_infinite_and_no_number_of_the_state_nan_or_a_weight_infinite():
    network = torch.nn.Linear(2, 2)
    network.register_buffer("mask", torch.nn.Transformer.generate_square_subsequent_mask(2))
    optimizer = torch.optim.Adam(network.parameters())
    network(torch.ones(1, 2)).sum().backward()
    optimizer.step()

    class Best:  # an object of the script's own
        def state_dict(self):
            return {"loss": torch.tensor(float("inf"))}

    state = {"network": network, "optimizer": optimizer, "best": Best()}
    finite_states(state, 3)
    moments = "optimizer['state'][0]['exp_avg_sq']"
    for tensor, value, name in (
        (network.mask, float("nan"), "network['mask']"),
        (network.bias.data, float("inf"), "network['bias']"),
        (optimizer.state[network.weight]["exp_avg_sq"], float("inf"), moments),
    ):
        before = tensor.clone()
        tensor.view(-1)[0] = value
        with pytest.raises(Stopped, match=re.escape(f"step 3: {name} is not finite")):
            finite_states(state, 3)
        tensor.copy_(before)


def test_rates_that_are_tensors_are_compared_in_all_their_digits():
    def settings(rate):
        optimizer = torch.optim.SGD([torch.zeros(1)], lr=torch.tensor(rate))
        return settings_in({"optimizer": optimizer})["optimizer"]["lr of group 0"]

    assert float(settings(0.00104)) == pytest.approx(0.00104)
    assert settings(0.001) != settings(0.00104)
