"""The command line of every script: options from a dataclass, the script's docstring as help, bad input in one line."""

import contextlib
import io
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import fields, is_dataclass, make_dataclass
from typing import Annotated, NoReturn, TypeVar

import tyro

from common.distributed import LostRank, first_to_complain, leave

Options = TypeVar("Options")


class BadInput(Exception):
    """What the user gave cannot work. The message is one line: the option or file, what is wrong, what to do."""


class Stopped(Exception):
    """What was asked for made sense and was begun, but cannot go on. One line: what happened, and what is left."""


def launch(main: Callable[[Options], None], options: type[Options]) -> None:
    """Parse the command line into `options` and call `main` with it.

    Options with a method `defaults()` say themselves, once parsed, what stands for those that were left out: an
    instance of their class. Ends the process with one line on stderr: status 2 where the command line does not parse
    or `main` raises `BadInput`, status 1 where `main` raises `Stopped`, `LostRank` or an OSError that names its file.
    Of several processes under torchrun one prints the line.
    """
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
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for what Python flushes at its end
        sys.exit(128 + 13)  # SIGPIPE
    except OSError as error:
        if error.filename is None:
            raise
        end(f"{os.fsdecode(error.filename)}: {error.strerror}", 1)
    leave()


def end(message: str, status: int) -> NoReturn:
    """End the process with the message as one line: names in it may hold line breaks, and bytes that are no text."""
    if first_to_complain():
        line = "".join(letter if letter.isprintable() else repr(letter)[1:-1] for letter in message)
        print(f"error: {line}", file=sys.stderr)
    sys.exit(status)


def parse(
    options: type[Options],
    description: str | None,
    arguments: Sequence[str] | None = None,
    default: Options | None = None,
) -> Options:
    """Return the `options` that `arguments` give, by default the command line; raises `BadInput` where they give none.

    description: heads the help, as far as its first indented paragraph. default: has the values of the options left
    out; None leaves that to the class. Options put together from several dataclasses are shown in as many groups.
    """
    groups = options.__bases__
    while len(groups) == 1 and is_dataclass(groups[0]):
        groups = groups[0].__bases__
    if len(groups) > 1:  # tyro draws a frame around each dataclass inside another
        default = default or options()
        parts = [group(**{field.name: getattr(default, field.name) for field in fields(group)}) for group in groups]
        names = [group.__name__.removesuffix("Options").lower() for group in groups]
        framed = [Annotated[group, tyro.conf.arg(help="")] for group in groups]
        kind = make_dataclass("Groups", [*zip(names, framed, strict=True)][::-1])
        default = kind(*parts[::-1])
    else:
        kind = options

    box = io.StringIO()
    try:
        with contextlib.redirect_stderr(box):
            given = tyro.cli(
                tyro.conf.OmitArgPrefixes[kind],
                description=(description or "").split("\n\n    ")[0],  # python -OO leaves no docstrings
                args=arguments,
                default=default,
            )
        if kind is options:
            return given
        return options(**{name: value for part in vars(given).values() for name, value in vars(part).items()})
    except SystemExit as exit:
        if not exit.code:
            raise
    # tyro frames its message over several lines; the first paragraph inside the frame says what is wrong.
    paragraph = box.getvalue().split("│ ──")[0].splitlines()[1:]
    raise BadInput(" ".join(line.strip("│╭╮╰╯─ ") for line in paragraph).strip() + " (see --help)")
