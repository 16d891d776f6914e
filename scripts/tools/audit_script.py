"""Audit a stranger's training script, without any change to it.

The script runs as `__main__`, in its own folder and with its own arguments, until every optimizer has stepped
`--iterations` times. Networks and optimizers are found as they come to be, and named as the script names them. Printed
are a row for each backward pass, a column for each network, and a finding for whatever is wasted or wrong.

    python scripts/tools/audit_script.py [--iterations 3] path/to/train.py [its own arguments]

Exit status: 0 if nothing is wrong (waste is not wrong), 1 if something is or the script raised, 2 for no such script.

A network is a module that is not part of another, unless its parts have different optimizers (a class that holds both
G and D): then each part is one. Processes that the script starts, as `torchrun` and `spawn` do, are not seen.
"""

import argparse
import inspect
import io
import os
import runpy
import sys
import traceback
from collections import Counter, defaultdict
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from types import FrameType, FunctionType, ModuleType, TracebackType
from typing import NoReturn
from weakref import WeakKeyDictionary, WeakSet

import torch
from torch import nn
from torch.nn.modules import module as registration
from torch.optim.optimizer import Optimizer, register_optimizer_step_post_hook

ROOT = str(Path(__file__).resolve().parents[2])
sys.path.insert(0, ROOT)  # `common` is found from any folder

from common.gradient_audit import GradientAudit
from common.pitfalls import match_error


class Stop(BaseException):
    """Ends the script from inside a step; no `except Exception` of the script's catches it."""


class ScriptAudit(GradientAudit):
    """An audit that finds the networks by itself, and raises Stop once it has seen enough.

    Enough is `iterations` steps of every optimizer, or `limit` of one, should another never step.
    """

    def __init__(self, iterations: int, limit: int):
        """Watch nothing yet."""
        super().__init__()
        self.iterations, self.limit = iterations, limit
        self.steps: Counter[Optimizer] = Counter()
        self.known: WeakSet[nn.Module] = WeakSet()  # the networks, and all that is known to be part of one
        self.names: WeakKeyDictionary[nn.Module, str] = WeakKeyDictionary()

    def __enter__(self) -> "ScriptAudit":
        """Begin to watch, also the making of modules."""
        self.hooks = [
            registration.register_module_parameter_registration_hook(lambda module, *_: self.found(module)),
            registration.register_module_module_registration_hook(self.joined),
            register_optimizer_step_post_hook(torch.compiler.disable(self.stepped)),
        ]
        # Not a hook on every forward pass, which would find copies, too: torch.compile traces it into each graph.
        self.setstate = nn.Module.__setstate__
        nn.Module.__setstate__ = lambda module, state: self.restored(module, state)
        return super().__enter__()

    def __exit__(self, kind: object, error: object, trace: TracebackType | None) -> None:
        """Settle what the networks are, then judge, while the frames of a script that raised are still there."""
        nn.Module.__setstate__ = self.setstate
        for hook in self.hooks:
            hook.remove()
        self.name([frame for frame, _ in traceback.walk_tb(trace)])
        self.networks = self.settle()
        super().__exit__(kind, error, trace)

    def found(self, module: nn.Module) -> None:
        """Take a new module for a network, until it joins another."""
        if module not in self.known:
            self.known.add(module)
            self.networks[str(id(module))] = module

    def joined(self, parent: nn.Module, name: str, child: nn.Module | None) -> None:
        """Take the parent for the network in place of its child."""
        if child is not None and name != "_orig_mod":  # what torch.compile makes is called by the name, but is no other
            self.found(parent)
            self.known.add(child)
            self.networks.pop(str(id(child)), None)

    def restored(self, module: nn.Module, state: dict) -> None:
        """Find also a network that was copied or unpickled, of which no registration tells: its parts come first."""
        self.setstate(module, state)
        self.found(module)
        for name, child in module.named_children():
            self.joined(module, name, child)

    def stepped(self, optimizer: Optimizer, _args: object, _kwargs: object) -> None:
        """Count the step, and stop if it is the last one wanted."""
        if any(network not in self.names for network in self.networks.values()):
            self.name([info.frame for info in reversed(inspect.stack(0))])
        self.steps[optimizer] += 1
        if min(self.steps.values()) >= self.iterations:
            for waiting in self.optimizers:
                self.steps.setdefault(waiting, 0)
        if min(self.steps.values()) >= self.iterations or self.steps[optimizer] >= self.limit:
            raise Stop

    def name(self, frames: list[FrameType]) -> None:
        """Name modules by the variables of these frames, the outermost first, and by what those variables hold."""
        for frame in frames:
            if frame.f_globals.get("__name__") == "runpy" or frame.f_code.co_filename == main.__code__.co_filename:
                continue
            level = list(frame.f_locals.items())
            for _ in range(3):
                for name, value in level:
                    if isinstance(value, nn.Module) and name != "self":
                        self.names.setdefault(value, name)
                        self.names.setdefault(getattr(value, "_orig_mod", value), name)
                level = [inside for name, value in level for inside in islice(_inside(name, value), 100)]

    def settle(self) -> dict[str, nn.Module]:
        """Name the networks that had a part in the training: reached by a pass, or held by an optimizer."""
        holders = defaultdict(set)
        for optimizer in self.optimizers:
            for group in optimizer.param_groups:
                for parameter in group["params"]:
                    holders[id(parameter)].add(id(optimizer))
        concerned = holders.keys() | set().union(*(p.reached for p in self.passes))
        inner = {part for network in self.networks.values() for part in network.modules() if part is not network}
        settled, taken = {}, set()
        for network in self.networks.values():
            for part in _parts(network, holders) if network not in inner else []:
                ids = {id(parameter) for parameter in part.parameters()}
                if ids & concerned and not ids <= taken:  # else a second view of a network, as torch.compile makes them
                    taken |= ids
                    name = self.names.get(part, type(part).__name__)
                    while name in settled:
                        name += "'"
                    settled[name] = part
        return settled


