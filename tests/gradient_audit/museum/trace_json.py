"""Traces as JSON; and, as a script, a judge of such traces in a process without PyTorch and without the sources.

The script reads the paths of files from its standard input, each with a trace, and prints for each a line: the report
and the page, as JSON.
"""

import json
import sys
from dataclasses import fields, is_dataclass
from pathlib import Path


def encode(value):
    """Plain data as what JSON has; a tuple, a set, a dictionary or an event is a list that begins with its kind."""
    if is_dataclass(value):
        return [type(value).__name__, {field.name: encode(getattr(value, field.name)) for field in fields(value)}]
    if type(value).__name__ == "Place":
        return ["Place", *map(encode, value)]
    if isinstance(value, set | frozenset):
        return ["set", *map(encode, sorted(value))]
    if isinstance(value, dict):
        return ["dict", *([encode(key), encode(item)] for key, item in value.items())]
    if isinstance(value, tuple | list):
        return ["tuple", *map(encode, value)]
    assert value is None or type(value) in (bool, int, float, str), type(value)
    return value


def decode(value):
    from gradient_audit import places, trace

    if not isinstance(value, list):
        return value
    kind, *items = value
    if kind == "dict":
        return {decode(key): decode(item) for key, item in items}
    if kind in ("set", "tuple"):
        return (frozenset if kind == "set" else tuple)(map(decode, items))
    if kind == "Place":
        return places.Place(*map(decode, items))
    return getattr(trace, kind)(**{name: decode(item) for name, item in items[0].items()})


def said_of(trace):
    """The report and the page of a trace."""
    from gradient_audit.judge import judge
    from gradient_audit.page import page
    from gradient_audit.report import Report

    report = Report(judge(trace))
    return [str(report), page(report)]


def main():
    sys.modules["torch"] = None  # `import torch` raises ImportError
    sys.path.insert(0, str(Path(__file__).resolve().parents[3]))
    from gradient_audit.trace import Trace

    for line in sys.stdin:
        trace = Trace()
        for event in json.loads(Path(line.strip()).read_text()):
            trace.add(decode(event))
        print(json.dumps(said_of(trace)), flush=True)


if __name__ == "__main__":
    main()
