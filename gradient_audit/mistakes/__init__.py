"""Mistakes made in training loops, one to a file, each with its wrong and its right form.

A file has its title as docstring, the constants WHY and CURE, and two functions, `wrong` and `right`, which run on the
CPU. They return WRONG_RETURNS and RIGHT_RETURNS, worked by hand, or None. MESSAGES are phrases that identify the error
or warning, with * for what varies and # for a number; ALIKE has others for some. `wrong` raises it, unless there is a
WRONG_RETURNS. HINTS are phrases that rank a mistake first among those that share a message. NOT_RUN says why there are
no functions. UNSEEN says what to look at where the audit finds nothing; what it finds, its rules know.
"""

import ast
import difflib
import pkgutil
import re
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.resources import files

HELPERS = {"one_weight": "one_weight_gan", "one_rank": "one_rank"}  # files that are no mistakes: what they help with
FREQUENT = ("step-between-backwards", "second-backward", "loss-kept-with-graph")
FREQUENT += ("no-graph", "all-frozen", "loss-rebuilt", "step-function")
"""The likeliest of those that share a message, in this order."""
ALIKE = {
    "backward through the graph a second time": "saved tensors after they have already been freed"
    "| Specify retain_graph=True | buffers have already been freed | intermediate values of the graph are freed"
    "| 第二次…反向传播 | 第二次…计算图 | 反向传播第二次 | 第二次…遍历图 | 计算图…已…释放 | 缓冲区…已…释放",
    "modified by an inplace operation": "by an inplace operation | Backward*is at version #; expected version #"
    "| that failed to compute its gradient | 原地操作…修改 | 就地操作…修改 | inplace…修改 | 被原地修改"
    "| 原地操作…更改 | 原位操作…修改",
    "does not require grad and does not have a grad_fn": "element 0 of tensors does not require grad"
    "| does not have a grad_fn | 不需要…grad_fn | 不要求…grad_fn",
    "grad can be implicitly created only for scalar outputs": "标量…隐式 | 隐式…标量",
    "leaf Variable that requires grad": "叶…原地操作 | 叶…就地操作 | 叶…原位操作 | 叶…inplace | 原地操作…叶",
}
"""Other parts of a message, and how it is put in Chinese; … is up to 12 letters."""
ANSI = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
RAISED = r"(?:\w+\.)*\w*(?:Error|Exception|Failed|Exit|Interrupt|Iteration|Unsupported)"
EXCEPTION = re.compile(rf"^\W*{RAISED}(?::|\s*$)", re.MULTILINE)
"""The line with which the message of an exception begins."""
TRACEBACK = re.compile(r"Traceback \(most recent call last\).*\n(?:(?:[ \t].*)?\n)*")
"""A traceback with its frames; the line behind them names the exception, whatever its name."""
FOLLOWS = re.compile(r"(?:[\w.]+\.)?(?:ChildFailedError|KeyboardInterrupt)\b")
"""The message of an exception that follows from others, as torchrun's, or from Ctrl-C: it explains nothing."""
FLAT = re.compile(r"^.*Traceback \(most recent call last\):?[ \t]+\S.*$", re.MULTILINE)
"""A traceback that was pasted as one line."""
BREAK = re.compile(
    rf'[ \t]+(?=(File ")|Traceback \(most|During handling of|The above exception|(?:\S+:\d+: )?\w*Warning: |{RAISED}: )'
)
"""Where it had a new line; that of a frame was indented."""
AFTER = re.compile(r"^.*(?:\b\w*Warning:|Traceback \(most|During handling of|The above exception)", re.M)
"""A line that belongs to the message of an exception no more."""


@dataclass(frozen=True)
class Mistake:
    """One mistake, as its file describes it."""

    name: str
    title: str
    why: str
    cure: str
    messages: tuple[str, ...] = ()
    hints: tuple[str, ...] = ()
    not_run: str = ""
    unseen: str = ""
    wrong: Callable[[], object] | None = None
    right: Callable[[], object] | None = None
    wrong_returns: object = None
    right_returns: object = None

    def __str__(self) -> str:
        """Return its line in a list."""
        return f"  {self.name:<24}{self.title}"

    @property
    def silent(self) -> bool:
        """Whether the wrong form runs without an error."""
        return not self.messages or self.wrong_returns is not None

    def audit(self, kinds: Sequence[str]) -> str:
        """Return what the audit says of it. kinds: of its findings that look like it."""
        return f"[{', '.join(kinds)}]" if kinds else f"look at: {self.unseen}" if self.unseen else ""


@dataclass(frozen=True)
class Outcome:
    """What a function did: what it returned, in plain numbers, or whether it raised; and the message or warning."""

    value: object = None
    raised: bool = False
    message: str = ""


@cache
def names() -> tuple[str, ...]:
    """Return the names of all mistakes, sorted."""
    found = (module.name for module in pkgutil.iter_modules(__path__))
    return tuple(sorted(file.replace("_", "-") for file in found if file not in (*HELPERS, "showing")))


