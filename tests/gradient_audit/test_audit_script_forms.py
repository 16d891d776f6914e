"""Forms that scripts really have: proxies, dropped networks, wrapped optimizers, steps by hand; and report files."""

import json

import pytest
from helpers import path_of
from processes import forked, program
from test_audit_script import findings, refused, table, write

AUDIT = path_of("audit_script")

PAIR = """
import torch
from torch import nn
G, D = nn.Linear(2, 2), nn.Linear(2, 1)
G_optimizer, D_optimizer = (torch.optim.SGD(net.parameters(), 0.1) for net in (G, D))
"""
LIBRARY = """
import torch

class WrappedOptimizer(torch.optim.Optimizer):  # as accelerate's and Lightning's: it has no state of its own
    def __init__(self, optimizer):
        self.optimizer = optimizer

    @property
    def param_groups(self):
        return self.optimizer.param_groups

    def zero_grad(self):
        self.optimizer.zero_grad()

    def step(self):
        self.optimizer.step()

def run_backward(loss):
    loss.backward()
"""


def run(folder, script, *arguments):
    return forked(AUDIT, *arguments, write(folder, script))


def test_proxies_and_keys_that_must_not_be_printed(tmp_path):
    """Lightning keeps proxies of modules; a dictionary may have tensors as keys."""
    script = """
import torch, weakref
class Key:
    def __repr__(self): raise RuntimeError("printed")
class Hostile:
    def __getattr__(self, name): raise ZeroDivisionError(name)
net = torch.nn.Linear(2, 1)
handle, gone = weakref.proxy(net), weakref.proxy(torch.nn.Linear(2, 1))
things, hostile = {Key(): net, 1: net}, Hostile()
optimizer = torch.optim.SGD(net.parameters(), 0.1)
for _ in range(5):
    optimizer.zero_grad()
    net(torch.ones(1, 2)).sum().backward()
    optimizer.step()
"""
    done = run(tmp_path, script)
    assert table(done) == (["net"], [("train.py:13", "3x", "used")])
    assert "Stopped after 3 steps" in done.stdout
    assert done.returncode == 0


def test_what_a_script_drops_is_no_network_and_is_not_kept_in_memory(tmp_path):
    script = """
import torch, weakref
from torch import nn
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        whole = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2), nn.Linear(2, 9))
        self.rest = weakref.ref(whole[2])
        self.features = nn.Sequential(*list(whole.children())[:-1])
        self.layers = nn.ModuleList([nn.Linear(2, 2), nn.Linear(2, 2)])
    def forward(self, x):
        x = self.features(x)
        for layer in self.layers[::1]:
            x = layer(x)
        return x
net = Net()
assert net.rest() is None
kept = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 7))  # of which only a part is used, and which stays
part = nn.Sequential(kept[0])
optimizer = torch.optim.SGD([*net.parameters(), *part.parameters()], 0.1)
for _ in range(5):
    optimizer.zero_grad()
    net(part(torch.ones(1, 2))).sum().backward()
    optimizer.step()
"""
    done = run(tmp_path, script)
    assert table(done) == (["net", "part"], [("train.py:23", "3x", "used", "used")])
    assert not findings(done)
    assert done.returncode == 0


def test_wrapped_optimizers_and_passes_inside_a_library(tmp_path):
    (tmp_path / "site-packages").mkdir()
    (tmp_path / "site-packages" / "wrapping.py").write_text(LIBRARY)
    script = f"""
import sys; sys.path.append("site-packages")
{PAIR}
from wrapping import WrappedOptimizer, run_backward as go
G_optimizer, D_optimizer = WrappedOptimizer(G_optimizer), WrappedOptimizer(D_optimizer)
for _ in range(1000):
    D_optimizer.zero_grad()
    go(D(torch.ones(4, 2)).mean())
    D_optimizer.step()
    G_optimizer.zero_grad()
    go(D(G(torch.randn(4, 2))).mean())
    G_optimizer.step()
"""
    done = run(tmp_path, script)
    rows = [("train.py:13", "3x", "-", "used"), ("train.py:16", "3x", "used", "wasted")]
    assert table(done) == (["G", "D"], rows)
    assert "`train.py:13 go(D(torch.ones(4, 2)).mean())` via wrapping.py:19" in done.stdout
    assert findings(done) == ["wasted"]
    assert "Stopped after 3 steps of every optimizer." in done.stdout


