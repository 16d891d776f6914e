"""Audit a training script, without a change to it: run it as `__main__` until its optimizers have stepped."""

import json
import linecache
import os
import re
import runpy
import sys
import traceback
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

from torch import _compile
from torch._dynamo import eval_frame
from torch.optim.optimizer import Optimizer

from gradient_audit import mistakes
from gradient_audit.audit import GradientAudit
from gradient_audit.findings import joined
from gradient_audit.graph import parameters_of
from gradient_audit.networks import FoundNetworks
from gradient_audit.places import PACKAGE
from gradient_audit.watch import Watcher


class Stop(BaseException):
    """Ends the script from inside a step; an `except Exception` in the script does not catch it."""


class StepLimit:
    """Raises Stop after enough steps.

    Enough is `iterations` steps of every optimizer, or `limit` of one; without optimizers, as many backward passes of
    each line, or `limit` in all.
    """

    def __init__(self, iterations: int, limit: int):
        self.iterations, self.limit = iterations, limit
        self.steps: Counter[int] = Counter()  # by the id of the optimizer
        self.passes = 0

    def __call__(self, watcher: Watcher, optimizer: Optimizer | None) -> None:
        """Count a step of `optimizer`, or, if it is None, the passes so far; stop if it is the last one wanted.

        An audit that has given up records no passes, but it ends, too.
        """
        if optimizer is not None:
            self.steps[id(optimizer)] += 1
            if min(self.steps.values()) >= self.iterations:
                self.steps.update(dict.fromkeys(self.waiting_optimizers(watcher), 0))
            if min(self.steps.values()) >= self.iterations or self.steps[id(optimizer)] >= self.limit:
                raise Stop
        elif not self.steps:
            passes = Counter(p.place for p in watcher.record.passes)
            enough = passes and min(passes.values()) >= self.iterations and not watcher.find_optimizers()
            if enough or self.passes >= self.limit:
                raise Stop
            self.passes += 1

    def waiting_optimizers(self, watcher: Watcher) -> list[int]:
        """Return the optimizers that have not stepped, by id, without those whose parameters others step."""
        stepped = {id(p) for steps in watcher.record.steps.values() for p in parameters_of(steps.optimizer)}
        return [
            id(optimizer)
            for optimizer in watcher.find_optimizers() or ()
            if id(optimizer) not in watcher.record.steps and {*map(id, parameters_of(optimizer))} - stepped
        ]

    def ending(self, audit: GradientAudit) -> str:
        """Say why the script was stopped."""
        if not self.steps:
            return f"Stopped after {self.passes} backward passes; no optimizer had stepped."
        if min(self.steps.values()) < self.iterations:
            late = (seen for seen in audit.optimizers_seen if seen["steps"] < self.iterations)
            names = joined(f"{seen['class']} of {joined(seen['networks'])}" for seen in late) or "another"
            return (
                f"Stopped after {self.limit} steps of one optimizer; {names} had not stepped {self.iterations} times. "
                "`--limit` waits longer."
            )
        return f"Stopped after {self.iterations} steps of every optimizer."


def audit_script(script: Path, arguments: list[str], iterations: int, limit: int) -> tuple[GradientAudit, str, str]:
    """Run a script, given by its absolute path, under the audit; return this, how it ended, and its traceback or ""."""
    limits = StepLimit(iterations, limit)
    os.environ["GRADIENT_AUDIT"] = "1"  # tells the script that it will be ended, so that it can leave no files
    audit = GradientAudit.of_provider(FoundNetworks(), limits)
    trace, ending = "", "The script ended by itself."
    try:
        with audit:
            run_as_main(script, arguments)
    except Stop:
        ending = limits.ending(audit)
    except BaseException as raised:
        if not isinstance(raised, SystemExit) or raised.code:
            trace = _traceback_of_script(raised)
            ending = f"The script raised {type(raised).__name__}: {' '.join(str(raised).split())}"
    finally:
        os.environ.pop("GRADIENT_AUDIT", None)  # the script may have removed it
    return audit, ending, trace


def run_as_main(script: Path, arguments: list[str]) -> None:
    """Run the script as `python script arguments` would; of a notebook, the code cells in their order."""
    sys.path[0], sys.argv = str(script.parent), [str(script), *arguments]  # not the folder that this package came from
    if script.suffix != ".ipynb":
        runpy.run_path(str(script), run_name="__main__")
        return
    sys.modules["__main__"] = module = ModuleType("__main__")
    for number, source in code_cells(script):
        file = f"{script}[{number}]"
        linecache.cache[file] = len(source), None, source.splitlines(keepends=True), file  # for whoever shows its lines
        exec(compile(source, file, "exec"), vars(module))


def code_cells(notebook: Path) -> Iterator[tuple[int, str]]:
    """Yield the code cells of a notebook, numbered from 1, without their magics, which are named on stderr."""
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    for number, cell in enumerate((cell for cell in cells if cell["cell_type"] == "code"), 1):
        lines = "".join(cell["source"]).splitlines()
        of_cell = "".join(lines[:1]).startswith("%%")  # a magic that takes the whole cell
        for index, line in enumerate(lines):
            if of_cell or line.lstrip().startswith(("%", "!")):
                if index == 0 or not of_cell:
                    print(f"note: {notebook.name}[{number}]: {line.strip()} is skipped", file=sys.stderr)
                lines[index] = line[: len(line) - len(line.lstrip())] + "pass"
        yield number, "\n".join(lines) + "\n"


def report_of(audit: GradientAudit, ending: str, trace: str) -> str:
    """Return the report on a script as Markdown: the answer first."""
    if not trace:
        return f"{audit}\n\n{ending}"
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
    files = PACKAGE, "<frozen runpy>", runpy.__file__, eval_frame.__file__, _compile.__file__
    hidden = "|".join(map(re.escape, files))
    trace = "".join(traceback.format_exception(raised))
    return re.sub(rf'^  File "(?:{hidden}).*\n(?:    .*\n)*', "", trace, flags=re.MULTILINE)
