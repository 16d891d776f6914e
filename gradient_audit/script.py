"""Audit a training script, without a change to it: run it as `__main__` until its optimizers have stepped."""

import ast
import asyncio
import io
import json
import linecache
import os
import re
import runpy
import signal
import sys
from argparse import Namespace
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from os import getpid  # which a script may replace in `os`
from pathlib import Path
from types import ModuleType
from typing import TextIO
from unittest import mock

from torch.optim.optimizer import Optimizer

from gradient_audit.audit import GradientAudit
from gradient_audit.explaining import explain, traceback_of_script
from gradient_audit.page import page, save
from gradient_audit.watch.frames import PACKAGE
from gradient_audit.watch.tensors import parameters_of
from gradient_audit.watch.watcher import Watcher

MANY = 10  # optimizers, on average as often as one alone
MOST_STOPS = 5  # that a script may catch before the process is ended
PYTHON = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT  # as notebooks have it
# `%time`, `!ls`, `?net`, `net??`, `files = !ls`, `%%time`, and from another `%%` on the whole cell; first, what stays.
CELL = r"%%(?:time|capture)\b.*|%%(?s:.*)"
MAGIC = re.compile(rf"^([ \t]*(?:[\w.]+[ \t]*=[ \t]*)?)(?:{CELL}|[%!?].*|[\w.*]+\?\??[ \t]*$)", re.MULTILINE)
LAUNCHER = re.compile(r"torchrun|torch\.distributed\.\w+|(accelerate|deepspeed)(\.[\w.]+)?")  # a script or module
LAUNCHED = " It starts other processes, which are not audited. Audit the script itself: python -m gradient_audit "
NOTHING_RAN = " Processes that it starts are not audited; options that it needs in order to train come after its name."


