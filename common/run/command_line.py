"""The command line of every script: options from a dataclass, the script's docstring as help, bad input in one line."""

import contextlib
import io
import os
import signal
import sys
from collections.abc import Callable, Sequence
from dataclasses import field, fields, is_dataclass, make_dataclass
from functools import cache
from itertools import dropwhile, takewhile
from typing import Annotated, NoReturn, TypeVar, get_args, get_origin, get_type_hints

import docstring_parser
import tyro

from common.run.ranks import LostRank, first_to_complain, leave
from common.run.signals import Interrupted

Options = TypeVar("Options")


class BadInput(Exception):
    """What the user gave cannot work. The message is one line: the option or file, what is wrong, what to do."""


class Stopped(Exception):
    """What was asked for made sense and was begun, but cannot go on. One line: what happened, and what is left."""


def launch(main: Callable[[Options], None], options: type[Options]) -> None:
    """Parse the command line into `options` and call `main` with it.

    Options with a method `defaults()` say themselves, once parsed, what stands for those that were left out: an
    instance of their class. Ends the process with one line on stderr: status 2 where the command line does not parse,
    where `main` raises `BadInput`, or a ValueError that begins with an option, "--image-size 30: ...", as modules that
    import nothing of ours do; status 1 where `main` raises `Stopped`, `LostRank` or an OSError that names its file. Of
    several processes under torchrun one prints the line. Ends it without a word where a signal has ended `main`, with
    status 128 and the signal's number, also where nobody reads its output any more.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # names of files may have letters that the terminal does not
            stream.reconfigure(errors="backslashreplace")
    if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:  # as the scripts have it while torch is loaded
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
        leave()
        sys.exit(error.status)
    except KeyboardInterrupt:
        sys.exit(128 + signal.SIGINT)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for what Python flushes at its end
        sys.exit(128 + 13)  # SIGPIPE
    except OSError as error:
        if error.filename is None:
            raise
        end(f"{os.fsdecode(error.filename)}: {error.strerror}", 1)
    leave()


def end(message: str, status: int) -> NoReturn:
    """End the process with the message as one line."""
    if first_to_complain():
        print(f"error: {one_line(message)}", file=sys.stderr)
    sys.exit(status)


def one_line(message: str) -> str:
    """Return the message as one line: names in it may hold line breaks, and bytes that are no text."""
    return "".join(letter if letter.isprintable() else repr(letter)[1:-1] for letter in message)


def parse(
    options: type[Options],
    description: str | None,
    arguments: Sequence[str] | None = None,
    default: Options | None = None,
) -> Options:
    """Return the `options` that `arguments` give, by default the command line; raises `BadInput` where they give none.

    description: heads the help, as far as its first indented paragraph. default: has the values of the options left
    out; None leaves that to the class. Options that inherit from other dataclasses are shown in groups.
    """
    grouped = any(map(is_dataclass, options.__bases__))
    kind = in_groups(options) if grouped else options
    if grouped and default:
        parts = [get_args(group.type)[0] for group in fields(kind)]
        default = kind(*(part(**{item.name: getattr(default, item.name) for item in fields(part)}) for part in parts))

    def says_something(line: str) -> bool:
        return bool(line.strip("─-"))

    box = io.StringIO()
    try:
        with contextlib.redirect_stderr(box):
            given = tyro.cli(
                tyro.conf.OmitArgPrefixes[kind],
                description=(description or "").split("\n\n    ")[0],  # python -OO leaves no docstrings
                args=arguments,
                default=default,
            )
        if not grouped:
            return given
        return options(**{name: value for part in vars(given).values() for name, value in vars(part).items()})
    except SystemExit as exit:
        if not exit.code:
            raise
    # tyro frames its message over several lines, with a title in the first, in ASCII where stdout has no box drawing;
    # the first paragraph inside the frame says what is wrong.
    lines = (line.strip("│╭╮╰╯ ") for line in box.getvalue().splitlines()[1:])
    paragraph = takewhile(says_something, dropwhile(lambda line: not says_something(line), lines))
    raise BadInput(" ".join(paragraph) + " (see --help)")


@cache
def in_groups(options: type) -> type:
    """Return a dataclass of dataclasses that have the fields of `options`, for tyro, which frames each in the help.

    A field is in the group of the base that has it first, named after that class, whatever a class derived from it
    makes of its type and default.
    """
    texts, titles, groups = {}, {}, {}
    for kind in filter(is_dataclass, reversed(options.__mro__)):
        described = docstring_parser.parse_from_object(kind).params
        texts |= {part.arg_name: " ".join(part.description.split()) for part in described if part.description}
        for item in fields(kind):
            titles.setdefault(item.name, kind.__name__.removesuffix("Options").lower() or "script")
    hints = get_type_hints(options, include_extras=True)
    for item in fields(options):
        if not item.init:
            continue
        hint = hints[item.name]
        kind, *extras = get_args(hint) if get_origin(hint) is Annotated else [hint]
        hint = Annotated[(kind, tyro.conf.arg(help=texts.get(item.name)), *extras)]
        value = field(default=item.default, default_factory=item.default_factory)
        groups.setdefault(titles[item.name], []).append((item.name, hint, value))
    parts = [(title, make_dataclass(title, members, kw_only=True)) for title, members in groups.items()]
    return make_dataclass("Groups", [(title, Annotated[part, tyro.conf.arg(help="")]) for title, part in parts])
