"""Whatever raises inside the audit ends the watching, not the script, whose numbers and errors stay the same."""

import copy
from types import FunctionType

import pytest
import torch
from torch import nn
from torch.utils import _python_dispatch

from gradient_audit import (
    GradientAudit,
    GradientFlowError,
    cells,
    findings,
    graph,
    judge,
    lineage,
    networks,
    operations,
    overwritten,
    places,
    private,
    watch,
)
from gradient_audit.guard import guarded
from gradient_audit.networks import FoundNetworks

pytestmark = pytest.mark.usefixtures("few_objects")

MODULES = (cells, findings, graph, judge, lineage, networks, operations, overwritten, places, watch)
# What calls the user's code itself, adds or removes the hooks, or is for the report, after the audit.
OUTER = """__init__ __torch_dispatch__ is_infra_mode after_step call_autograd expect_parameters is_elsewhere pause
    paused resume remove_hooks start stop watched_backward watched_compile watched_grad watched_init watched_zero_grad
    _leave_forked_process __str__ _source code data line lines severity where"""


def functions():
    """Every function of the audit that a hook runs: its name, and where it is found."""
    found = {}
    for module in MODULES:
        for thing in vars(module).values():
            if getattr(thing, "__module__", "") != module.__name__:
                continue
            for owner in [thing] if isinstance(thing, type) else []:
                for name, method in vars(owner).items():
                    if isinstance(method, FunctionType) and name not in OUTER.split():
                        found[f"{owner.__name__}.{name}"] = [(owner, name)]
            if callable(thing) and not isinstance(thing, type) and thing.__name__ not in OUTER.split():
                users = [(user, name) for user in MODULES for name, value in vars(user).items() if value is thing]
                found[thing.__name__] = users
    return found


FUNCTIONS = functions()
HARMLESS = guarded(print).__code__


def replaced():
    mode = _python_dispatch._get_current_dispatch_mode()
    optimizer = torch.optim.Optimizer
    return (
        torch.autograd.backward,
        torch.autograd.grad,
        nn.Module.__setstate__,
        optimizer.__init__,
        optimizer.zero_grad,
        mode,
    )


def train():
    """Train in many ways; return the weights and the errors."""
    torch.manual_seed(0)
    generator = nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, 2))
    average, critic = copy.deepcopy(generator), nn.Sequential(nn.Linear(2, 4), nn.Tanh(), nn.Linear(4, 1))
    optimizers = torch.optim.SGD(generator.parameters(), 0.1), torch.optim.Adam(critic.parameters())
    errors = []
    for _ in range(2):
        for optimizer in optimizers:
            optimizer.zero_grad()
        fake = generator(torch.randn(5, 2))
        (slope,) = torch.autograd.grad(critic(fake).sum(), fake, create_graph=True)
        (critic(fake.detach()).mean() + slope.square().mean() + 1).backward(retain_graph=True)
        optimizers[1].step()
        try:
            critic(fake).mean().backward(retain_graph=True)
            kept = fake.exp()
            kept.mul_(2)
            kept.sum().backward()
        except RuntimeError as error:
            errors.append(str(error))
        optimizers[0].step(lambda: torch.zeros(()))
        with torch.no_grad():
            for kept, new in zip(average.parameters(), generator.parameters(), strict=True):
                kept.lerp_(new, 0.5)
    return [p.tolist() for net in (generator, average, critic) for p in net.parameters()], errors


@pytest.mark.parametrize("name", FUNCTIONS)
def test_an_audit_that_raises_changes_nothing_and_says_that_it_gave_up(monkeypatch, name):
    private.missing_parts()  # once in a process: else it is what breaks
    expected, calls, counted = train(), [], []

    def broken(*_, **__):
        calls.append(name)
        raise ZeroDivisionError("this is broken")

    for owner, attribute in FUNCTIONS[name]:
        code = getattr(getattr(owner, attribute), "__code__", None)
        monkeypatch.setattr(owner, attribute, guarded(broken) if code is HARMLESS else broken)
    before = replaced()
    with GradientAudit.of_provider(FoundNetworks(), lambda _, optimizer: counted.append(optimizer)) as audit:
        assert train() == expected
    assert replaced() == before
    if name != "Watcher.add_hooks":
        assert len(counted) == 4 + 6  # steps, and passes: what ends the script goes on
    assert len(calls) <= 1
    assert bool(calls) == bool(audit.failure)
    if calls:
        assert "The audit gave up: ZeroDivisionError: this is broken (" in str(audit)
        assert audit.severity == "error"
        assert not audit.findings
        with pytest.raises(GradientFlowError, match="gave up"):
            audit.check()


@pytest.fixture
def anew():
    """Try PyTorch's private names again, before and after a test."""
    private.missing_parts.cache_clear()
    yield
    private.missing_parts.cache_clear()


def unpatched(optimizer):
    optimizer._zero_grad_profile_name = "zero_grad"


def raising(*_):
    raise AttributeError("no such name")


@pytest.mark.parametrize(
    ("owner", "name", "parts"),
    [
        (torch.autograd, "_get_sequence_nr", [private.OPERATIONS, private.OVERWRITTEN]),
        (_python_dispatch, "_get_current_dispatch_mode", [private.OPERATIONS, private.OVERWRITTEN]),
        (lineage, "SUMS", [private.OPERATIONS]),  # nodes have other names
        (torch._C._functorch, "get_unwrapped", [private.OPERATIONS]),
        (torch._C._functorch, "is_functorch_wrapped_tensor", [private.OPERATIONS]),
        (overwritten, "changed_saved_tensors", [private.OVERWRITTEN]),  # `_raw_saved_*` of the nodes
        (torch.optim.Optimizer, "_patch_step_function", [private.WAITING]),
        (torch._dynamo.eval_frame.OptimizedModule, "__init__", [private.COMPILED]),  # `_orig_mod`
    ],
)
def test_where_pytorch_lacks_a_private_name_the_audit_goes_on_and_says_what_is_missing(
    monkeypatch, anew, owner, name, parts
):
    expected = train()
    monkeypatch.setattr(owner, name, {"SUMS": (), "_patch_step_function": unpatched}.get(name, raising))
    if name == "_patch_step_function":
        monkeypatch.delattr(torch.optim.SGD.step, "hooked")
    with GradientAudit.of_provider(FoundNetworks()) as audit:
        outcome = train()
    monkeypatch.undo()
    assert outcome == expected
    assert audit.missing == parts
    assert not audit.failure
    assert f"the audit does not see {findings.joined(parts)}." in str(audit)
    assert audit.passes


def test_the_pytorch_of_these_tests_lacks_none_of_them(anew):
    assert private.missing_parts() == []
