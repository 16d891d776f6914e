"""Audit any training script, without a change to it.

The script runs as `__main__`, in its own folder and with its own arguments, until every optimizer has stepped
`--iterations` times. Networks and optimizers are found when the script makes them, and named as it names them. The
output is a table, with a row for each backward pass and a column for each network, and the findings: what is wasted or
wrong.

    python scripts/tools/audit_script.py [--iterations 3] [--output report.html] path/to/train.py [its own arguments]

Exit status: 0 if nothing is wrong (waste and questions are not), 1 if something is or the script raised, 2 for bad
arguments. With --strict, a question is wrong, too.

A network is a module that is not part of another. If the parts of a module have different optimizers, as in a class
that holds both G and D, each part is a network. Processes that the script starts, as by `spawn`, are not audited.
"""

import argparse
import gc
import inspect
import io
import os
import runpy
import sys
import traceback
import weakref
from collections import Counter, defaultdict
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from types import FrameType, FunctionType, ModuleType, TracebackType
from typing import NoReturn
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, _compile, nn
from torch._dynamo import eval_frame
from torch.nn.modules import module as registration
from torch.optim.optimizer import Optimizer, register_optimizer_step_post_hook

ROOT = str(Path(__file__).resolve().parents[2])
sys.path.insert(0, ROOT)  # makes `common` importable from any folder

from common.pitfalls import PITFALLS, Pitfall, match_error
from common.run.signals import end_without_reader
from gradient_audit import OURS, GradientAudit, parameters_of
from gradient_audit.report import SUFFIXES, save

OURS.add(__file__)


class Stop(BaseException):
    """Ends the script from inside a step; an `except Exception` in the script does not catch it."""