def test_a_script_that_steps_by_hand_ends_and_its_network_has_its_name(tmp_path):
    script = """
import torch
model = torch.nn.Linear(2, 1)
for i in range(2000):
    model.zero_grad()
    model(torch.ones(1, 2)).sum().backward()
    for p in model.parameters():
        p.data.add_(p.grad, alpha=-0.1)
"""
    done = run(tmp_path, script)
    assert table(done) == (["model"], [("train.py:6", "3x", "used")])
    assert "Stopped after 3 backward passes; no optimizer had stepped." in done.stdout
    assert not findings(done)


def test_an_optimizer_that_exists_and_never_steps_ends_at_the_limit_of_passes(tmp_path):
    done = run(tmp_path, PAIR + "while True:\n    D(torch.ones(1, 2)).sum().backward()\n", "--limit", 9)
    assert "Stopped after 9 backward passes; no optimizer had stepped." in done.stdout


def test_cleared_gradients_are_not_said_to_be_left_over(tmp_path):
    script = f"""{PAIR}
extra = nn.Linear(2, 2)
for _ in range(5):
    with torch.no_grad():
        fake = G(torch.randn(4, 2))
    G_optimizer.zero_grad()
    (D(G(torch.randn(4, 2))).mean() + extra(G(torch.randn(4, 2))).mean()).backward()
    G_optimizer.step()
    D_optimizer.zero_grad()
    D(fake).mean().backward()
    D_optimizer.step()
"""
    done = run(tmp_path, script)
    assert findings(done) == ["unfrozen", "wasted"]
    assert "left over at the end" not in done.stdout
    assert done.returncode == 0


def test_a_pass_that_raised_wastes_nothing(tmp_path):
    script = f"""{PAIR}
D.weight.register_hook(lambda grad: 1 / 0)
D(torch.ones(1, 2)).sum().backward()
"""
    done = run(tmp_path, script)
    assert not findings(done)
    assert done.stdout.lstrip().startswith("The script raised ZeroDivisionError: division by zero")
    assert done.returncode == 1


QUESTION = f"""{PAIR}
for _ in range(5):
    G_optimizer.zero_grad(), D_optimizer.zero_grad()
    D(G(torch.ones(1, 2))).sum().backward()  # an autoencoder, {{say}}
    G_optimizer.step(), D_optimizer.step()
"""


def test_strict_makes_questions_fail_and_the_report_is_a_file(tmp_path):
    done = run(tmp_path, QUESTION, "--output", tmp_path / "report.json")
    assert findings(done) == ["meant?"]
    assert done.returncode == 0
    assert f"The report is in {tmp_path / 'report.json'}" in done.stdout
    report = json.loads((tmp_path / "report.json").read_text())
    assert report["severity"] == "question"
    assert [network["name"] for network in report["networks"]] == ["G", "D"]
    assert report["findings"][0]["places"][0]["code"] == "D(G(torch.ones(1, 2))).sum().backward()"

    done = run(tmp_path, QUESTION, "--strict", "--output", tmp_path / "report.md")
    assert done.returncode == 1
    assert (tmp_path / "report.md").read_text() in done.stdout.lstrip()
    assert "an autoencoder" not in done.stdout.split("Cure:")[0]  # comments of the source are left out


@pytest.mark.parametrize(
    ("output", "named"), [("report.pdf", "must end in"), ("nowhere/report.md", "there is no folder")]
)
def test_a_report_that_cannot_be_written_is_refused_before_the_script_runs(
    output, named, tmp_path, monkeypatch, capsys
):
    script = write(tmp_path, "raise SystemExit('it ran')")
    assert named in refused(monkeypatch, capsys, "--output", str(tmp_path / output), str(script))


def test_a_reader_that_leaves_early_gets_no_traceback_and_the_report_is_saved(tmp_path):
    output = tmp_path / "report.json"
    script = write(tmp_path, f"{PAIR}\nG(torch.ones(1, 2)).sum().backward()\nG_optimizer.step()\n")
    with program(AUDIT, "--output", output, script) as process:
        process.stdout.close()  # as `| head -0` does
        assert process.stderr.read() == ""
        assert process.wait() == 128 + 13  # SIGPIPE
    assert json.loads(output.read_text())["script"] == str(script)
