"""Errors and silent traps of PyTorch that a GAN runs into: the code, what happens, why, and the cure.

An entry has a wrong and a right form of a few lines. Both run on the PyTorch installed here, on its CPU, and the output
shows what happened. The few entries that need a GPU or several machines are only described, and say so. To find the
entries behind an error, give its text or the whole traceback.

    python scripts/tools/autograd_pitfalls.py --list
    python scripts/tools/autograd_pitfalls.py step-between-backwards
    python scripts/tools/autograd_pitfalls.py --error "modified by an inplace operation: [torch.FloatTensor ..."
    python train.py 2>&1 | python scripts/tools/autograd_pitfalls.py --error -
"""

import difflib
import inspect
import re
import shutil
import signal
import sys
import textwrap
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

if __name__ == "__main__":  # Ctrl-C while torch is loaded, which takes seconds, prints no traceback
    signal.signal(signal.SIGINT, signal.SIG_DFL)

import torch
import tyro

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # makes `common` importable from any folder

from common.errors import BadInput
from common.pitfalls import PITFALLS, Outcome, Pitfall, docstring, match_error, observe, one_rank, one_weight_gan
from common.run.command_line import launch


@dataclass
class Options:
    """What to show. Without any option: every entry."""

    name: Annotated[str | None, tyro.conf.Positional, tyro.conf.arg(metavar="NAME")] = None
    """The entry to run, by its name in --list."""

    all_names: Annotated[bool, tyro.conf.FlagCreatePairsOff, tyro.conf.arg(name="list")] = False
    """Print the names and titles of all entries."""

    error: Annotated[str | None, tyro.conf.arg(metavar="TEXT")] = None
    """Find the entries behind an error: its message or the whole traceback, or - to read it from standard input."""


def describe(pitfall: Pitfall) -> str:
    """Run both forms of an entry; return its code, what happened, why, and the cure as text."""
    parts = [f"{pitfall.name}\n{pitfall.title}"]
    if pitfall.not_run:
        parts.append(_wrap("  not run here: ", pitfall.not_run))
        parts += [_wrap("  message  ", f"... {phrase} ...") for phrase in pitfall.errors]
    else:
        wrong, right = observe(pitfall.wrong), observe(pitfall.right)
        for helper in (one_weight_gan, one_rank):
            if f"{helper.__name__}()" in _code(pitfall.wrong) + _code(pitfall.right):
                parts.append(_wrap(f"  {helper.__name__}(): ", docstring(helper)))
        parts.append(f"  wrong\n{_code(pitfall.wrong)}\n{_result(wrong)}")
        parts.append(f"  right\n{_code(pitfall.right)}\n{_result(right)}")
    parts.append(_wrap("  why   ", pitfall.why))
    parts.append(_wrap("  cure  ", pitfall.cure))
    if not pitfall.not_run and not (wrong.is_as(pitfall.wrong_gives) and right.is_as(pitfall.right_gives)):
        parts.append(_wrap("  note  ", f"PyTorch {torch.__version__} does something else here than described above."))
    return "\n\n".join(parts) + "\n"


def listing(pitfalls: list[Pitfall]) -> str:
    """Return names and titles, a line each."""
    return "\n".join(f"  {pitfall.name:<24}{pitfall.title}" for pitfall in pitfalls)


def _code(function) -> str:
    """Return the body of a function, indented by four."""
    return textwrap.indent(textwrap.dedent(inspect.getsource(function).split("\n", 1)[1].rstrip()), " " * 4)


def _result(outcome: Outcome) -> str:
    lines = [] if outcome.exception else [f"  returns {_show(outcome.value)}"]
    if outcome.message:
        lines.append(_wrap("  ", re.sub(r" \(Triggered internally at .*\)", "", outcome.message), max_lines=8))
    return "\n".join(lines)


def _show(value: object) -> str:
    """Write numbers to four digits, and lists and tuples of them."""
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, list):
        return f"[{', '.join(map(_show, value))}]"
    if isinstance(value, tuple):
        return ", ".join(f"({_show(item)})" if isinstance(item, tuple) else _show(item) for item in value)
    return str(value)


def _wrap(label: str, text: str, max_lines: int | None = None) -> str:
    width = min(shutil.get_terminal_size().columns, 100)
    indent = " " * len(label)
    return textwrap.fill(
        text, width, initial_indent=label, subsequent_indent=indent, break_on_hyphens=False, max_lines=max_lines
    )


def main(options: Options) -> None:
    """Print what was asked for; ends with status 1 if no entry matches an error."""
    if sum((options.name is not None, options.all_names, options.error is not None)) > 1:
        raise BadInput("NAME, --list and --error exclude each other: give one of them")
    if options.all_names:
        print("Errors\n" + listing([p for p in PITFALLS if not p.silent and not p.not_run]))
        print("\nErrors that are described, not run here\n" + listing([p for p in PITFALLS if p.not_run]))
        print("\nSilent: a wrong number, at best a warning\n" + listing([p for p in PITFALLS if p.silent]))
    elif options.error is not None:
        text = sys.stdin.read() if options.error == "-" else options.error
        if not text.strip():
            raise BadInput("--error: the text is empty; paste the message or the traceback, in quotes")
        matches = match_error(text)
        if not matches:
            print("No entry matches this text. --list also shows the mistakes that give no error.")
            sys.exit(1)
        print(f"{len(matches)} of {len(PITFALLS)} entries fit, best first; the first in full below.")
        print(f"{listing(matches)}\n")
        print(describe(matches[0]), end="")
    elif options.name is not None:
        entries = {pitfall.name: pitfall for pitfall in PITFALLS}
        name = options.name.replace("_", "-")
        if name not in entries:
            close = difflib.get_close_matches(name, entries)
            raise BadInput(
                f"NAME: there is no entry {options.name!r}; "
                + (f"did you mean {' or '.join(close)}?" if close else "--list shows them all")
            )
        print(describe(entries[name]), end="")
    else:
        for number, pitfall in enumerate(PITFALLS):
            print("\n\n" * bool(number) + describe(pitfall), end="", flush=True)


if __name__ == "__main__":
    launch(main, Options)