class StepLimit:
    """Raises SystemExit, and again if it is caught, after enough steps of every optimizer, or of one; then calls `end`.

    An `except Exception` does not catch it; a thread ends by it, or a task of asyncio, and prints no traceback.
    """

    def __init__(self, iterations: int, limit: int, end: Callable[[], None]):
        self.iterations, self.limit, self.end = iterations, limit, end
        self.stops = self.passes = 0
        self.steps: Counter[int] = Counter()  # by the number of the optimizer

    def __call__(self, watcher: Watcher, optimizer: Optimizer | None) -> None:
        """Count a step of `optimizer`, or, if it is None, a pass that begins; stop after the last one wanted."""
        if self.stops or self.is_enough(watcher, optimizer):
            watcher.guard.closed = True  # what a script does that has caught this is no training
            self.stops += 1
            if self.stops > MOST_STOPS:
                self.end()
            with suppress(AttributeError, KeyError, RuntimeError):  # no task of asyncio, which would tell an error
                task = sys.modules["asyncio"].current_task()
                task.add_done_callback(lambda _: task.cancelled() or task.exception())
            raise SystemExit

    def is_enough(self, watcher: Watcher, optimizer: Optimizer | None) -> bool:
        """Count, and return whether there were enough."""
        if optimizer is None:
            self.passes += 1  # by itself: an audit that has given up records none
            lines = Counter(p.place for p in watcher.session.history.passes).values()
            enough = lines and min(lines) >= self.iterations and not (self.steps or watcher.optimizers.find())
            enough = enough and watcher.kinds.gone_round(self.iterations) and not watcher.kinds.any_waits(by_hand=True)
            return enough or (not self.steps and self.passes > self.limit)
        number = watcher.optimizers.number_of(optimizer)
        self.steps[number] += 1
        if min(self.steps.values()) >= self.iterations:  # others may wait, but for those whose parameters these step
            watcher.optimizers.find()
            held = {other: {*map(id, parameters_of(o))} for other, o in watcher.optimizers.active.items()}
            stepped = set().union(*(ids for other, ids in held.items() if other in self.steps))
            self.steps.update(dict.fromkeys((other for other, ids in held.items() if ids - stepped), 0))
        most = max(self.steps[number], self.steps.total() // MANY)
        enough = min(self.steps.values()) >= self.iterations and not watcher.kinds.any_waits(by_hand=True)
        return enough or most >= self.limit

    @property
    def ending(self) -> str:
        """Say how the script ended, or why it was stopped."""
        if not self.stops:
            return "The script ended by itself."
        if not self.steps:
            return f"Stopped after {self.passes - 1} backward passes; no optimizer of `torch.optim` was seen to step."
        if min(self.steps.values()) < self.iterations:
            waited = f"another had not stepped {self.iterations} times. `--limit` waits longer."
            return f"Stopped after {self.limit} steps of one optimizer; {waited}"
        return f"Stopped after {self.iterations} steps of every optimizer."


def audit_script(options: Namespace) -> int:
    """Run the script of a command line under the audit, print the report, and return the exit status."""
    out, errors, process = own_copy(sys.stdout), own_copy(sys.stderr), getpid()

    def finish(ending: str, trace: str = "") -> int:
        nothing_ran = audit.saw_nothing
        launches = LAUNCHER.fullmatch(getattr(options.script, "stem", options.script))
        hint = LAUNCHED + next((x for x in options.arguments if x.endswith(".py")), "") if launches else NOTHING_RAN
        report = f"{audit}\n\n{ending}{hint if nothing_ran and not audit.failure else ''}"
        if trace:
            happened = ["What had happened until then:", details] if (details := audit.details) else []
            report = "\n\n".join([*explain(trace, audit.findings, audit.verdict), ending, *happened])
        lost = False
        if options.output is not None:  # before the report is printed: its reader may have left
            try:
                html = options.output.suffix == ".html"
                save(options.output, page(audit, str(options.script), ending) if html else report)
                report += f"\n\nThe report is in {options.output}"
            except Exception as error:  # neither loses the other
                lost = True
                cause = getattr(error, "strerror", None) or error
                report += f"\n\nThe report could not be written to {options.output}: {cause}"
        for stream in (sys.stdout, sys.__stdout__, sys.stderr):
            with suppress(Exception):  # closed, or of the script's own kind
                stream.flush()
        out.write(f"\n{report}\n")  # a script may have changed print()
        wrong = ("error", "question") if options.strict else ("error",)
        return int(bool(trace) or lost or nothing_ran or audit.unjudged or audit.severity in wrong)

    def end(ending: str = "", failed: bool = False) -> None:
        status = int(getpid() == process)  # 1 if what follows raises, as where the reader of stdout has left
        try:
            if status:
                audit.__exit__(None, None, None)
                status = finish(ending or limit.ending) or int(failed)
        finally:  # the script would catch that, too
            leave(status)

    def instead(name: str) -> Callable:
        original = getattr(os, name)

        def ended(*given: object, **named: object) -> None:
            if getpid() != process:
                original(*given, **named)
            elif name != "_exit":
                end(f"The script ended in os.{name}(): the program that takes its place is not audited.", failed=True)
            (code,) = given or named.values()
            end(f"The script exited with status {code}." if code else "", bool(code))

        return ended

    leave = os._exit  # without a report, where the script calls it
    os.environ["GRADIENT_AUDIT"] = str(process)  # tells this process, and no other, that it keeps nothing
    limit = StepLimit(options.iterations, options.limit, end)
    audit = GradientAudit.of_script(limit)
    ending = trace = shown = ""
    try:
        instead_of_os = mock.patch.multiple(os, **{name: instead(name) for name in ("_exit", "execv", "execve")})
        with audit, ended_as_interrupted(leave), instead_of_os:
            run_as_main(options.script, options.arguments)
    except BaseException as raised:
        if getpid() != process:
            raise
        if not limit.stops and (not isinstance(raised, SystemExit) or raised.code):
            trace = shown = traceback_of_script(raised)
            message = ""
            with suppress(Exception):  # of the script's own kind
                message = " ".join(str(raised).split())
            ending = f"The script raised {type(raised).__name__}: {message}"
            if isinstance(raised, SystemExit):  # which Python shows without a traceback
                code = f"status {message}" if isinstance(raised.code, int) else f"a message: {message.rstrip('.')}"
                ending, shown = f"The script exited with {code}.{NOTHING_RAN if audit.saw_nothing else ''}", ""
            elif sys.excepthook is not sys.__excepthook__:  # the script's own, which may write a file
                shown = ""
                with suppress(Exception):
                    sys.excepthook(type(raised), raised, raised.__traceback__)
    if getpid() != process:  # a fork has no report
        return 0
    status = finish(ending or limit.ending, trace)
    if shown:
        errors.write(f"\n{shown}")
    return status


@contextmanager
def ended_as_interrupted(leave: Callable[[int], None]) -> Iterator[None]:
    """Take SIGTERM and SIGHUP for Ctrl-C, after which the report is printed; a worker of the script's ends at once."""
    process = getpid()

    def interrupt(number: int, _: object) -> None:
        if getpid() != process:
            leave(128 + number)
        raise KeyboardInterrupt

    numbers = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
    numbers = [number for number in numbers if signal.getsignal(number) is signal.SIG_DFL]
    for number in numbers:
        signal.signal(number, interrupt)
    try:
        yield
    finally:
        for number in numbers:
            signal.signal(number, signal.SIG_DFL)


def own_copy(stream: TextIO) -> TextIO:
    """Return a stream that a script can neither replace nor close, to the same file; of a test's, that itself."""
    try:
        copy = io.FileIO(os.dup(stream.fileno()), "w", closefd=False)  # else Python warns as it ends
    except (AttributeError, OSError, ValueError):
        return stream
    # The terminal may lack letters.
    return io.TextIOWrapper(copy, stream.encoding, "backslashreplace", write_through=True)


def run_as_main(script: Path | str, arguments: list[str]) -> None:
    """Run a script as `python script arguments` would, a module as `python -m`; of a notebook, the code cells."""
    folder = Path.cwd() if isinstance(script, str) else script.parent
    own = str(Path(PACKAGE).parent)  # last: its `common` and `scripts` are not the script's
    first = 0 if getattr(sys.flags, "safe_path", False) else 1  # PYTHONSAFEPATH puts no folder before the others
    sys.path[:] = [str(folder)] * first + sorted(sys.path[first:], key=lambda path: path == own)
    sys.argv = [str(script), *arguments]
    if isinstance(script, str):
        runpy.run_module(script, run_name="__main__", alter_sys=True)
    elif script.suffix == ".ipynb":
        run_cells(script)
    else:
        runpy.run_path(str(script), run_name="__main__")


def run_cells(notebook: Path) -> None:
    """Run the code cells of a notebook in their order, without their magics, which are named on stderr."""
    sys.modules["__main__"] = module = ModuleType("__main__")
    module.display = lambda *things, **_: print(*things, sep="\n")
    loop = asyncio.new_event_loop()
    try:
        cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    except (ValueError, KeyError) as error:  # as one that is saved in another encoding, or of 2014
        sys.exit(f"error: {notebook}: is no notebook of version 4; save it again in Jupyter ({error!r})")
    sources = ["".join(cell["source"]) + "\n" for cell in cells if cell["cell_type"] == "code"]
    for number, source in enumerate(sources, 1):
        file = f"{notebook}[{number}]"
        try:
            compile(source, file, "exec", PYTHON)
        except SyntaxError:
            for magic in MAGIC.finditer(source):
                line = magic[0].splitlines()[0].strip()
                print(f"note: {Path(file).name}: {line} is skipped", file=sys.stderr)
            source = MAGIC.sub(r"\1[]", source)  # the lines keep their numbers
        linecache.cache[file] = len(source), None, source.splitlines(keepends=True), file  # for whoever shows its lines
        if awaiting := eval(compile(source, file, "exec", PYTHON), vars(module)):  # a coroutine if it awaits, else None
            loop.run_until_complete(awaiting)
