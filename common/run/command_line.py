"""The command line of every script: options from a dataclass, help from the docstring, errors in one line."""

import contextlib
import io
import os
import signal
import sys
from collections.abc import Callable, Sequence
from itertools import dropwhile, takewhile
from typing import NoReturn, TypeVar

import tyro

from common.errors import BadInput, Stopped
from common.run.ranks import LostRank, close_process_group, first_to_report
from common.run.signals import Interrupted, end_without_reader

Options = TypeVar("Options")


def launch(main: Callable[[Options], None], options: type[Options]) -> None:
    """Parse the command line into `options` and call `main` with it.

    If the parsed options have a method `defaults()`, it returns the values of the options that were left out: an
    instance of their class. Errors end the process with one line on stderr, printed by one process under torchrun.
    Status 2: the command line does not parse, or `main` raises `BadInput` or a ValueError that begins with an option,
    "--image-size 30: ...", as in the modules that import no other module of this repository. Status 1: `main` raises
    `Stopped`, `LostRank` or an OSError that names its file. Status 128 plus the signal's number, without a message:
    a signal has ended `main`, or stdout was closed.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # file names may have characters that the terminal lacks
            stream.reconfigure(errors="backslashreplace")
    if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:  # as set by the scripts while torch is loaded
        signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        given = parse(options, main.__globals__["__doc__"])
        if hasattr(given, "defaults"):
            given = parse(options, main.__globals__["__doc__"], default=given.defaults())
        main(given)
        sys.stdout.flush()
    except BadInput as error:
        end(str(error), 2)
    except (Stopped, LostRank) as error:
        end(str(error), 1)
    except ValueError as error:
        if not str(error).startswith("--"):
            raise
        end(str(error), 2)
    except Interrupted as error:
        close_process_group()
        sys.exit(error.status)
    except KeyboardInterrupt:
        sys.exit(128 + signal.SIGINT)
    except BrokenPipeError:
        end_without_reader()
    except OSError as error:
        if error.filename is None:
            raise
        end(f"{os.fsdecode(error.filename)}: {error.strerror}", 1)
    close_process_group()


def end(message: str, status: int) -> NoReturn:
    """Print the message as one line and end the process."""
    if first_to_report():
        print(f"error: {one_line(message)}", file=sys.stderr)
    sys.exit(status)


def one_line(message: str) -> str:
    """Return the message as one line: names in it may hold line breaks and bytes that are not text."""
    return "".join(letter if letter.isprintable() else repr(letter)[1:-1] for letter in message)


def parse(
    options: type[Options],
    description: str | None,
    arguments: Sequence[str] | None = None,
    default: Options | None = None,
) -> Options:
    """Return the `options` parsed from `arguments`, by default the command line; `BadInput` if they do not parse.

    description: the text above the help, up to its first indented paragraph. default: the values of the options left
    out; None takes those of the class.
    """

    def has_text(line: str) -> bool:
        return bool(line.strip("─-"))

    box = io.StringIO()
    try:
        with contextlib.redirect_stderr(box):
            return tyro.cli(
                options,
                description=(description or "").split("\n\n    ")[0],  # python -OO leaves no docstrings
                args=arguments,
                default=default,
            )
    except SystemExit as ended:
        if not ended.code:
            raise
    # tyro prints its message in a box, with a title in the first line; in ASCII if stdout has no box characters. The
    # first paragraph in the box is the error.
    lines = (line.strip("│╭╮╰╯ ") for line in box.getvalue().splitlines()[1:])
    paragraph = takewhile(has_text, dropwhile(lambda line: not has_text(line), lines))
    raise BadInput(" ".join(paragraph) + " (see --help)")
