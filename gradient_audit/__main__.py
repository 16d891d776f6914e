"""Audit any training script, without a change to it; or explain a mistake, by its name or by an error message.

The script runs as `__main__`, in the current folder, until every optimizer has stepped `--iterations` times. The
environment variable GRADIENT_AUDIT holds the number of this process, by which the script knows that it is audited and
can leave no files. The output is a table, with a row for each backward pass and a column for each network, and the
findings: what is wrong, in doubt or wasted. If the script raises, the line that is the cause is named, and the mistake.

    python -m gradient_audit [--iterations 3] [--output report.html] path/to/train.py [its own arguments]
    python -m gradient_audit [--iterations 3] [--output report.html] -m package.module [its own arguments]
    python -m gradient_audit --error "modified by an inplace operation: [torch.FloatTensor ..."
    python train.py 2>&1 | python -m gradient_audit --error -
    python -m gradient_audit --mistake step-between-backwards

Exit status: 0 if nothing is wrong (waste and questions are not), 1 if something is, the script raised, no gradient was
computed, no optimizer was seen to step, the audit gave up, the report cannot be written or no mistake fits, 2 for bad
arguments. With --strict, a question is wrong, too.
"""

import argparse
import importlib.machinery
import os
import sys
from pathlib import Path
from typing import NoReturn

from gradient_audit import mistakes
from gradient_audit.mistakes.showing import explain
from gradient_audit.page import SUFFIXES, save
from gradient_audit.rules import kinds_of_mistakes
from gradient_audit.script import audit_script, own_copy


def refuse(message: str) -> NoReturn:
    """End with one line on stderr and status 2."""
    print(f"error: {message}", file=sys.stderr)
    sys.exit(2)


def parse(arguments: list[str]) -> argparse.Namespace:
    """Parse the command line; refuse what cannot be done before the script runs."""
    parser = argparse.ArgumentParser("gradient_audit", description=__doc__, allow_abbrev=False)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--iterations", type=int, default=3, help="steps of every optimizer to watch (default 3)")
    parser.add_argument("--limit", type=int, default=100, help="steps of one optimizer, if others wait (default 100)")
    parser.add_argument("--strict", action="store_true", help="exit with 1 for a question, too, as for use in CI")
    parser.add_argument("--output", type=Path, help=f"also write the report, over an old one: {' or '.join(SUFFIXES)}")
    parser.add_argument("--error", metavar="TEXT", help="explain an error message or a log; - reads standard input")
    parser.add_argument("--mistake", metavar="NAME", help="run a mistake, wrong form and right form, by its name")
    parser.add_argument("--list", action="store_true", help="name all mistakes")
    parser.add_argument("-m", dest="module", nargs=argparse.REMAINDER, help="the module to run, as by python -m")
    parser.add_argument("script", type=Path, nargs="?", help="the file to run, as by python; or a notebook (.ipynb)")
    # argparse, because of REMAINDER: everything after SCRIPT is the script's, also `--iterations`.
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="the script's own options")
    parser.error = refuse
    options = parser.parse_args(arguments)
    if options.module:  # then there is no script: whichever comes first takes the rest
        options.script, *options.arguments = options.module
    if sum((options.script is not None, options.error is not None, options.mistake is not None, options.list)) != 1:
        refuse("give one of SCRIPT, -m MODULE, --error, --mistake and --list (see --help)")
    if options.error and Path(options.error[:200]).is_file():
        refuse(f"--error: {options.error} is a file; --error - < {options.error} reads it")
    if options.mistake is not None:
        try:
            mistakes.load(options.mistake)
        except ValueError as error:
            refuse(f"--mistake {options.mistake}: {error}")
    if options.script is None:
        if options.strict or options.output is not None:
            refuse("--strict and --output are for a script; leave them out, or write `> FILE`")
        return options
    if own := {"--iterations", "--limit", "--strict", "--output"} & {word.split("=")[0] for word in options.arguments}:
        print(f"note: to the script: {', '.join(sorted(own))}; the audit's options come before it", file=sys.stderr)
    if options.module:
        package = options.script.partition(".")[0]
        if not package or importlib.machinery.PathFinder.find_spec(package, [str(Path.cwd()), *sys.path]) is None:
            refuse(f"-m: there is no module {options.script!r} here; run this in the folder that holds it")
    else:
        if not options.script.is_file() and not (options.script / "__main__.py").is_file():
            refuse(f"SCRIPT: {options.script} is no regular file, and no folder with a __main__.py; give one of them")
        options.script = options.script.resolve()
    if min(options.iterations, options.limit) < 1:
        refuse("--iterations and --limit must be at least 1")
    if options.output is not None:
        options.output = Path(os.path.realpath(options.output))  # the script may change the folder
        try:
            if options.output.suffix not in SUFFIXES or options.output.is_dir() or not options.output.parent.is_dir():
                refuse(f"--output: give a file that ends in {' or '.join(SUFFIXES)}, in a folder that there is")
            save(options.output, " " * 2**18, tries=True)
        except OSError as error:
            refuse(f"--output {options.output}: cannot be written: {error.strerror}")
    return options


def read_log() -> str:
    """Return standard input as text, in whatever encoding: of messages of PyTorch's, the letters are ASCII."""
    try:
        sys.stdin.reconfigure(errors="replace")
        return sys.stdin.read().replace("\0", "")  # of UTF-16, as PowerShell writes it
    except (AttributeError, OSError):  # it is None where it is closed
        refuse("--error -: standard input cannot be read; pipe the log into this")


def main() -> int:
    """Do what the command line asks for, and return the exit status."""
    options = parse(sys.argv[1:])
    try:
        if options.script is not None:
            return audit_script(options)
        sys.stdout = own_copy(sys.stdout)
        text = read_log() if options.error == "-" else options.error
        return int(not explain(options.mistake, text, kinds_of_mistakes()))
    except OSError as error:  # of stdout
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # for what Python flushes at exit
        if isinstance(error, BrokenPipeError):  # its reader has left, as `| head` does
            return 128 + 13
        print(f"error: stdout cannot be written: {error.strerror}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
