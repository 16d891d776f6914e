"""What an audit can find: each kind with its severity, its cure, and the mistakes that look like it."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from gradient_audit.places import Place


class Kind(NamedTuple):
    """A kind of finding. `mistakes` are names of `gradient_audit.mistakes`, the likeliest first."""

    severity: str
    cure: str
    mistakes: tuple[str, ...] = ()


LIMIT = "Limit where gradients go: `loss.backward(inputs=list(network.parameters()))`"
# In the order of the report, and of their table in docs/mistakes.md, which a test compares.
KINDS = {
    "stale": Kind(
        "error",
        "Call `zero_grad()` after each step, for LBFGS in its closure; a step too many may be another's.",
        ("no-zero-grad",),
    ),
    "mixed": Kind("error", f"{LIMIT}, or clear the gradients that are not for the step.", ("d-steps-on-g-loss",)),
    "twice": Kind("error", "Call `zero_grad()` between the steps, or let one optimizer hold it.", ("parameter-twice",)),
    "idle": Kind("error", "Call its `step()`, or give its parameters to an optimizer that steps."),
    "ownerless": Kind(
        "error", "Give them to an optimizer, or freeze them with `requires_grad_(False)`.", ("optimizer-old-weights",)
    ),
    "dead": Kind(
        "error",
        "See whether `detach()`, `no_grad()`, `.item()`, `sample()` where `rsample()` is meant, or a penalty without "
        "`create_graph=True` cuts it off, and whether the network that it should move is frozen, held by no optimizer "
        "or missing from `inputs=`.",
        ("penalty-without-graph", "penalty-on-frozen", "loss-made-leaf"),
    ),
    "overwritten": Kind(
        "error", "", ("step-between-backwards", "fused-step", "edit-after-use", "inplace-activation", "data-edit")
    ),
    "freed": Kind("error", "", ("second-backward", "detached-fakes", "loss-kept-with-graph", "penalty-frees-graph")),
    "unreached": Kind(
        "error",
        "See whether `detach()` or `no_grad()` cuts them off, whether `zero_grad()` comes between `backward()` and "
        "`step()`, and whether the forward pass uses them at all.",
        ("detached-fakes", "optimizer-old-weights"),
    ),
    "clipped": Kind("error", "Clip between `backward()` and `step()`."),
    "scaled": Kind("error", "Call `scaler.unscale_(optimizer)` before.", ("clip-before-unscale",)),
    "nan": Kind("error", "Keep 0, NaN, single samples out of that line; a later mask is too late.", ("nan-gradient",)),
    "meant?": Kind(
        "question",
        f"If this loss is for all of them, as an autoencoder's is, this is right. If not: {LIMIT}.",
        ("d-steps-on-g-loss",),
    ),
    "opposed": Kind("question", "Give each network an optimizer and a `backward(inputs=...)`, and D detached fakes."),
    "unused": Kind("question", "If it is a loss, call `backward()` on it; if not, compute it under `torch.no_grad()`."),
    "reused": Kind("question", "If the first gradient was only for that use, call `zero_grad()` after it."),
    "shared": Kind("question", "Give it to one optimizer alone, unless both are to move it.", ("detached-fakes",)),
    "renewed": Kind("question", "Make it once, before the loop, unless each one is for another task."),
    "unfrozen": Kind("waste", "`network.requires_grad_(False)` if it is to stay; else give it to an optimizer."),
    "wasted": Kind("waste", f"{LIMIT}, or `detach()`, unless it is read; for a step, `zero_grad()` only after it."),
    "kept": Kind(
        "waste", "Keep `loss.item()`; compute what no loss needs under `torch.no_grad()`.", ("loss-kept-with-graph",)
    ),
    "graph": Kind("waste", "Delete it, or compute it, and nothing that a loss uses, under `torch.no_grad()`."),
}
SEVERITIES = {"error": "error", "question": "question", "waste": "wasted computation"}  # in words, the worst first


@dataclass(frozen=True)
class Finding:
    """Something wrong, doubtful or wasteful; docs/mistakes.md of the repository explains the kinds."""

    kind: str
    networks: tuple[str, ...]
    text: str
    places: tuple[Place, ...]
    cure: str
    facts: tuple[tuple[str, str], ...] = ()  # of what the script raised: what is wanted, who wrote it, and so on
    mistake: str = ""  # likewise: which it is, if more is known than the message tells
    doubtful: bool = False  # a question, though its kind is an error

    @property
    def severity(self) -> str:
        """One of "error", "question" and "waste"."""
        return "question" if self.doubtful else KINDS[self.kind].severity

    @property
    def lines(self) -> tuple[str, ...]:
        """The places as `file.py:12`; the first is the one to look at."""
        return tuple(dict.fromkeys(place.where for place in self.places))

    @property
    def mistakes(self) -> tuple[str, ...]:
        """The names of the mistakes that look like it."""
        return (self.mistake,) if self.mistake else KINDS[self.kind].mistakes

    def __str__(self) -> str:
        at = f" [{', '.join(self.lines)}]" if self.lines else ""
        alike = f" Mistakes like it: {', '.join(f'`{name}`' for name in self.mistakes)}." if self.mistakes else ""
        return f"**{self.kind}** ({self.severity}): {self.text}{at} {self.cure}{alike}"


def finding(kind: str, networks: Iterable[str], text: str, places: Iterable[Place], cure="", **more) -> Finding:
    """Return a finding; {} in the text stands for the networks. more: `doubtful` and `mistake`."""
    places, cure = tuple(dict.fromkeys(places)), cure or KINDS[kind].cure
    return Finding(kind, tuple(networks), text, places, cure, **more)


def joined(words) -> str:
    """Join words: "a", "a and b", "a, b and c"."""
    *most, last = [*words] or [""]
    return f"{', '.join(most)} and {last}" if most else last