@cache
def load(name: str) -> Mistake:
    """Return a mistake by its name; raises ValueError, with the names that are close, if there is none."""
    if name not in names():
        close = difflib.get_close_matches(name.replace("_", "-"), names())
        meant = f"did you mean {' or '.join(close)}?" if close else "--list names all of them"
        raise ValueError(f"there is no such mistake; {meant}")
    module = vars(import_module(f"{__name__}.{name.replace('-', '_')}"))
    parts = {part.lower(): value for part, value in module.items() if part.lower() in Mistake.__dataclass_fields__}
    parts |= {part: " ".join(text.split()) for part, text in parts.items() if isinstance(text, str)}
    return Mistake(name, module["__doc__"], **parts)


@cache
def why_and_cure(name: str) -> tuple[str, str]:
    """Return why a mistake is one, and its cure, from its file, which is not run: that needs PyTorch."""
    source = files(__name__).joinpath(f"{name.replace('-', '_')}.py").read_text(encoding="utf-8")
    values = {node.targets[0].id: node.value for node in ast.parse(source).body if isinstance(node, ast.Assign)}
    why, cure = (" ".join(ast.literal_eval(values[part]).split()) for part in ("WHY", "CURE"))
    return why, cure


def match(text: str) -> list[Mistake]:
    """Return the mistakes whose message occurs in `text`, best match first; empty where none does.

    text: an error message, a traceback or a log of any PyTorch, also wrapped or coloured. Of a log with exceptions only
    the last counts, but not torchrun's own or Ctrl-C. Later messages rank first; mistakes with the same message rank by
    the number of their hints in the text, then by FREQUENT.
    """
    text = ANSI.sub("", text).replace("\r", "\n")
    text = FLAT.sub(lambda flat: BREAK.sub(lambda gap: "\n  " if gap[1] else "\n", flat[0]), text)
    letters = _squeeze(_last_message(text))
    ranked = []
    for mistake in map(load, names()):
        phrases = [form for phrase in mistake.messages for form in (phrase, *ALIKE.get(phrase, phrase).split("|"))]
        position = max((_last_position(phrase, letters) for phrase in phrases), default=-1)
        if position >= 0:
            hints = sum(_last_position(hint, _squeeze(text)) >= 0 for hint in mistake.hints)
            place = [*FREQUENT, mistake.name].index(mistake.name)
            ranked.append((-position, -hints, place, bool(mistake.not_run), mistake.name))
    return [load(name) for *_, name in sorted(ranked)]


def _last_message(text: str) -> str:
    """Return the message of the exception that ended a log; all of the text if none explains anything."""
    named = (found.start() for found in EXCEPTION.finditer(text))
    starts = sorted({*named, *(found.end() for found in TRACEBACK.finditer(text))})
    for start, end in reversed([*zip(starts, [*starts[1:], len(text)], strict=False)]):
        message = AFTER.split(text[start:end].lstrip(), maxsplit=1)[0]
        if "device-side assert triggered" in message:
            return text  # the assertion that failed was printed before
        if message and not FOLLOWS.match(message):
            return message
    return text


def _last_position(phrase: str, letters: str) -> int:
    """Return where the phrase starts that comes last, or -1; a * is up to 80 letters, a # a number."""
    parts = re.split("([*#…])", phrase)
    pattern = "".join(
        {"*": "[a-z0-9]{0,80}?", "…": ".{0,12}?", "#": "[0-9]+"}.get(part) or _squeeze(part) for part in parts
    )
    return max((found.start() for found in re.finditer(pattern, letters)), default=-1)


def _squeeze(text: str) -> str:
    """Return lower-case letters, digits and Chinese only: neither line breaks nor "in-place" for "inplace" matter.

    The sizes of a shape keep a letter between them: [512, 1] becomes 512x1.
    """
    return re.sub(r"[^a-z0-9\u4e00-\u9fff]", "", re.sub(r"(\d)\W*,\W*(?=\d)", r"\1x", text.lower()))


def observe(function: Callable[[], object]) -> Outcome:
    """Run `wrong` or `right`, and return what it returned, raised or warned of."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            value = function()
        except Exception as error:
            return Outcome(raised=True, message=f"{type(error).__name__}: {error}")
    return Outcome(value, message=f"{caught[0].category.__name__}: {caught[0].message}" if caught else "")


def does_as_described(mistake: Mistake, wrong: Outcome, right: Outcome) -> bool:
    """Return whether both forms did what the file says; numbers are compared as they are printed, to four digits."""
    silent = not wrong.raised and show(wrong.value) == show(mistake.wrong_returns)
    as_described = silent if mistake.silent else wrong.raised and mistake in match(wrong.message)
    return as_described and not right.raised and show(right.value) == show(mistake.right_returns)


def show(value: object) -> str:
    """Write numbers to four digits, also in tensors, lists and tuples."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(show, value))}]" if isinstance(value, list) else ", ".join(map(show, value))
    return f"{value:.4g}" if isinstance(value, float) else str(value)
