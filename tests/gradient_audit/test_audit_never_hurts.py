"""What raises inside the audit ends the watching, not the script; nothing is left behind; one thread, one audit."""

import copy
import gc
import importlib
import pkgutil
import threading
import weakref
from contextlib import nullcontext
from types import FunctionType

import pytest
import torch
from audited import D_ONLY, audit_of, batch, cells, make_all, make_networks, textbook_detach
from torch import nn
from torch.optim import optimizer as torch_optimizer
from torch.utils import _python_dispatch

import gradient_audit
from gradient_audit import GradientAudit, GradientFlowError, rules, watch
from gradient_audit.watch.guard import guarded
from gradient_audit.watch.watcher import Watcher

pytestmark = pytest.mark.usefixtures("few_objects")

AROUND = ("__main__", "audit", "explaining", "mistakes", "page", "report", "script", "watch")  # no hook, no judgement
NAMES = [file.name for file in pkgutil.iter_modules(gradient_audit.__path__) if file.name not in AROUND]
NAMES += [f"rules.{file.name}" for file in pkgutil.iter_modules(rules.__path__)]
NAMES += [f"watch.{file.name}" for file in pkgutil.iter_modules(watch.__path__) if file.name != "guard"]
MODULES = [importlib.import_module(f"gradient_audit.{name}") for name in NAMES]
# What calls the user's code itself, adds or removes the hooks, or is for the report, after the audit.
OUTER = """__init__ __torch_dispatch__ is_infra_mode after_step at_work expect gradients measure products is_elsewhere
    of paused remove_hooks start stop watch_autograd __str__ _source code line lines severity where"""


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


def traces():
    """What an audit replaces, and the hooks that it adds."""
    mode = _python_dispatch._get_current_dispatch_mode()
    optimizer = torch.optim.Optimizer
    autograd = torch.autograd.backward, torch.autograd.grad
    hooks = torch_optimizer._global_optimizer_pre_hooks, torch_optimizer._global_optimizer_post_hooks
    return *autograd, nn.Module.__setstate__, optimizer.__init__, optimizer.zero_grad, mode, *map(dict, hooks)


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


@pytest.fixture(scope="module")
def alone():
    """What `train` returns without an audit."""
    return train()


@pytest.mark.parametrize("name", FUNCTIONS)
def test_an_audit_that_raises_changes_nothing_and_says_that_it_gave_up(monkeypatch, alone, name):
    calls, counted = [], []

    def broken(*_, **__):
        calls.append(name)
        raise ZeroDivisionError("this is broken")

    for owner, attribute in FUNCTIONS[name]:
        code = getattr(getattr(owner, attribute), "__code__", None)
        monkeypatch.setattr(owner, attribute, guarded(broken) if code is HARMLESS else broken)
    before = traces()
    with GradientAudit.of_script(lambda _, optimizer: counted.append(optimizer)) as audit:
        assert train() == alone
    assert traces() == before
    if name != "Watcher.add_hooks":  # before the limit is set
        assert len(counted) == 4 + 6  # steps, and passes: what ends the script goes on
    assert len(calls) <= 1
    assert bool(calls) == bool(audit.failure)
    if calls:
        assert "The audit gave up: ZeroDivisionError: this is broken (" in str(audit)
        assert audit.severity == "error"
        assert not audit.findings
        with pytest.raises(GradientFlowError, match="gave up"):
            audit.check()


def test_an_audit_in_a_forked_process_says_that_it_has_not_watched():
    with GradientAudit() as audit:
        Watcher.watching.remove_hooks()  # as in a child
    assert str(audit) == "Not watched: this is a forked process."
    with pytest.raises(GradientFlowError, match="this is a forked process"):
        audit.check()


