"""Audit any training script, without a change to it.

The script runs as `__main__`, in its own folder and with its own arguments, until every optimizer has stepped
`--iterations` times. Networks and optimizers are found when the script makes them, and named as it names them. The
output is a table, with a row for each backward pass and a column for each network, and the findings: what is wasted or
wrong.

    python scripts/tools/audit_script.py [--iterations 3] path/to/train.py [its own arguments]

Exit status: 0 if nothing is wrong (waste is not wrong), 1 if something is or the script raised, 2 for bad arguments.

A network is a module that is not part of another. If the parts of a module have different optimizers, as in a class
that holds both G and D, each part is a network. Processes that the script starts, as by `spawn`, are not audited.
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
sys.path.insert(0, ROOT)  # makes `common` importable from any folder

from common.gradient_audit import GradientAudit
from common.pitfalls import match_error


class Stop(BaseException):
    """Ends the script from inside a step; an `except Exception` in the script does not catch it."""


class ScriptAudit(GradientAudit):
    """An audit that finds the networks itself, and raises Stop after enough steps.

    Enough is `iterations` steps of every optimizer, or `limit` steps of one, in case another never steps.
    """

    def __init__(self, iterations: int, limit: int):
        """Start without networks."""
        super().__init__()
        self.iterations, self.limit = iterations, limit
        self.steps: Counter[Optimizer] = Counter()
        self.known: WeakSet[nn.Module] = WeakSet()  # the networks, and the modules known to be part of one
        self.names: WeakKeyDictionary[nn.Module, str] = WeakKeyDictionary()

    def __enter__(self) -> "ScriptAudit":
        """Start to watch, also the construction of modules."""
        self.hooks = [
            registration.register_module_parameter_registration_hook(lambda module, *_: self.found(module)),
            registration.register_module_module_registration_hook(self.joined),
            register_optimizer_step_post_hook(torch.compiler.disable(self.stepped)),
        ]
        # A hook on every forward pass would find copies, too, but torch.compile would trace it into each graph.
        self.setstate = nn.Module.__setstate__
        nn.Module.__setstate__ = lambda module, state: self.restored(module, state)
        return super().__enter__()

    def __exit__(self, kind: object, error: object, trace: TracebackType | None) -> None:
        """Determine the networks, then the findings, while the frames of a script that raised still exist."""
        nn.Module.__setstate__ = self.setstate
        for hook in self.hooks:
            hook.remove()
        self.name([frame for frame, _ in traceback.walk_tb(trace)])
        self.networks = self.settle()
        super().__exit__(kind, error, trace)

    def found(self, module: nn.Module) -> None:
        """Record a new module as a network, until it becomes part of another."""
        if module not in self.known:
            self.known.add(module)
            self.networks[str(id(module))] = module

    def joined(self, parent: nn.Module, name: str, child: nn.Module | None) -> None:
        """Record the parent as the network in place of its child."""
        if child is not None and name != "_orig_mod":  # a compiled module is not a parent but the same network
            self.found(parent)
            self.known.add(child)
            self.networks.pop(str(id(child)), None)

    def restored(self, module: nn.Module, state: dict) -> None:
        """Record a network that was copied or unpickled: no registration hook is called for it."""
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
        """Name modules by the variables of these frames, outermost first, and by the contents of those variables."""
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
        """Return, by name, the networks in the training: those that a pass reached or that an optimizer holds."""
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
                if ids & concerned and not ids <= taken:  # a compiled network has the parameters of the original
                    taken |= ids
                    name = self.names.get(part, type(part).__name__)
                    while name in settled:
                        name += "'"
                    settled[name] = part
        return settled


def _inside(name: str, value: object) -> Iterator[tuple[str, object]]:
    """Yield the contents of a variable, each with the expression for it."""
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
    """Split a module into its children if these have different optimizers and it has no parameters of its own."""
    owners = {frozenset(holders[id(parameter)]) for parameter in module.parameters()} - {frozenset()}
    if len(owners) < 2 or list(module.parameters(recurse=False)):
        return [module]
    return [part for child in module.children() for part in _parts(child, holders)]


def run(script: Path, arguments: list[str]) -> None:
    """Run the script as `python script arguments` in its folder would, without our folder and modules on its path."""
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
    """Run the script under the audit, print the result, and return the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--iterations", type=int, default=3, help="steps of every optimizer to watch (default 3)")
    parser.add_argument("--limit", type=int, default=100, help="steps of one optimizer, if others wait (default 100)")
    parser.add_argument("script", type=Path)
    # argparse, because tyro has no REMAINDER: everything after SCRIPT is the script's, also `--iterations`.
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

    if isinstance(sys.stdout, io.TextIOWrapper):  # the script may have replaced it
        sys.stdout.reconfigure(errors="backslashreplace")  # the terminal may lack letters of the script's lines
    print(f"\n{audit if audit.passes else 'No backward pass ran.'}\n\n{ending}")
    for pitfall in match_error(error)[:1]:
        print(f"This is the pitfall `{pitfall.name}`: {pitfall.title}. {pitfall.cure}")
        offer = "More about it" if pitfall.not_run else "See it live"
        print(f"{offer}: python scripts/tools/autograd_pitfalls.py {pitfall.name}")
    return int(bool(error) or any(finding.wrong for finding in audit.findings))


if __name__ == "__main__":
    sys.exit(main())
