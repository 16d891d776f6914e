"""Audit a training script, without a change to it: run it as `__main__` until its optimizers have stepped."""

import ast
import asyncio
import json
import linecache
import os
import re
import runpy
import sys
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from inspect import CO_COROUTINE
from pathlib import Path
from types import ModuleType
from zipfile import is_zipfile

from torch.optim.optimizer import Optimizer

from gradient_audit import mistakes
from gradient_audit.audit import GradientAudit
from gradient_audit.findings import joined
from gradient_audit.graph import parameters_of
from gradient_audit.networks import FoundNetworks
from gradient_audit.places import PACKAGE
from gradient_audit.watch import Watcher

MANY = 10  # optimizers, on average as often as one alone
MOST_STOPS = 5  # that a script may catch before the process is ended
PYTHON = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT  # as notebooks have it
# `%time`, `!ls`, `?net`, `net??`, `files = !ls`: the indent, and what is assigned to
MAGIC = re.compile(r"^([ \t]*)(?:([\w.]+[ \t]*=)?[ \t]*[%!].*|\?.*|[\w.*]+\?\??[ \t]*)$", re.MULTILINE)
MAGIC_OF_CELL = re.compile(r"()()%%.*", re.DOTALL)
NOTHING_RAN = (
    " If it trains in processes that it starts, make it train in its own: these are not audited. Options that it needs "
    "in order to train come after its name."
)


class Stop(BaseException):
    """Ends the script from inside a step; an `except Exception` in the script does not catch it."""