def test_a_check_raises_where_nothing_was_watched():
    generator, discriminator = make_networks()
    with GradientAudit(generator=generator) as audit, pytest.raises(GradientFlowError, match="after the `with` block"):
        assert str(audit) == "The audit is under way: ask for its result after the `with` block has ended."
        audit.check()
    with pytest.raises(GradientFlowError, match="No backward pass ran"):
        audit.check()
    optimizer = torch.optim.SGD(discriminator.parameters(), lr=0.1)
    with GradientAudit(generator=generator) as audit:
        discriminator(torch.ones(1, 4)).sum().backward()
        optimizer.step()
    with pytest.raises(GradientFlowError, match="No backward pass came to the named networks"):
        audit.check()
    with GradientAudit(generator=generator, discriminator=discriminator) as audit:
        discriminator(torch.ones(1, 4)).sum().backward()
        optimizer.step()
    assert "No backward pass came to generator." in audit.verdict
    with pytest.warns(UserWarning, match="No backward pass came to generator."):  # an average may be named
        audit.check()


def test_a_check_warns_of_a_network_whose_step_is_missing():
    generator, discriminator = make_networks()
    optimizers = [torch.optim.SGD(network.parameters(), lr=0.1) for network in (generator, discriminator)]
    with GradientAudit(generator=generator, discriminator=discriminator) as audit:
        for _ in range(3):
            for optimizer in optimizers:
                optimizer.zero_grad()
            discriminator(generator(torch.ones(1, 3))).sum().backward()
            optimizers[1].step()
    with pytest.warns(UserWarning, match="^No step came to generator.$"):  # a second stage may be to come
        audit.check()


def test_a_check_raises_where_no_optimizer_stepped():
    generator, _ = make_networks()
    optimizer = torch.optim.SGD(generator.parameters(), lr=0.1)
    with GradientAudit(generator=generator) as audit:
        optimizer.zero_grad()
        generator(torch.ones(1, 3)).sum().backward()
    with pytest.raises(GradientFlowError, match="No step was seen in the block"):
        audit.check()


def test_where_measuring_raises_nothing_is_measured_and_the_rest_goes_on(monkeypatch, alone):
    monkeypatch.setattr("gradient_audit.watch.measure.products", lambda *_: 1 / 0)
    with GradientAudit.of_script() as audit:
        assert train() == alone
    assert not audit.failure
    assert "were not measured: measuring raised ZeroDivisionError" in audit.table


@pytest.mark.parametrize(
    ("owner", "name"), [(torch.autograd, "_get_sequence_nr"), (_python_dispatch, "_get_current_dispatch_mode")]
)
def test_where_pytorch_lacks_a_private_name_the_audit_says_that_it_gave_up(monkeypatch, alone, owner, name):
    monkeypatch.delattr(owner, name)
    with GradientAudit.of_script() as audit:
        outcome = train()
    monkeypatch.undo()
    assert outcome == alone
    assert "The audit gave up: AttributeError" in str(audit)
    assert name in audit.failure


# Nothing is left behind.


@pytest.mark.parametrize("raising", [False, True])
def test_everything_is_left_as_found_also_where_a_pass_raises(raising):
    generator, discriminator, *_ = parts = make_all()
    calls = []
    theirs = torch_optimizer.register_optimizer_step_pre_hook(lambda *_: calls.append("step"))
    generator[0].weight.register_post_accumulate_grad_hook(lambda _: calls.append("grad"))
    discriminator[0].weight.requires_grad_(False)
    before = traces()
    with (
        pytest.raises(RuntimeError, match="does not require grad") if raising else nullcontext(),
        GradientAudit(generator=generator, discriminator=discriminator) as audit,
    ):
        textbook_detach(*parts, *batch())
        if raising:
            torch.zeros(()).backward()
    assert traces() == before
    parameters = [*generator.parameters(), *discriminator.parameters()]
    assert [len(parameter._post_accumulate_grad_hooks or ()) for parameter in parameters] == [1] + [0] * 7
    assert [parameter.requires_grad for parameter in parameters] == [True] * 4 + [False] + [True] * 3
    assert cells(audit) == [D_ONLY, ("used", "wasted"), *[("-", "-")] * raising]
    assert [p.raised for p in audit.passes] == [False, False, *[True] * raising]
    assert calls == ["step", "grad", "step"]
    theirs.remove()