class ScriptAudit(GradientAudit):
    """An audit that finds the networks itself, and raises Stop after enough steps.

    Enough is `iterations` steps of every optimizer, or `limit` steps of one, in case another never steps. A script
    without optimizers is stopped after `iterations` backward passes of each line, or `limit` in all.
    """

    def __init__(self, iterations: int, limit: int):
        """Start without networks."""
        super().__init__()
        self.iterations, self.limit = iterations, limit
        self.steps: Counter[int] = Counter()  # by the id of the optimizer
        self.known: WeakKeyDictionary[nn.Module, None] = WeakKeyDictionary()  # every module, in order of construction
        self.names: WeakKeyDictionary[nn.Module, str] = WeakKeyDictionary()
        self.unnamed = True  # whether there may be modules without a name
        self.kept: list[nn.Module] = []  # networks that were reached or stepped: a script that ends drops them
        self.covered: set[int] = set()  # parameters, by id, for which the networks to keep have been looked up

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
        gc.collect()  # dead modules that hold one another
        self._new = True
        self._watch()
        self.networks = self.settle()
        super().__exit__(kind, error, trace)

    def found(self, module: nn.Module) -> None:
        """Record a module. It is held weakly: what the script drops is no network."""
        if module not in self.known:
            self.known[module] = None
            self.unnamed = True

    def joined(self, parent: nn.Module, name: str, child: nn.Module | None) -> None:
        """Record a module that has got another as a part."""
        if child is not None and name != "_orig_mod":  # a compiled module is not a parent but the same network
            self.found(parent)
            self.found(child)

    def restored(self, module: nn.Module, state: dict) -> None:
        """Record a network that was copied or unpickled: no registration hook is called for it."""
        self.setstate(module, state)
        self._changed()
        self.found(module)

    def _modules(self) -> list[nn.Module]:
        return list(self.known)

    def _is_network(self, module: nn.Module) -> bool:
        return len(self._starts) < 3 and any(True for _ in module.children())  # it may turn out to be one

    def stepped(self, optimizer: Optimizer, _args: object, _kwargs: object) -> None:
        """Count the step, and stop if it is the last one wanted."""
        self.name_all()
        self.keep({id(parameter) for parameter in parameters_of(optimizer)})
        self.steps[id(optimizer)] += 1
        if min(self.steps.values()) >= self.iterations:
            for waiting in self.waiting():
                self.steps.setdefault(waiting, 0)
        if min(self.steps.values()) >= self.iterations or self.steps[id(optimizer)] >= self.limit:
            raise Stop

    def waiting(self) -> list[int]:
        """Return the optimizers that have not stepped, by id, but for those whose parameters others step."""
        stepped = {id(p) for steps in self._steps.values() for p in parameters_of(steps.optimizer)}
        return [
            id(opt)
            for opt in self.optimizers
            if id(opt) not in self._steps and {*map(id, parameters_of(opt))} - stepped
        ]

    def _watched_backward(self, *args, **kwargs):
        if self._active and not self._inside and not self.steps:
            self.name_all()
            passes = Counter(p.place for p in self.passes)
            many = len(self.passes) >= self.limit
            if many or (passes and min(passes.values()) >= self.iterations and not self.optimizers):
                raise Stop
        before = len(self.passes)
        try:
            return super()._watched_backward(*args, **kwargs)
        finally:
            if len(self.passes) > before:
                reached = self.passes[before].reached
                self.keep({key for key, account in self._accounts.items() if account.number in reached})

    def keep(self, parameters: set[int]) -> None:
        """Hold the networks of these parameters, given by id, and the optimizers: a script that ends drops them."""
        if not parameters <= self.covered:
            self.covered |= parameters
            tops = (top for top in self.tops() if not any(top is kept for kept in self.kept))
            self._kept = self.optimizers
            self.kept += [top for top in tops if any(id(p) in parameters for p in top.parameters())]

    def tops(self) -> list[nn.Module]:
        """Return the modules that are part of no other, in order of construction."""
        known = list(self.known)
        inner = {id(part) for module in known for part in module.children() if not hasattr(module, "_orig_mod")}
        return [module for module in known if id(module) not in inner]

    def name_all(self) -> None:
        """Name the modules, if there are new ones, by the variables of the frames that run."""
        if self.unnamed:
            self.unnamed = False
            self.name([info.frame for info in reversed(inspect.stack(0))])

    def name(self, frames: list[FrameType]) -> None:
        """Name modules by the variables of these frames, outermost first, and by the contents of those variables."""
        for frame in frames:
            if frame.f_globals.get("__name__") == "runpy" or frame.f_code.co_filename in OURS:
                continue
            level = list(frame.f_locals.items())
            for _ in range(3):
                for name, value in level:
                    if _is_module(value) and name != "self":
                        self.names.setdefault(value, name)
                        self.names.setdefault(getattr(value, "_orig_mod", value), name)
                level = [inside for name, value in level for inside in islice(_inside(name, value), 100)]

    def settle(self) -> dict[str, nn.Module]:
        """Return, by name, the networks in the training: those that a pass reached or that an optimizer holds."""
        holders = defaultdict(set)
        for optimizer in self.optimizers:
            for parameter in parameters_of(optimizer):
                holders[id(parameter)].add(id(optimizer))
        reached = set().union(*(event.reached for event in self.events))
        concerned = holders.keys() | {key for key, account in self._accounts.items() if account.number in reached}
        parts = [part for top in self.tops() for part in _parts(top, holders)]
        ids = {id(part): {id(parameter) for parameter in part.parameters()} for part in parts}
        chosen, taken = set(), set()
        # A network of which only a part is used gives way to that part; a compiled one comes after the original.
        for part in sorted(parts, key=lambda part: len(ids[id(part)] - concerned)):
            if new := (ids[id(part)] & concerned) - taken:
                taken |= new
                chosen.add(id(part))
        settled = {}
        for part in parts:
            if id(part) in chosen:
                chosen.remove(id(part))
                name = self.names.get(part, type(part).__name__)
                while name in settled:
                    name += "'"
                settled[name] = part
        return settled


def _is_module(value: object) -> bool:
    return issubclass(type(value), nn.Module)  # `isinstance` takes a weakref.proxy of a module for one


def _inside(name: str, value: object) -> Iterator[tuple[str, object]]:
    """Yield the contents of a variable, each with the expression for it."""
    kind = type(value)
    if issubclass(kind, nn.Module):
        yield from ((f"{name}.{child}", module) for child, module in value.named_children())
    elif issubclass(kind, dict):
        items = islice(dict.items(value), 100)
        yield from [(f"{name}[{key!r}]", item) for key, item in items if type(key) in (str, int)]
    elif issubclass(kind, list | tuple):
        yield from ((f"{name}[{index}]", item) for index, item in enumerate(value[:100]))
    elif not issubclass(kind, type | FunctionType | ModuleType | weakref.ProxyType | Tensor):
        try:
            attributes = object.__getattribute__(value, "__dict__")
        except AttributeError:
            return
        yield from [(f"{name}.{key}", item) for key, item in list(attributes.items())]


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


