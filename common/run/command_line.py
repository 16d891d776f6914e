"""The command line of every script: options from a dataclass, help from the docstring, errors in one line."""

import os
import signal
import sys
from collections.abc import Callable
from typing import NoReturn, TypeVar

import tyro

from common.errors import BadInput, Stopped
from common.run.ranks import LostRank, close_process_group, first_to_report
from common.run.signals import Interrupted

Options = TypeVar("Options")


def launch(main: Callable[[Options], None], options: type[Options]) -> None:
    """Parse the command line into `options` and call `main` with it.

    With `--resume`, the options left out are those of the run. Errors end the process with one line on stderr, printed
    by one process under torchrun: status 2 for `BadInput`, 1 for `Stopped`, `LostRank` and an OSError that names its
    file. After a signal the status is 128 plus its number.
    """
    description = (main.__globals__["__doc__"] or "").split("\n\n    ")[0]  # up to the first indented paragraph
    try:
        given = tyro.cli(options, description=description)
        if getattr(given, "resume", None):
            given = tyro.cli(options, description=description, default=given.of_run())
        main(given)
    except BadInput as error:
        end(str(error), 2)
    except (Stopped, LostRank) as error:
        end(str(error), 1)
    except Interrupted as error:
        close_process_group()
        sys.exit(128 + error.args[0])
    except KeyboardInterrupt:
        sys.exit(128 + signal.SIGINT)
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