def test_a_graph_that_outlives_the_audit_has_no_hook_of_it():
    generator, _ = make_networks()
    with GradientAudit(generator=generator) as audit:
        fake = generator(batch()[1])
    (forward,) = audit.events
    fake.sum().backward()
    assert not forward.needed  # a hook on the graph would have noted this pass


def test_the_audit_keeps_no_gradient_alive():
    generator, discriminator, *_ = parts = make_all()
    with GradientAudit(generator=generator, discriminator=discriminator):
        textbook_detach(*parts, *batch())
        gradients = [weakref.ref(parameter.grad) for parameter in generator.parameters()]
        generator.zero_grad()
        assert not any(gradient() is not None for gradient in gradients)


def test_the_audit_keeps_no_network_alive_after_the_end():
    audit = audit_of(textbook_detach)
    parameter = weakref.ref(audit.networks["generator"][0].weight)
    audit.networks, audit._named = {}, None  # what it was given, and returns
    gc.collect()
    assert parameter() is None


def test_an_audit_used_twice_has_a_new_record_each_time():
    generator, *_ = parts = make_all()
    audit = GradientAudit(generator=generator)
    for _ in range(2):
        with audit:
            textbook_detach(*parts, *batch())
        assert cells(audit) == [("-",), ("used",)]


def test_only_modules_are_networks():
    with pytest.raises(TypeError, match="generator is a int"):
        GradientAudit(generator=3)
    network = torch.nn.Linear(1, 1)
    with pytest.raises(ValueError, match="G and D are one network; name it once"):
        GradientAudit(G=network, D=network)


# One thread, one audit.


def test_an_audit_entered_in_a_thread_of_its_own_watches_that_thread():
    audits = []
    thread = threading.Thread(target=lambda: audits.append(audit_of(textbook_detach)))
    thread.start()
    thread.join()
    assert audits[0].table == audit_of(textbook_detach).table


def test_gradients_that_another_thread_alone_trains_are_not_read():
    """PyTorch may crash where one thread clears a `.grad` that another one reads."""
    readers = set()

    class Watched(nn.Parameter):
        @property
        def grad(self):
            readers.add(threading.current_thread())
            return torch.Tensor.grad.__get__(self)

    own, other = nn.Linear(1, 1), nn.Linear(1, 1)
    other.weight.__class__ = Watched
    thread = threading.Thread(target=lambda: other(torch.ones(1, 1)).backward())
    with GradientAudit(own=own, other=other) as audit:
        own(torch.ones(1, 1)).backward()
        thread.start()
        thread.join()
        readers.clear()
        own(torch.ones(1, 1)).backward()
    assert not readers and len(audit.passes) == 2


def test_steps_in_another_thread_than_the_passes_are_told_and_not_taken_for_missing_ones():
    network = nn.Linear(1, 1)
    optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
    thread = threading.Thread(target=optimizer.step)
    with GradientAudit(network=network) as audit:
        network(torch.ones(1, 1)).backward()
        thread.start()
        thread.join()
    assert "gave up: threading.py" in audit.verdict and "in another thread than the passes" in audit.verdict
    with pytest.raises(GradientFlowError, match="in another thread"):
        audit.check()


def test_a_second_audit_is_refused_and_leaves_the_first_as_it_is():
    generator, discriminator, *_ = parts = make_all()
    before = traces()
    with GradientAudit(generator=generator, discriminator=discriminator) as audit:
        for second in (audit, GradientAudit(other=nn.Linear(1, 1))):
            with pytest.raises(RuntimeError, match="another gradient audit is under way"):
                second.__enter__()
        textbook_detach(*parts, *batch())
    assert len(audit.passes) == 2
    assert traces() == before