def options_of(arguments: list[str]) -> argparse.Namespace:
    """Parse the command line; refuse what cannot be done before the script runs."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--iterations", type=int, default=3, help="steps of every optimizer to watch (default 3)")
    parser.add_argument("--limit", type=int, default=100, help="steps of one optimizer, if others wait (default 100)")
    parser.add_argument("--strict", action="store_true", help="exit with 1 for a question, too, as for use in CI")
    parser.add_argument("--output", type=Path, help=f"also write the report here: {' or '.join(SUFFIXES)}")
    parser.add_argument("script", type=Path, help="the file to run, as it would be run by python")
    # argparse, because tyro has no REMAINDER: everything after SCRIPT is the script's, also `--iterations`.
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="the script's own options")
    parser.error = refuse
    options = parser.parse_args(arguments)
    if not options.script.is_file():
        refuse(f"SCRIPT: there is no file {options.script}; give the path of a training script")
    if min(options.iterations, options.limit) < 1:
        refuse("--iterations and --limit must be at least 1")
    if options.output is not None:
        options.output = options.output.resolve()  # the script may change the folder
        if options.output.suffix not in SUFFIXES:
            refuse(f"--output: the name must end in {' or '.join(SUFFIXES)}, not {options.output.name!r}")
        if not options.output.parent.is_dir():
            refuse(f"--output: there is no folder {options.output.parent}; make it, or choose another")
    return options


def ending_of(audit: ScriptAudit) -> str:
    """Say why the script was stopped."""
    if not audit.steps:
        return f"Stopped after {len(audit.passes)} backward passes; no optimizer had stepped."
    if min(audit.steps.values()) < audit.iterations:
        return f"Stopped after {audit.limit} steps of one optimizer; another had not stepped often enough."
    return f"Stopped after {audit.iterations} steps of every optimizer."


def traceback_of(raised: BaseException) -> str:
    """Return the traceback without the frames of this tool."""
    told = traceback.TracebackException.from_exception(raised)
    ours = {*OURS, runpy.__file__, eval_frame.__file__, _compile.__file__}
    one: traceback.TracebackException | None = told
    while one is not None:
        kept = [frame for frame in one.stack if frame.filename not in ours and "frozen runpy" not in frame.filename]
        one.stack = traceback.StackSummary.from_list(kept)
        one = one.__cause__ or one.__context__
    return "".join(told.format())


def main() -> int:
    """Run the script under the audit, print the result, and return the exit status."""
    options = options_of(sys.argv[1:])
    script, audit = options.script.resolve(), ScriptAudit(options.iterations, options.limit)
    trace, ending = "", "The script ended by itself."
    try:
        with audit:
            run(script, options.arguments)
    except Stop:
        ending = ending_of(audit)
    except BaseException as raised:
        if not isinstance(raised, SystemExit) or raised.code:
            trace = traceback_of(raised)
            ending = f"The script raised {type(raised).__name__}: {' '.join(str(raised).split())}"

    report = "\n\n".join(part for part in report_of(audit, trace, ending) if part)
    if isinstance(sys.stdout, io.TextIOWrapper):  # the script may have replaced it
        sys.stdout.reconfigure(errors="backslashreplace")  # the terminal may lack letters of the script's lines
    try:
        print(f"\n{report}", flush=True)
    finally:  # also where the reader of stdout has left
        if options.output is not None:
            save(options.output, {"script": str(script), "ending": ending, **audit.data()}, report)
    if trace:
        print(f"\n{trace}", end="", file=sys.stderr)
    if options.output is not None:
        print(f"The report is in {options.output}")
    failing = ("error", "question") if options.strict else ("error",)
    return int(bool(trace) or any(finding.severity in failing for finding in audit.findings))


def report_of(audit: ScriptAudit, trace: str, ending: str) -> list[str]:
    """Return the paragraphs of the report: the answer first."""
    if not trace:
        return [str(audit), ending]
    blamed = next((finding for finding in audit.findings if finding.facts), None)
    if blamed is None:
        found = match_error(trace)
        answer = [ending, *(f"{told}: {p.title}. {p.cure}\n{live}" for p, told, live in pitfalls_of(found))]
    else:  # its own cure fits the culprit
        names = ["fused-step"] if blamed.silent else [p.name for p in match_error(trace)]
        found = [pitfall for name in names for pitfall in PITFALLS if pitfall.name == name]
        answer = [audit.verdict, *(f"{told}.\n{live}" for _, told, live in pitfalls_of(found)), ending]
    happened = [part for part in (audit.table, audit.listing) if part]
    return [*answer, *["What had happened until then:"] * bool(happened), *happened]


def pitfalls_of(found: list[Pitfall]) -> Iterator[tuple[Pitfall, str, str]]:
    """Yield the first of the pitfalls, its name in a sentence, and how to see more of it."""
    for pitfall in found[:1]:
        offer = "More about it" if pitfall.not_run else "See it live"
        command = f"{offer}: python scripts/tools/autograd_pitfalls.py {pitfall.name}"
        yield pitfall, f"This is the pitfall `{pitfall.name}`", command


if __name__ == "__main__":
    try:
        sys.exit(main())
    except BrokenPipeError:
        end_without_reader()
