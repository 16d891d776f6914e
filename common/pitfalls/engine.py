"""What an entry is, how it is registered and run, and how it is found by the text of an error."""

import ast
import inspect
import math
import re
import textwrap
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch import nn


@dataclass(frozen=True)
class Pitfall:
    """One mistake, its cure, and what PyTorch does with either.

    `wrong` and `right` take nothing; what they return (numbers, tensors, None, or a tuple of these) shows the effect.
    `wrong_gives` and `right_gives` are what to expect: such a value in plain numbers, or the type of the exception.
    `errors` are phrases of the message, any of which identifies it, with * for the parts that vary and # for a number.
    `hints` are such phrases, too: they rank this entry first if several share one message. `not_run` says why an entry
    has no functions, and the source of its message; it is empty for an entry that runs.
    """

    name: str
    title: str
    wrong: Callable[[], object] | None
    right: Callable[[], object] | None
    wrong_gives: object
    right_gives: object
    why: str
    cure: str
    errors: tuple[str, ...]
    hints: tuple[str, ...]
    not_run: str

    @property
    def silent(self) -> bool:
        """Whether the mistake gives no error."""
        return not isinstance(self.wrong_gives, type)


PITFALLS: list[Pitfall] = []


def pitfall(
    wrong: object,
    right: object = None,
    errors: tuple[str, ...] = (),
    hints: tuple[str, ...] = (),
    not_run: str = "",
) -> Callable:
    """Register a class with the functions `wrong` and `right`; the paragraphs of its docstring are title, why and cure.

    wrong, right: the expected results of the functions. errors, hints, not_run: as in `Pitfall`.
    """

    def add(entry: type) -> type:
        name = re.sub(r"\B[A-Z]", r"-\g<0>", entry.__name__).lower()
        title, why, cure = (" ".join(paragraph.split()) for paragraph in docstring(entry).split("\n\n"))
        forms = [None, None] if not_run else [entry.wrong, entry.right]
        PITFALLS.append(Pitfall(name, title.removesuffix("."), *forms, wrong, right, why, cure, errors, hints, not_run))
        return entry

    return add


def docstring(thing: type | Callable) -> str:
    """Return the docstring of a class or function, from its source if `python -OO` has removed it."""
    source = textwrap.dedent(inspect.getsource(thing)) if thing.__doc__ is None else None
    return thing.__doc__ or ast.get_docstring(ast.parse(source).body[0])


@dataclass(frozen=True)
class Outcome:
    """The result of a function: the value it returned, in plain numbers, or the exception; and the message."""

    value: object = None
    exception: type[Exception] | None = None
    message: str | None = None

    def is_as(self, expected: object) -> bool:
        """Whether this is the expected value, numbers to within 0.2 %, or the expected exception."""
        if isinstance(expected, type) or self.exception:
            return bool(self.exception and isinstance(expected, type) and issubclass(self.exception, expected))
        return _close(self.value, expected)


def observe(function: Callable[[], object]) -> Outcome:
    """Run `function` and return what it returned, raised, or warned of."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            value = _plain(function())
        except Exception as error:
            return Outcome(exception=type(error), message=f"{type(error).__name__}: {error}")
    return Outcome(value, message=f"{caught[0].category.__name__}: {caught[0].message}" if caught else None)


def match_error(text: str) -> list[Pitfall]:
    """Return the entries whose message occurs in `text`, best match first; empty where none does.

    text: an error message or a whole traceback of any PyTorch, also wrapped or coloured. The last message of a
    traceback is the one that stopped the program, so later messages rank first. Entries with the same message rank by
    the number of their hints in the text, then by their order in `PITFALLS`.
    """
    text = _squeeze(text)
    found = []
    for entry in PITFALLS:
        position = max((_last(phrase, text) for phrase in entry.errors), default=-1)
        if position >= 0:
            found.append((-position, -sum(_last(hint, text) >= 0 for hint in entry.hints), entry))
    return [entry for *_, entry in sorted(found, key=lambda match: match[:2])]


def _last(phrase: str, text: str) -> int:
    """Where in the squeezed text the phrase starts that comes last, or -1; a * is up to 80 letters, a # a number."""
    parts = re.split("([*#])", phrase)
    pattern = "".join({"*": "[a-z0-9]{0,80}?", "#": "[0-9]+"}.get(part) or _squeeze(part) for part in parts)
    return max((match.start() for match in re.finditer(pattern, text)), default=-1)


def _squeeze(text: str) -> str:
    """Lower-case letters and digits only: neither colours, line breaks, frames nor "in-place" for "inplace" matter.

    The sizes of a shape keep a letter between them: [512, 1] becomes 512x1.
    """
    text = re.sub(r"\x1b\[[0-9;]*[A-Za-z]", "", text).lower()
    return re.sub(r"[^a-z0-9]", "", re.sub(r"(\d)\W*,\W*(?=\d)", r"\1x", text))


def _plain(value: object) -> object:
    """Tensors and arrays as numbers and lists, also inside a tuple."""
    if isinstance(value, tuple):
        return tuple(_plain(item) for item in value)
    return value.tolist() if hasattr(value, "tolist") else value


def _close(a: object, b: object) -> bool:
    if isinstance(a, list | tuple) and isinstance(b, list | tuple):
        return len(a) == len(b) and all(map(_close, a, b))
    if isinstance(a, int | float) and isinstance(b, int | float):
        return math.isclose(a, b, rel_tol=2e-3, abs_tol=1e-7)
    return a is b


def one_weight_gan():
    """G(x) = 0.5 x and D(x) = 0.7 x, each with SGD of learning rate 1, so that every number can be checked by hand."""
    generator, discriminator = nn.Linear(1, 1, bias=False), nn.Linear(1, 1, bias=False)
    nn.init.constant_(generator.weight, 0.5)
    nn.init.constant_(discriminator.weight, 0.7)
    optimizers = [torch.optim.SGD(network.parameters(), lr=1.0) for network in (generator, discriminator)]
    return generator, discriminator, *optimizers


# Old groups are kept. If a DistributedDataParallel is the last to hold a group, freeing it deadlocks: it waits for the
# group's threads while it holds the interpreter's lock, and they wait for the lock.
GROUPS: list[dist.ProcessGroup] = []


@contextmanager
def one_rank() -> Iterator[None]:
    """Make this process a process group of its own, over gloo, for DistributedDataParallel."""
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    GROUPS.append(dist.group.WORLD)
    try:
        yield
    finally:
        dist.destroy_process_group()