class StepLimit:
    """Raises Stop after enough steps, and again if the script has caught it; after MOST_STOPS of them, it calls `end`.

    Enough is `iterations` steps of every optimizer or `limit` of one; without any, such passes of each line, or in all.
    """

    def __init__(self, iterations: int, limit: int, end: Callable[[], None]):
        self.iterations, self.limit, self.end = iterations, limit, end
        self.stops = 0
        self.steps: Counter[int] = Counter()  # by the number of the optimizer
        self.passes = 0

    def __call__(self, watcher: Watcher, optimizer: Optimizer | None) -> None:
        """Count a step of `optimizer`, or, if it is None, a pass that begins; stop after the last one wanted."""
        if self.stops or self.is_enough(watcher, optimizer):
            watcher.record.closed = True  # what a script does that has caught Stop is no training
            self.stops += 1
            if self.stops > MOST_STOPS:
                self.end()
            raise Stop

    def is_enough(self, watcher: Watcher, optimizer: Optimizer | None) -> bool:
        """Count, and return whether there were enough."""
        if optimizer is not None:
            number = watcher.number_of(optimizer)
            self.steps[number] += 1
            if min(self.steps.values()) >= self.iterations:
                self.steps.update(dict.fromkeys(self.waiting_optimizers(watcher), 0))
            most = max(self.steps[number], self.steps.total() // MANY)
            return min(self.steps.values()) >= self.iterations or most >= self.limit
        if self.steps:
            return False
        passes = Counter(p.place for p in watcher.record.passes)
        self.passes += 1  # by itself: an audit that has given up records none
        enough = passes and min(passes.values()) >= self.iterations and not watcher.find_optimizers()
        return enough or self.passes > self.limit

    def waiting_optimizers(self, watcher: Watcher) -> list[int]:
        """Return the optimizers that have not stepped, by number, without those whose parameters others step."""
        watcher.find_optimizers()
        held = {number: {*map(id, parameters_of(o))} for number, o in watcher.record.optimizers.items()}
        stepped = set().union(*(ids for number, ids in held.items() if number in self.steps))
        return [number for number, ids in held.items() if number not in self.steps and ids - stepped]

    def ending(self, audit: GradientAudit) -> str:
        """Say how the script ended, or why it was stopped."""
        if not self.stops:
            return "The script ended by itself."
        if not self.steps:
            return f"Stopped after {self.passes - 1} backward passes; no optimizer had stepped."
        if min(self.steps.values()) < self.iterations:
            late = (seen for seen in audit.optimizers_seen if seen["steps"] < self.iterations)
            names = joined(f"{seen['class']} of {joined(seen['networks'])}" for seen in late) or "another"
            waited = f"{names} had not stepped {self.iterations} times. `--limit` waits longer."
            return f"Stopped after {self.limit} steps of one optimizer; {waited}"
        return f"Stopped after {self.iterations} steps of every optimizer."


def audit_script(
    script: Path | str, arguments: list[str], limits: tuple[int, int], finish: Callable[[GradientAudit, str, str], int]
) -> int:
    """Run a script under the audit; return what `finish` returns, which gets it, how the script ended, its traceback.

    script: the absolute path, or the name of a module. limits: steps of every optimizer, and of one. The traceback is
    "" if the script raised nothing. Where the script ends the process, by `os._exit`, this calls `finish` before.
    """
    process, end_process = os.getpid(), os._exit

    def end(status: int = 0) -> None:
        if os.getpid() == process:
            audit.__exit__(None, None, None)
            status = finish(audit, limit.ending(audit), "") or status
            sys.stderr.flush()
        end_process(status)

    os.environ["GRADIENT_AUDIT"] = "1"  # tells the script that it will be ended, so that it can leave no files
    os._exit, limit = end, StepLimit(*limits, end)
    audit = GradientAudit.of_provider(FoundNetworks(), limit)
    trace, raising = "", ""
    try:
        with audit:
            run_as_main(script, arguments)
            if os.getpid() != process:  # forked: it ends as without the audit
                sys.exit()
    except BaseException as raised:
        if os.getpid() != process:
            raise
        if not limit.stops and (not isinstance(raised, SystemExit) or raised.code):
            trace = _traceback_of_script(raised)
            raising = f"The script raised {type(raised).__name__}: {' '.join(str(raised).split())}"
    finally:
        os._exit = end_process
        os.environ.pop("GRADIENT_AUDIT", None)  # the script may have removed it
    return finish(audit, raising or limit.ending(audit), trace)


def run_as_main(script: Path | str, arguments: list[str]) -> None:
    """Run a script as `python script arguments` would, a module as `python -m`; of a notebook, the code cells."""
    packed = isinstance(script, Path) and (script.is_dir() or is_zipfile(script))
    folder = Path.cwd() if isinstance(script, str) else script if packed else script.parent
    root = Path(PACKAGE).parent
    own = {root} if (root / "pyproject.toml").is_file() else set()  # its `common` and `scripts` are not the script's
    sys.path[:] = [str(folder), *(path for path in sys.path[1:] if Path(path).resolve() not in own)]
    sys.argv = [str(script), *arguments]
    if isinstance(script, str):
        runpy.run_module(script, run_name="__main__", alter_sys=True)
    elif script.suffix == ".ipynb":
        run_cells(script)
    else:
        runpy.run_path(str(script), run_name="__main__")


def run_cells(notebook: Path) -> None:
    """Run the code cells of a notebook in their order."""
    sys.modules["__main__"] = module = ModuleType("__main__")
    module.display = lambda *things, **_: print(*things, sep="\n")
    loop = asyncio.new_event_loop()
    for number, source in code_cells(notebook):
        file = f"{notebook}[{number}]"
        linecache.cache[file] = len(source), None, source.splitlines(keepends=True), file  # for whoever shows its lines
        code = compile(source, file, "exec", PYTHON)
        if code.co_flags & CO_COROUTINE:  # it awaits
            loop.run_until_complete(eval(code, vars(module)))
        else:
            exec(code, vars(module))


def code_cells(notebook: Path) -> Iterator[tuple[int, str]]:
    """Yield the code cells of a notebook, numbered from 1, without their magics, which are named on stderr."""
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    for number, cell in enumerate((cell for cell in cells if cell["cell_type"] == "code"), 1):
        source = "".join(cell["source"])
        try:
            compile(source, "cell", "exec", PYTHON)
            magics = []
        except SyntaxError:
            magics = [*(MAGIC_OF_CELL if source.startswith("%%") else MAGIC).finditer(source)]
        for magic in magics[::-1]:  # the lines keep their numbers
            value = f"{magic[2]} []" if magic[2] else "pass"
            source = f"{source[: magic.start()]}{magic[1]}{value}{source[magic.end() :]}"
        for magic in magics:
            line = magic[0].splitlines()[0].strip()
            print(f"note: {notebook.name}[{number}]: {line} is skipped", file=sys.stderr)
        yield number, source + "\n"


def report_of(audit: GradientAudit, ending: str, trace: str) -> str:
    """Return the report on a script as Markdown: the answer first."""
    if not trace:
        return f"{audit}\n\n{ending}" + NOTHING_RAN * (audit.saw_nothing and not audit.failure)
    blamed = next((finding for finding in audit.findings if finding.facts), None)
    if blamed is None:
        answer = [ending, *(_name_mistake(m, f": {m.title} {m.cure}") for m in mistakes.match(trace)[:1])]
    else:  # its own cure fits the culprit
        found = [mistakes.load("fused-step")] if blamed.silent else mistakes.match(trace)
        answer = [audit.verdict, *(_name_mistake(m, ".") for m in found[:1]), ending]
    happened = [part for part in (audit.table, audit.listing) if part]
    return "\n\n".join([*answer, *["What had happened until then:"] * bool(happened), *happened])


def _name_mistake(mistake: mistakes.Mistake, rest: str) -> str:
    verb = "More about it" if mistake.not_run else "See it live"
    return f"This is the mistake `{mistake.name}`{rest}\n{verb}: python -m gradient_audit --mistake {mistake.name}"


def _traceback_of_script(raised: BaseException) -> str:
    """Return the traceback without the frames of this package, and of those that called the script."""
    hidden = "|".join(map(re.escape, (PACKAGE, "<frozen runpy>", runpy.__file__)))
    trace = "".join(traceback.format_exception(raised))
    return re.sub(rf'^  File "(?:{hidden}).*\n(?:    .*\n)*', "", trace, flags=re.MULTILINE)