def _inside(name: str, value: object) -> Iterator[tuple[str, object]]:
    """Yield what a variable holds, by the expressions that get at it."""
    if isinstance(value, nn.Module):
        yield from ((f"{name}.{child}", module) for child, module in value.named_children())
    elif isinstance(value, dict):
        yield from ((f"{name}[{key!r}]", item) for key, item in list(value.items()))
    elif isinstance(value, list | tuple):
        yield from ((f"{name}[{index}]", item) for index, item in enumerate(value))
    elif not isinstance(value, type | FunctionType | ModuleType):
        attributes = getattr(value, "__dict__", None)
        if isinstance(attributes, dict):
            yield from ((f"{name}.{key}", item) for key, item in list(attributes.items()))


def _parts(module: nn.Module, holders: dict[int, set[int]]) -> list[nn.Module]:
    """Split a module into its children where these, and no parameters beside them, have different optimizers."""
    owners = {frozenset(holders[id(parameter)]) for parameter in module.parameters()} - {frozenset()}
    if len(owners) < 2 or list(module.parameters(recurse=False)):
        return [module]
    return [part for child in module.children() for part in _parts(child, holders)]


def run(script: Path, arguments: list[str]) -> None:
    """Run the script as `python script arguments` in its folder would, with nothing of ours in its way."""
    sys.path.remove(ROOT)
    for name in [name for name in sys.modules if name.split(".")[0] == "common"]:
        del sys.modules[name]  # the script may have a `common` of its own
    sys.path[0], sys.argv = str(script.parent), [str(script), *arguments]
    os.chdir(script.parent)
    runpy.run_path(str(script), run_name="__main__")


def refuse(message: str) -> NoReturn:
    """End with one line on stderr and status 2."""
    print(f"error: {message}", file=sys.stderr)
    sys.exit(2)


def main() -> int:
    """Run the script under the audit, print what was seen, and return the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--iterations", type=int, default=3, help="steps of every optimizer to watch (default 3)")
    parser.add_argument("--limit", type=int, default=100, help="steps of one optimizer, if others wait (default 100)")
    parser.add_argument("script", type=Path)
    # Not tyro: it has no REMAINDER, which leaves everything after SCRIPT to the script, `--iterations` too.
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="the script's own")
    parser.error = refuse
    options = parser.parse_args()
    if not options.script.is_file():
        refuse(f"SCRIPT: there is no file {options.script}; give the path of a training script")
    if min(options.iterations, options.limit) < 1:
        refuse("--iterations and --limit must be at least 1")

    script, audit = options.script.resolve(), ScriptAudit(options.iterations, options.limit)
    error, ending = "", "The script ended by itself."
    try:
        with audit:
            run(script, options.arguments)
    except Stop:
        ending = f"Stopped after {options.iterations} steps of every optimizer."
        if min(audit.steps.values()) < options.iterations:
            ending = f"Stopped after {options.limit} steps of one optimizer; another had not stepped often enough."
    except BaseException as raised:
        if not isinstance(raised, SystemExit) or raised.code:
            error = "".join(traceback.format_exception(raised))
            print(error, file=sys.stderr)
            ending = f"The script raised {type(raised).__name__}: {' '.join(str(raised).split())}"

    if isinstance(sys.stdout, io.TextIOWrapper):  # not what a script may have put in its place
        sys.stdout.reconfigure(errors="backslashreplace")  # lines of the script may be in any alphabet
    print(f"\n{audit if audit.passes else 'No backward pass ran.'}\n\n{ending}")
    for pitfall in match_error(error)[:1]:
        print(f"This is the pitfall `{pitfall.name}`: {pitfall.title}. {pitfall.cure}")
        offer = "More about it" if pitfall.not_run else "See it live"
        print(f"{offer}: python scripts/tools/autograd_pitfalls.py {pitfall.name}")
    return int(bool(error) or any(finding.wrong for finding in audit.findings))


if __name__ == "__main__":
    sys.exit(main())
