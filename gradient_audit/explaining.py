"""Of a script that raised: its traceback, and which mistake it is."""

import re
import runpy
import traceback
from collections.abc import Iterator

from gradient_audit.findings import Finding
from gradient_audit.mistakes import match
from gradient_audit.watch.frames import PACKAGE
from gradient_audit.watch.saved import SECOND_TIME

KEPT = "loss-kept-with-graph"
VIEW = re.compile(r"Tensor \[(\d+), (\d+)\]\], which is output 0 of (?:AsStrided|T)(?:Backward0)?,")


def traceback_of_script(raised: BaseException) -> str:
    """Return the traceback without the frames of this package, and of those that called the script."""
    hidden = "|".join(map(re.escape, (PACKAGE, "<frozen runpy>", runpy.__file__)))
    trace = "".join(traceback.format_exception(raised))
    return re.sub(rf'^  File "(?:{hidden}).*\n(?:    .*\n)*', "", trace, flags=re.MULTILINE)


def explain(trace: str, findings: list[Finding], verdict: str) -> Iterator[str]:
    """Yield what is known of the error that ended a script: the verdict, if it is about that, and the mistake."""
    blamed = next((finding for finding in findings if finding.facts), None)
    if blamed:
        yield verdict
    for mistake in match(trace)[:1]:
        name = (blamed and blamed.mistake) or mistake.name
        if name == KEPT and SECOND_TIME not in trace and all(finding.kind != "kept" for finding in findings):
            return  # memory may run out without a mistake
        rest = "." if blamed else f": {mistake.title} {mistake.cure}"  # a finding's own cure fits the culprit
        if (shape := VIEW.search(trace)) and blamed and "weight`" in dict(blamed.facts).get("tensor", ""):
            rest += f" A Linear's weight of shape [{shape[2]}, {shape[1]}] is transposed in the message."
        yield f"This is the mistake `{name}`{rest}\nSee it live: python -m gradient_audit --mistake {name}"
